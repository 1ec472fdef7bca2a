"""Matches of a workload, compared with all pairs of an event and an interest."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.content.kinds import match_boxes
from workloads.content.subscription import Point, Subscription
from workloads.kinds import WORKLOADS, draw_workload
from workloads.share import NEVER_US
from workloads.workload import Matches, Publications, lasting_interests, match_equal

FRIENDS = Path(__file__).parents[2] / "fixtures" / "social" / "friends.txt"
HOSTS = [f"h{number}" for number in range(1, 13)]
SECTIONS = {
    "content-uniform": {"events": 40, "subscriptions": 3, "match": 0.3, "attributes": 2},
    "content-zipf": {"events": 40, "subscriptions": 3, "match": 0.2, "churn": 0.3},
    "content-given": {"events": 40, "subscriptions": "h2: 1<=a0<=7; h2: everything; h9: 3<=a1<=4"},
    "topics-uniform": {"events": 40, "topics": 6, "topics_per_peer": "3"},
    "topics-zipf": {"events": 40, "topics": 6, "topics_per_peer": "1..4", "churn": 0.3},
    "topics-exponential": {"events": 40, "topics": 6, "publishers": "share-of-topic"},
    "topics-social": {"events": 40, "file": str(FRIENDS)},
    "topics-synthetic-social": {"events": 40, "mean_links": 4.0, "publishers": "owner"},
    "topics-given": {
        "subscriptions": "h2: 1 4; h3: 4; h9: 2",
        "publications": "".join(f"h{1 + n % 3}: {n % 5} at {n}\n" for n in range(40)),
    },
}


def publications(contents: list[int]) -> Publications:
    count = len(contents)
    return Publications(np.zeros(count, np.int64), np.array(contents, np.int64), np.arange(count))


def pairs(matches: Matches) -> set[tuple[int, int]]:
    found = list(zip(matches.event_id.tolist(), matches.interest.tolist(), strict=True))
    assert len(found) == len(set(found))
    return set(found)


@given(st.lists(st.integers(0, 66**5 - 1), max_size=30), st.lists(st.integers(0, 11**5 - 1)))
def test_boxes_match_the_points_in_them(boxes: list[int], points: list[int]) -> None:
    found = match_boxes(lasting_interests([0] * len(boxes), boxes), publications(points))
    assert pairs(found) == {
        (event_id, interest)
        for event_id, point in enumerate(points, start=1)
        for interest, box in enumerate(boxes)
        if Subscription(box).matches(Point(point))
    }


@given(st.lists(st.integers(0, 5), max_size=30), st.lists(st.integers(0, 5)))
def test_topics_match_their_own_events(wanted: list[int], published: list[int]) -> None:
    found = match_equal(lasting_interests([0] * len(wanted), wanted), publications(published))
    assert pairs(found) == {
        (event_id, interest)
        for event_id, topic in enumerate(published, start=1)
        for interest, one in enumerate(wanted)
        if one == topic
    }


@pytest.mark.parametrize("kind", WORKLOADS)
def test_parts_of_peers_add_up_to_the_workload_and_have_their_own_matches(kind: str) -> None:
    made = draw_workload({"kind": kind, **SECTIONS[kind]}, 5, HOSTS)
    shares = made.shares(len(HOSTS))
    own = [(peer, one) for peer, share in enumerate(shares) for one in share.interests]
    assert sorted(one.number for _, one in own) == list(range(len(made.interests)))
    assert all(one.content == made.interests.content[one.number] for _, one in own)
    matching = pairs(made.matches)
    published = [(peer, one) for peer, share in enumerate(shares) for one in share.publications]
    assert sorted(one.event_id for _, one in published) == list(range(1, 41))
    for peer, one in published:
        mine = {interest.number for interest in shares[peer].interests}
        assert set(one.own_interests) == {i for e, i in matching if e == one.event_id and i in mine}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_the_files_of_a_workload_have_its_content(kind: str, tmp_path: Path) -> None:
    made = draw_workload({"kind": kind, **SECTIONS[kind]}, 5, HOSTS)
    made.write(tmp_path, HOSTS)
    interests, published, matches = (
        pq.read_table(tmp_path / f"{name}.parquet").to_pydict()
        for name in ("interests", "publications", "matches")
    )
    assert interests["host"] == [HOSTS[peer] for peer in made.interests.peer]
    assert interests["content"] == made.interests.content.tolist()
    assert set(interests["until_us"]) == {None}
    assert published["event_id"] == list(range(1, 41))
    assert published["host"] == [HOSTS[peer] for peer in made.publications.peer]
    assert published["time_us"] == made.publications.time_us.tolist()
    assert set(zip(matches["event_id"], matches["interest"], strict=True)) == pairs(made.matches)


@pytest.mark.parametrize("kind", sorted({*WORKLOADS} - {"topics-given"}))
def test_a_seed_determines_the_workload(kind: str) -> None:
    section = {"kind": kind, **SECTIONS[kind]}
    first, again, other = (draw_workload(section, seed, HOSTS) for seed in (5, 5, 6))
    assert first.publications.content.tolist() == again.publications.content.tolist()
    assert first.interests.content.tolist() == again.interests.content.tolist()
    assert first.churn == again.churn
    assert first.publications.content.tolist() != other.publications.content.tolist()
    assert (first.interests.until_us == NEVER_US).all()
