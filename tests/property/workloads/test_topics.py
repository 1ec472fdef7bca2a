"""Topic-based workloads: distribution of interests, roles, events, changes and crashes."""

import time
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from workloads.churn import draw_crashes
from workloads.errors import WorkloadError
from workloads.kinds import draw_workload
from workloads.number_range import NumberRange, WholeRange
from workloads.share import NEVER_US
from workloads.topics.held_topics import HeldTopics
from workloads.topics.interests import Wanted, draw_interests
from workloads.topics.popularity import Popularity, Shape
from workloads.workload import Interests, Workload

SHAPES: tuple[Shape, ...] = ("uniform", "zipf", "exponential")
HOSTS = [f"h{number}" for number in range(1, 41)]


def made(kind: str = "topics-zipf", seed: int = 3, **changes: Any) -> Workload:
    section = {"kind": kind, "topics": 20, "topics_per_peer": "3", "events": 200, **changes}
    return draw_workload(section, seed, HOSTS)


def pairs(wanted: Wanted) -> list[tuple[int, int]]:
    return list(zip(wanted.peer.tolist(), wanted.topic.tolist(), strict=True))


@given(
    st.integers(0, 40),
    st.integers(1, 30),
    st.tuples(st.integers(0, 30), st.integers(0, 30)),
    st.sampled_from(SHAPES),
    st.integers(0, 2**64),
)
def test_a_peer_draws_the_requested_number_of_different_topics(
    nodes: int, topics: int, sizes: tuple[int, int], shape: Shape, seed: int
) -> None:
    low, high = sorted(min(size, topics) for size in sizes)
    found = pairs(draw_interests(nodes, topics, WholeRange(low, high), Popularity(shape), seed))
    assert found == sorted(set(found))
    assert all(0 <= topic < topics for _, topic in found)
    held = Counter(peer for peer, _ in found)
    assert all(low <= held[peer] <= high for peer in range(nodes))
    assert set(held) <= set(range(nodes))


def order_chance(order: tuple[int, ...], chances: np.ndarray) -> float:
    """The probability of drawing these topics in this order, without replacement."""
    chance, left = 1.0, 1.0
    for topic in order:
        chance *= chances[topic] / left
        left -= chances[topic]
    return chance


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_sets_of_topics_follow_the_distribution_of_successive_draws(
    shape: Shape, count: int
) -> None:
    nodes, topics, popularity = 40_000, 5, Popularity(shape, decay=4.0)
    drawn = draw_interests(nodes, topics, count, popularity, seed=11)
    found = Counter(map(tuple, drawn.topic.reshape(nodes, count).tolist()))
    chances = popularity.chances(topics)
    expected: Counter[tuple[int, ...]] = Counter()
    for order in permutations(range(topics), count):
        expected[tuple(sorted(order))] += order_chance(order, chances)  # type: ignore[assignment]
    sets = sorted(expected)
    assert set(found) <= set(sets)
    observed = [found[one] for one in sets]
    assert chisquare(observed, [nodes * expected[one] for one in sets]).pvalue > 0.01


def test_the_test_distinguishes_another_distribution() -> None:
    nodes, topics = 40_000, 5
    drawn = draw_interests(nodes, topics, 1, Popularity("zipf", exponent=1.9), seed=11)
    expected = Popularity("zipf").chances(topics) * nodes
    assert chisquare(np.bincount(drawn.topic, minlength=topics), expected).pvalue < 0.01


@pytest.mark.parametrize("shape", SHAPES)
def test_popularity_has_the_stated_distribution(shape: Shape) -> None:
    chances = Popularity(shape).chances(50)
    assert chances.sum() == pytest.approx(1)
    stated = {"uniform": 1.0, "zipf": 2.0**-2 / 5.0**-2, "exponential": np.exp(10 * 3 / 50)}
    assert chances[1] / chances[4] == pytest.approx(stated[shape])


def test_numbers_of_topics_in_a_range_are_equally_likely() -> None:
    drawn = draw_interests(20_000, 9, WholeRange(2, 6), Popularity("zipf"), seed=5)
    held = np.bincount(np.bincount(drawn.peer, minlength=20_000), minlength=7)
    assert held[:2].sum() == 0
    assert chisquare(held[2:]).pvalue > 0.01


def test_larger_networks_start_with_the_same_interests() -> None:
    few, many = (
        pairs(draw_interests(n, 700, WholeRange(1, 5), Popularity("zipf"), 7)) for n in (50, 5_000)
    )
    assert many[: len(few)] == few


def test_runs_and_offline_computations_have_the_same_interests() -> None:
    run = made("topics-exponential", seed=9, topics_per_peer="2..5").interests
    offline = draw_interests(len(HOSTS), 20, WholeRange(2, 5), Popularity("exponential"), 9)
    assert (run.peer.tolist(), run.content.tolist()) == (
        offline.peer.tolist(),
        offline.topic.tolist(),
    )


def test_more_topics_per_peer_than_topics_is_an_error() -> None:
    with pytest.raises(WorkloadError, match="^topics_per_peer: expected 0 to 3, .* found 2..4$"):
        draw_interests(5, 3, WholeRange(2, 4), Popularity("uniform"), 1)


def test_the_time_to_draw_grows_linearly_with_peers() -> None:
    def best_s(nodes: int) -> float:
        spent = []
        for _ in range(3):
            start_s = time.process_time()
            draw_interests(nodes, 500, 20, Popularity("zipf"), 1)
            spent.append(time.process_time() - start_s)
        return min(spent)

    best_s(1_000)
    assert best_s(32_000) < 3 * 8 * best_s(4_000)


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 9), st.integers(1, 9)),
    max_size=30,
)


@given(rows, st.integers(0, 3), st.integers(0, 12))
def test_subscribers_at_a_time_equal_brute_force(
    some: list[tuple[int, int, int, int]], topic: int, at: int
) -> None:
    columns = np.array([(p, t, f, f + d) for p, t, f, d in some], dtype=np.int64).reshape(-1, 4).T
    held = HeldTopics(Interests(*columns), 4)
    asked = np.array([topic]), np.array([at])
    expected = [p for p, t, f, d in some if t == topic and f <= at < f + d]
    assert held.count(*asked).tolist() == [len(expected)]
    if expected:
        assert held.draw(*asked, np.random.default_rng(1))[0] in expected


@pytest.mark.parametrize("kind", ["topics-uniform", "topics-zipf", "topics-exponential"])
@pytest.mark.parametrize("changes_per_s", [0.0, 5.0])
def test_publishers_are_subscribed_when_they_publish_and_matches_are_by_topic(
    kind: str, changes_per_s: float
) -> None:
    work = made(kind, changes_per_s=changes_per_s, min_subscribers=2)
    held, published = work.interests, work.publications
    assert len(published) == 200
    found = set(zip(*(column.tolist() for column in work.matches), strict=True))
    brute = set()
    for event, (peer, topic, at_us) in enumerate(
        zip(published.peer, published.content, published.time_us, strict=True), start=1
    ):
        of_topic = held.content == topic
        now = of_topic & (held.from_us <= at_us) & (at_us < held.until_us)
        assert now.sum() >= 2 and peer in held.peer[now]
        brute |= {(event, int(row)) for row in np.flatnonzero(of_topic)}
    assert found == brute


def test_a_change_replaces_an_interest_by_a_new_one() -> None:
    held = made(changes_per_s=10.0).interests
    assert (held.until_us < NEVER_US).sum() == 100 == (held.from_us > 0).sum()
    for at_us in np.unique(held.from_us).tolist():
        now = (held.from_us <= at_us) & (at_us < held.until_us)
        assert np.bincount(held.peer[now]).tolist() == [3] * len(HOSTS)
        assert len(set(zip(held.peer[now], held.content[now], strict=True))) == now.sum()
    ended, begun = held.until_us < NEVER_US, held.from_us > 0
    assert sorted(zip(held.until_us[ended], held.peer[ended], strict=True)) == sorted(
        zip(held.from_us[begun], held.peer[begun], strict=True)
    )
    assert held.from_us[begun].min() >= 40e6 and held.from_us.max() < 50e6


def test_a_peer_with_all_topics_keeps_its_interests() -> None:
    held = made(topics=3, changes_per_s=10.0).interests
    assert (held.until_us == NEVER_US).all()


def publishers_by_topic(work: Workload) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    rows = zip(work.publications.content.tolist(), work.publications.peer.tolist(), strict=True)
    for topic, peer in rows:
        found.setdefault(topic, set()).add(peer)
    return found


@pytest.mark.parametrize(("share", "count"), [(0.1, 1), (0.5, 5), (0.9, 9)])
def test_a_share_of_each_topic_publishes_and_the_others_subscribe(share: float, count: int) -> None:
    work = made(
        "topics-uniform", topics=4, topics_per_peer="1", topic_sizes="equal", events=2_000,
        publishers="share-of-topic", publisher_share=share,
    )  # fmt: skip
    held = work.interests
    assert np.bincount(held.content).tolist() == [10 - count] * 4
    apart = publishers_by_topic(work)
    assert {topic: len(peers) for topic, peers in apart.items()} == dict.fromkeys(range(4), count)
    for topic, peers in apart.items():
        assert not peers & set(held.peer[held.content == topic].tolist())


def test_a_topic_of_one_peer_has_a_subscriber_and_a_larger_one_both_roles() -> None:
    for seed in range(20):
        work = made(seed=seed, topics_per_peer="1", publishers="share-of-topic", events=2_000)
        drawn = np.bincount(
            draw_interests(len(HOSTS), 20, 1, Popularity("zipf"), seed).topic, minlength=20
        )
        wanted = np.bincount(work.interests.content, minlength=20)
        assert ((wanted > 0) == (drawn > 0)).all()
        assert set(publishers_by_topic(work)) == set(np.flatnonzero(drawn > 1).tolist())


def test_a_share_of_the_peers_publishes_without_subscribing() -> None:
    work = made(publishers="share-of-peers", publisher_share=0.25, events=2_000)
    publishers, subscribers = set(work.publications.peer.tolist()), set(work.interests.peer)
    assert len(publishers) == 10 and len(subscribers) == 30
    assert not publishers & subscribers


def test_any_peer_can_publish_to_any_topic() -> None:
    work = made(publishers="anyone", events=4_000)
    counts = np.bincount(work.publications.peer, minlength=len(HOSTS))
    assert chisquare(counts).pvalue > 0.01
    assert chisquare(np.bincount(work.publications.content, minlength=20)).pvalue > 0.01


def test_events_follow_popularity_if_configured() -> None:
    work = made(publishers="anyone", events=20_000, event_topics="popularity")
    expected = Popularity("zipf").chances(20) * 20_000
    assert chisquare(np.bincount(work.publications.content, minlength=20), expected).pvalue > 0.01


def test_each_topic_has_its_own_rate_if_configured() -> None:
    work = made(rate_of="topic", events=10, rate_per_s=2.0, publishers="anyone")
    published = work.publications
    assert np.bincount(published.content).tolist() == [10] * 20
    assert (np.diff(published.time_us) >= 0).all()
    for topic in range(20):
        times_us = published.time_us[published.content == topic]
        assert (np.diff(times_us) == 500_000).all() and 40e6 <= times_us[0] < 40.5e6


def test_events_without_any_possible_topic_are_an_error() -> None:
    with pytest.raises(WorkloadError, match="^events: expected a topic with enough subscribers"):
        made(min_subscribers=41)
    assert len(made(min_subscribers=41, events=0).publications) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"topics_per_peer": "21"}, "topics_per_peer: expected at most 20, the number of topics"),
        ({"rate_of": "topic", "event_topics": "popularity"}, "event_topics: expected uniform"),
        ({"churn": 0.1, "crashes_per_min": 0.1}, "crashes_per_min: expected churn in steps or"),
        ({"kind": "topics-uniform", "topic_sizes": "equal"}, "topic_sizes: expected drawn unless"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        made(**changes)


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.integers(1, 64), st.floats(0.01, 5))
def test_crashed_peers_restart_in_time_and_only_running_peers_crash(
    seed: int, peers: int, share: float
) -> None:
    hosts = HOSTS[: min(peers, len(HOSTS))]
    steps = draw_crashes(seed, hosts, (40.0, 640.0), share, NumberRange(30, 60))
    assert list(steps) == sorted(steps)
    left_s: dict[str, float] = {}
    for at_s, action, host in steps:
        if action == "kill-agent":
            assert host not in left_s and 40 <= at_s <= 640
            left_s[host] = at_s
        else:
            assert action == "restart-agent" and 30 <= at_s - left_s.pop(host) <= 60
    assert not left_s


def test_five_percent_of_the_peers_crash_per_minute() -> None:
    steps = made(crashes_per_min=0.05, return_after_s="30..60", events=600, rate_per_s=1.0).churn
    kills = [step for step in steps if step.action == "kill-agent"]
    assert len(kills) == 0.05 * len(HOSTS) * 10 == len(steps) - len(kills)
    per_minute = Counter(int((step.at_s - 40) / 60) for step in kills)
    assert per_minute == dict.fromkeys(range(10), 2)


def test_no_peer_crashes_by_default() -> None:
    assert made().churn == ()
    assert made(churn=0.1).churn
