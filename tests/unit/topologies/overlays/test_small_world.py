"""Small-world overlays: greedy steps compared with a full scan, invariants, published values."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tests.fixtures.full_scan import FingerScan, Pair
from tests.fixtures.topic_interests import draw
from topologies.overlays import common_topics, greedy_pairs
from topologies.overlays.common_topics import CommonRows
from topologies.overlays.greedy_pairs import (
    PairBuckets,
    TopicComponents,
    choose_pairs,
)
from topologies.overlays.interests import make_interests
from topologies.overlays.kinds import find_overlay
from topologies.overlays.metrics import describe_overlay
from topologies.overlays.overlay import Overlay
from topologies.overlays.ring import count_phases
from topologies.overlays.small_world import (
    FingerSlots,
    SmallWorldFingers,
    SmallWorldSettings,
    finger_edges,
    make_fingers,
    plan_fingers,
)


@pytest.mark.parametrize(
    ("nodes", "topics", "each", "phases"),
    [(13, 6, 3, "floor"), (16, 4, 3, "ceil"), (21, 30, 3, "ceil"), (9, 1, 1, "floor")],
)
@pytest.mark.parametrize("seed", range(3))
def test_each_greedy_finger_contributes_most(
    nodes: int, topics: int, each: int, phases: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few pairs at once that contributions decrease within a bucket, and between parts of it.
    monkeypatch.setattr(greedy_pairs, "_PAIRS_AT_ONCE", 5)
    interests = draw(nodes, topics, each, seed=seed)
    count, rng = count_phases(nodes, phases), np.random.default_rng(seed)
    slots = FingerSlots(nodes, count, rng)
    taken = choose_pairs(interests, slots, TopicComponents(interests), rng)
    scan = FingerScan(interests, count)
    for a, b in taken.tolist():
        finger = (a, b) if b in slots.table[a] else (b, a)
        assert slots.table[finger[0], scan.phase(finger)] == finger[1]
        assert finger in scan.candidates
        assert scan.contribution(finger) == scan.best() > 0
        scan.take(finger)
    assert scan.best() == 0
    assert len(taken) == (slots.table >= 0).sum()


def test_ties_are_broken_at_random() -> None:
    # Three nodes subscribe to one topic; phase 1 of node 0 may have node 2 or 3.
    interests = make_interests(8, 1, [[0, 0], [2, 0], [3, 0]])
    tables = [
        make_fingers(interests, "greedy", "floor", np.random.default_rng(seed))
        for seed in range(200)
    ]
    assert np.mean([table[0, 1] == 2 for table in tables]) == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("fingers", ["chord", "random", "greedy"])
@pytest.mark.parametrize(
    ("nodes", "phases"),
    [(1, "floor"), (2, "floor"), (3, "ceil"), (64, "floor"), (100, "floor"), (100, "ceil")],
)
def test_every_phase_has_one_finger(nodes: int, phases: Any, fingers: Any) -> None:
    interests = draw(nodes, 12, 3)
    table = make_fingers(interests, fingers, phases, np.random.default_rng(2))
    distance = (table - np.arange(nodes)[:, None]) % nodes
    found = [[int(one).bit_length() - 1 for one in row] for row in distance]
    assert found == [list(range(count_phases(nodes, phases)))] * nodes
    assert (distance[:, :1] == 1).all()


def test_planned_fingers_are_those_of_the_overlay() -> None:
    interests = draw(50, 12, 3)
    wanted = [interests.topic[interests.node == node].tolist() for node in range(50)]
    planned = plan_fingers(wanted, "greedy", "floor", seed=5)
    settings = SmallWorldSettings()
    overlay = find_overlay("small-world").make(interests, settings, np.random.default_rng(5))
    assert overlay.directed and overlay.edges.tolist() == finger_edges(np.array(planned)).tolist()
    # Only the nodes of a topic matter, not its number.
    renamed = [[10**9 + 7 * topic for topic in some] for some in wanted]
    assert plan_fingers(renamed, "greedy", "floor", seed=5) == planned
    assert plan_fingers(wanted, "greedy", "floor", seed=6) != planned
    assert plan_fingers([[]], "greedy", "floor", seed=5) == [[]]


def test_pairs_are_those_with_common_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    interests = draw(60, 12, 3)
    wanted = [{*interests.topic[interests.node == node].tolist()} for node in range(60)]
    expected = {
        (a, b): len(common)
        for a, b in combinations(range(60), 2)
        if (common := wanted[a] & wanted[b])
    }
    for entries in (10**6, 100):
        monkeypatch.setattr(common_topics, "_ENTRIES_AT_ONCE", entries)
        buckets = PairBuckets.of(interests)
        found: dict[Pair, int] = {}
        while (popped := buckets.pop_highest(np.random.default_rng(1)))[0]:
            found |= {divmod(pair, 60): popped[0] for pair in popped[1].tolist()}
        assert found == expected
    a, b = np.array(list(expected)).T
    for cells in (10**6, 0):
        monkeypatch.setattr(common_topics, "_MOST_CELLS", cells)
        pair, row_a, row_b = CommonRows(interests).find(a, b)
        assert np.bincount(pair).tolist() == list(expected.values())
        assert interests.topic[row_a].tolist() == interests.topic[row_b].tolist()
        ends = np.sort(interests.node[np.column_stack((row_a, row_b))], axis=1)
        assert ends.tolist() == np.column_stack((a, b))[pair].tolist()


def test_tco_support_equals_published_values() -> None:
    """An independent implementation has 57 % at 1,000 nodes, and RandomSW less than a fifth."""
    interests = draw(1_000, 2_000, 20, seed=1)
    kinds: tuple[SmallWorldFingers, ...] = ("random", "greedy")
    support = {}
    for fingers in kinds:
        table = make_fingers(interests, fingers, "floor", np.random.default_rng(1))
        overlay = Overlay(interests, finger_edges(table), directed=True)
        support[fingers] = describe_overlay(overlay).tco_support
    assert support["greedy"] == pytest.approx(0.57, abs=0.015)
    assert support["random"] < support["greedy"] / 5
