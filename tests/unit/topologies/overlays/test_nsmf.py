"""NSMF and the rules of BeaConvey offline: the papers' examples, edge cases, published values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.fixtures.topic_interests import draw
from topologies.errors import TopologyError
from topologies.overlays.interests import make_interests
from topologies.overlays.kinds import find_overlay, find_pubsub
from topologies.overlays.nsmf import Rule, walk_ranges
from topologies.overlays.overlay import Overlay
from topologies.overlays.publications import draw_publications

RULES: tuple[Rule, ...] = ("po", "pal", "pie")


def circle(fingers: dict[int, Sequence[int]], subscribers: Sequence[int]) -> Overlay:
    """The full ring of 16 nodes of the papers, with extra fingers for some nodes, and one topic."""
    edges = [(node, (node + 1) % 16) for node in range(16)]
    edges += [(node, to) for node, some in fingers.items() for to in some if to != node + 1]
    interests = make_interests(16, 1, [[node, 0] for node in subscribers])
    return Overlay(interests, np.array(edges), directed=True)


def count(overlay: Overlay, rule: Rule, span: int | None = None, publisher: int = 1) -> Any:
    """Messages, pure forwarding, deliveries and hops of one publication."""
    found = walk_ranges(overlay, np.array([[publisher, 0]]), rule, span).total()
    return found.messages, found.pure_forwarding, found.deliveries, found.hops


def test_the_example_of_nsmf() -> None:
    overlay = circle({1: [2, 4, 7, 11], 4: [5], 7: [9]}, [1, 5, 7, 9, 11, 14])
    # 1 to 4 to 5, and 1 to 7 to 9: three deliveries; 4 only forwards.
    assert count(overlay, "po", span=9) == (4, 1, 3, 2 + 1 + 2)


@pytest.mark.parametrize(
    ("fingers", "rule", "expected"),
    [
        # 1 to 3 to 4, and 1 to 7 to 10.
        ([2, 3, 7, 9], "po", (4, 1, 3, 2 + 1 + 2)),
        ([2, 3, 7, 9], "pie", (4, 1, 3, 2 + 1 + 2)),
        # 1 to 3 to 4, 4 to 5, 6 and 7, and 7 to 10.
        ([2, 3, 5, 9], "po", (6, 3, 3, 2 + 5 + 6)),
        # As before up to 7; the pivot 9 sends to 10.
        ([2, 3, 5, 9], "pie", (7, 4, 3, 2 + 5 + 2)),
        ([2, 3, 5, 9], "pal", (7, 4, 3, 2 + 5 + 2)),
        # Without a finger in the far half.
        ([2, 3, 5], "pie", (6, 3, 3, 2 + 5 + 6)),
        # The pivot is 6, the first node of the far half, reached over 5. It sends to 7, and to the
        # next pivot 9 over 7 and 8; 9 sends to 10. Subscriber 7 also forwards.
        ([2, 3, 5], "pal", (9, 5, 3, 2 + 3 + 6)),
    ],
)
def test_the_example_of_beaconvey(
    fingers: list[int], rule: Rule, expected: tuple[int, ...]
) -> None:
    overlay = circle({1: fingers, 7: [10]}, [1, 4, 7, 10, 12, 14])
    assert count(overlay, rule, span=10) == expected


@pytest.mark.parametrize("rule", RULES)
def test_a_publisher_that_is_the_only_subscriber_sends_nothing(rule: Rule) -> None:
    assert count(circle({}, [1]), rule) == (0, 0, 0, 0)
    assert count(circle({}, []), rule) == (0, 0, 0, 0)


def test_a_publisher_without_subscription_reaches_all_subscribers() -> None:
    # Nodes 2 to 15 and node 0 in a row: 15 sends, and the last node is subscriber 0.
    assert count(circle({}, [0, 4]), "po") == (15, 13, 2, 3 + 15)


def test_a_ring_of_one_node_sends_nothing() -> None:
    alone = Overlay(make_interests(1, 1, [[0, 0]]), np.empty((0, 2), dtype=np.int64))
    assert count(alone, "pal", publisher=0) == (0, 0, 0, 0)


def test_subscribers_in_ranges_without_a_finger_are_missed() -> None:
    interests = make_interests(4, 1, [[node, 0] for node in range(4)])
    path = Overlay(interests, np.array([[0, 1], [1, 2]]), directed=True)
    found = walk_ranges(path, np.array([[0, 0]]), "po")
    assert (found.messages[0], found.deliveries[0], found.missed[0]) == (2, 2, 1)


def test_halves_are_those_of_positions_on_a_sparse_ring() -> None:
    # Nodes 0 to 3 at positions 0, 1, 2 and 2^63 + 5: only 3 is in the far half of the whole ring.
    position = np.array([0, 1, 2, 2**63 + 5], dtype=np.uint64)
    interests = make_interests(4, 1, [[0, 0], [1, 0]])
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]])
    sparse = Overlay(interests, edges, directed=True, position=position)
    full = Overlay(interests, edges, directed=True)
    # On the full ring 2 is in the far half; on the sparse ring the middle is reached over 2.
    assert count(full, "pie", publisher=0) == (2, 1, 1, 1)
    assert count(sparse, "pie", publisher=0) == (1, 0, 1, 1)
    assert count(sparse, "pal", publisher=0) == (3, 2, 1, 1)


def test_a_middle_without_a_node_after_it_costs_nothing() -> None:
    # No node is after the middle of the whole ring, so the root of the middle is 0 itself.
    position = np.array([0, 1, 9], dtype=np.uint64)
    overlay = Overlay(
        make_interests(3, 1, [[0, 0], [1, 0]]),
        np.array([[0, 1], [1, 2], [2, 0]]),
        directed=True,
        position=position,
    )
    assert count(overlay, "pal", publisher=0) == (1, 0, 1, 1)


def test_a_middle_whose_root_is_beyond_the_range_costs_the_path_to_it() -> None:
    # The range of 1 is positions 1 to 99: its middle is 50, and the next node is at 100.
    position = np.array([0, 1, 2, 100], dtype=np.uint64)
    overlay = Overlay(
        make_interests(4, 1, [[1, 0], [2, 0], [3, 0]]),
        np.array([[0, 1], [1, 2], [2, 3], [3, 0]]),
        directed=True,
        position=position,
    )
    # 1 to 2, and 1 over 2 to 3, which subscribes but is outside the range.
    assert count(overlay, "pal", span=99) == (1 + 2, 0, 1, 1)


@pytest.mark.parametrize("kind", ["pastry", "skip-net"])
@pytest.mark.parametrize("pubsub", ["nsmf", "beaconvey"])
def test_other_overlays_are_refused(kind: str, pubsub: str) -> None:
    overlay = Overlay(make_interests(1, 1, []), np.empty((0, 2), dtype=np.int64), kind=kind)
    cls = find_pubsub(pubsub)
    with pytest.raises(TopologyError, match=f"expected .* by position, found {kind}"):
        cls.disseminate(overlay, np.empty((0, 2), dtype=np.int64), cls.Settings())


def test_counts_of_batches_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    interests = draw(64, 20, 3)
    overlay = find_overlay("ring").make(
        interests, find_overlay("ring").Settings(), np.random.default_rng(1)
    )
    publications = draw_publications(interests, 200, 0, np.random.default_rng(2))
    whole = walk_ranges(overlay, publications, "pal").total()
    assert whole.publications == 200
    monkeypatch.setattr("topologies.overlays.nsmf._SUBSCRIBERS_AT_ONCE", 15)
    assert walk_ranges(overlay, publications, "pal").total() == whole


def test_path_lengths_equal_an_independent_implementation() -> None:
    # Chord with 10,000 nodes and 2,000 topics: 122 hops there, 112 in the paper.
    interests = draw(10_000, 2_000, 20)
    cls = find_overlay("ring")
    overlay = cls.make(interests, cls.Settings(fingers="chord"), np.random.default_rng(1))
    publications = draw_publications(interests, 200, 0, np.random.default_rng(2))
    found = walk_ranges(overlay, publications, "po").total()
    assert found.missed == 0
    assert found.messages == found.deliveries + found.pure_forwarding
    assert found.hops / found.deliveries == pytest.approx(122, rel=0.06)
