"""Topics of social graphs: reading edge lists, sampling users, and who subscribes to whom."""

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.errors import WorkloadError
from workloads.kinds import draw_workload
from workloads.topics.social import draw_social_interests
from workloads.topics.social_graph import SocialGraph, read_graph, sample_users, wanted_among
from workloads.workload import Workload

FOLDER = Path(__file__).parents[2] / "fixtures" / "social"
FRIENDS, FOLLOWS = FOLDER / "friends.txt", FOLDER / "out.follows"
HOSTS = [f"h{number}" for number in range(1, 61)]


def made(seed: int = 3, file: Path = FRIENDS, **changes: Any) -> Workload:
    section = {"kind": "topics-social", "file": str(file), "events": 300, **changes}
    return draw_workload(section, seed, HOSTS)


def links_of(graph: SocialGraph) -> set[tuple[int, int]]:
    return set(zip(graph.source.tolist(), graph.target.tolist(), strict=True))


def test_a_graph_is_read_as_networkx_reads_it() -> None:
    theirs = nx.read_edgelist(FRIENDS, nodetype=int)
    place = {user: number for number, user in enumerate(sorted(theirs))}
    graph = read_graph(FRIENDS, is_mutual=True)
    assert graph.users == theirs.number_of_nodes() == 150
    assert links_of(graph) == {
        (place[one], place[other]) for a, b in theirs.edges for one, other in ((a, b), (b, a))
    }


def test_follows_have_a_direction() -> None:
    theirs = nx.read_edgelist(FOLLOWS, nodetype=int, comments="%", create_using=nx.DiGraph)
    place = {user: number for number, user in enumerate(sorted(theirs))}
    graph = read_graph(FOLLOWS, is_mutual=False)
    assert links_of(graph) == {(place[a], place[b]) for a, b in theirs.edges}
    assert len(links_of(read_graph(FOLLOWS, is_mutual=True))) > len(links_of(graph))


def test_comments_extra_columns_loops_and_repeats_are_ignored(tmp_path: Path) -> None:
    file = tmp_path / "graph.txt"
    file.write_text("% asym\n# users\n\n7 9 1 1300000000\n9\t7\n7 7\n7 9\n5 9 # last\n")
    graph = read_graph(file, is_mutual=False)
    assert graph.users == 3 and links_of(graph) == {(0, 2), (1, 2), (2, 1)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1 2\n3 x\n", "'3 x' in line 2"),
        ("# a\n1\n", "'1' in line 2"),
        ("1,2\n", "'1,2' in line 1"),
        ("1 -2\n", "'1 -2' in line 1|the number -2"),
        ("1.5 2\n", "'1.5 2' in line 1"),
        ("# nobody\n", "no links"),
        ("", "no links"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_an_error_of_a_malformed_file_has_the_line_and_the_expected_form(
    text: str, found: str, tmp_path: Path
) -> None:
    file = tmp_path / "graph.txt"
    file.write_text(text)
    wanted = rf"^file: expected an edge list, .* 'a b' of two whole .*graph.txt: ({found})$"
    with pytest.raises(WorkloadError, match=wanted):
        read_graph(file, is_mutual=True)


def test_a_binary_file_is_no_edge_list(tmp_path: Path) -> None:
    file = tmp_path / "graph.txt"
    file.write_bytes(bytes(range(128, 256)) * 9)
    with pytest.raises(WorkloadError, match="^file: expected an edge list"):
        read_graph(file, is_mutual=True)


@given(st.integers(0, 2**32), st.integers(1, 122), st.integers(1, 5))
def test_a_sample_grows_along_links_and_continues_in_another_component(
    seed: int, count: int, starts: int
) -> None:
    graph = read_graph(FOLLOWS, is_mutual=False)
    chance = np.random.default_rng(seed)
    users = sample_users(graph, count, starts, chance).tolist()
    assert len(set(users)) == len(users) == count
    near: dict[int, set[int]] = {}
    for a, b in links_of(graph):
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    seen: set[int] = set()
    jumps = 0
    for user in users:
        jumps += not near[user] & seen
        seen.add(user)
    # The starts, and one user for each component without a start.
    assert jumps <= starts + 1


def test_a_search_visits_near_users_before_far_ones() -> None:
    chain = np.arange(9)
    graph = SocialGraph(10, chain, chain + 1)
    for seed in range(10):
        users = sample_users(graph, 10, 1, np.random.default_rng(seed)).tolist()
        far = [abs(user - users[0]) for user in users]
        assert far == sorted(far)


def test_interests_are_exactly_the_links_within_the_sample() -> None:
    graph = read_graph(FOLLOWS, is_mutual=False)
    users = sample_users(graph, 40, 3, np.random.default_rng(1))
    found = set(zip(*(column.tolist() for column in wanted_among(graph, users)), strict=True))
    everyone = users.tolist()
    brute = {
        (everyone.index(a), everyone.index(b))
        for a, b in links_of(graph)
        if a in everyone and b in everyone
    }
    assert found == brute and brute


def test_friends_subscribe_to_each_other_and_no_user_to_itself() -> None:
    held = made().interests
    pairs = set(zip(held.peer.tolist(), held.content.tolist(), strict=True))
    assert pairs == {(topic, peer) for peer, topic in pairs}
    assert all(peer != topic for peer, topic in pairs)
    assert max(topic for _, topic in pairs) < len(HOSTS)


def test_runs_and_offline_computations_have_the_same_interests() -> None:
    run, offline = made(seed=9).interests, draw_social_interests(FRIENDS, "friends", 60, 9)
    assert run.peer.tolist() == offline.peer.tolist()
    assert run.content.tolist() == offline.topic.tolist()
    assert run.content.tolist() != draw_social_interests(FRIENDS, "friends", 60, 8).topic.tolist()


@pytest.mark.parametrize("publishers", ["subscribers", "owner"])
def test_events_are_published_by_subscribers_or_by_the_user(publishers: str) -> None:
    work = made(publishers=publishers, min_subscribers=2)
    held = work.interests
    for peer, topic in zip(work.publications.peer, work.publications.content, strict=True):
        subscribers = held.peer[held.content == topic]
        assert len(subscribers) >= 2
        assert peer in (subscribers if publishers == "subscribers" else [topic])


def test_events_by_popularity_are_of_users_with_many_subscribers() -> None:
    even, skewed = (made(event_topics=kind, events=3_000) for kind in ("uniform", "popularity"))
    size = np.bincount(even.interests.content, minlength=len(HOSTS))
    means = [size[work.publications.content].mean() for work in (even, skewed)]
    assert means[1] == pytest.approx((size**2).sum() / size.sum(), rel=0.05)
    assert means[1] > 1.2 * means[0]


def test_more_hosts_than_users_is_an_error() -> None:
    with pytest.raises(WorkloadError, match="^file: expected at least 151 users, .* found 150$"):
        draw_social_interests(FRIENDS, "friends", 151, 1)
