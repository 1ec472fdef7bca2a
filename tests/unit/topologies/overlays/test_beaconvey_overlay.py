"""Overlays of BeaConvey: each greedy step compared with a full scan, and common properties."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.fixtures.full_scan import FingerScan, RingScan
from tests.fixtures.topic_interests import draw
from topologies.overlays import beaconvey, greedy_pairs
from topologies.overlays.beaconvey import (
    BeaConveyOverlaySettings,
    RingPaths,
    choose_long_fingers,
    choose_ring,
    plan_overlay,
)
from topologies.overlays.greedy_pairs import TopicComponents, choose_pairs
from topologies.overlays.interests import make_interests
from topologies.overlays.kinds import find_overlay, find_pubsub
from topologies.overlays.metrics import describe_overlay
from topologies.overlays.publications import draw_publications
from topologies.overlays.ring import count_phases

SIZES = [(13, 6, 3), (16, 4, 3), (20, 30, 3), (9, 1, 1)]
KINDS = ["sl", "s", "l", "none"]


@pytest.fixture
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few pairs at once that contributions decrease within a bucket, and between parts of it."""
    monkeypatch.setattr(greedy_pairs, "_PAIRS_AT_ONCE", 5)


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize(("nodes", "topics", "each"), SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_each_greedy_neighbour_contributes_most(
    nodes: int, topics: int, each: int, seed: int
) -> None:
    interests, rng = draw(nodes, topics, each, seed=seed), np.random.default_rng(seed)
    paths, scan = RingPaths(nodes), RingScan(interests)
    taken = choose_pairs(interests, paths, TopicComponents(interests), rng)
    for pair in map(tuple, taken.tolist()):
        assert pair in scan.candidates
        assert scan.contribution(pair) == scan.best() > 0
        scan.take(pair)
    assert scan.best() == 0
    rows = [row.tolist() for row in paths.rows()]
    assert sorted(np.concatenate(rows)) == list(range(nodes))
    links = {frozenset(link) for row in rows for link in pairwise(row)}
    assert links == {frozenset(pair) for pair in taken.tolist()}


@pytest.mark.usefixtures("few_at_once")
@pytest.mark.parametrize(("nodes", "topics", "each"), SIZES)
@pytest.mark.parametrize("phases", ["floor", "ceil"])
@pytest.mark.parametrize("seed", range(2))
def test_each_greedy_long_finger_contributes_most(
    nodes: int, topics: int, each: int, phases: Any, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Any] = []
    monkeypatch.setattr(
        beaconvey, "choose_pairs", lambda *given: taken.extend(choose_pairs(*given).tolist())
    )
    interests, rng = draw(nodes, topics, each, seed=seed), np.random.default_rng(seed)
    ring, count = rng.permutation(nodes), count_phases(nodes, phases)
    table = choose_long_fingers(interests, ring, count, rng)
    # In ranks, like phases.
    wanted = interests.pairs()
    ranked = make_interests(nodes, topics, [[ring.tolist().index(v), t] for v, t in wanted])
    scan = FingerScan(ranked, count, 1, [(rank, (rank + 1) % nodes) for rank in range(nodes)])
    for a, b in taken:
        finger = (a, b) if b in table[a, 1:] else (b, a)
        assert table[finger[0], scan.phase(finger)] == finger[1]
        assert finger in scan.candidates
        assert scan.contribution(finger) == scan.best() > 0
        scan.take(finger)
    assert scan.best() == 0


def test_a_greedy_ring_places_common_interests_together() -> None:
    interests = make_interests(40, 10, [[node, node % 10] for node in range(40)])
    for seed in range(5):
        ring = choose_ring(interests, np.random.default_rng(seed))
        neighbours = list(zip(ring % 10, np.roll(ring % 10, -1), strict=True))
        # Four nodes for each of ten topics: at least a path of three links for each topic.
        assert sum(a == b for a, b in neighbours) == 30


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fingers", ["random", "chord"])
@pytest.mark.parametrize(("nodes", "phases"), [(1, "floor"), (2, "ceil"), (100, "floor")])
def test_every_phase_has_one_finger(kind: Any, fingers: Any, nodes: int, phases: Any) -> None:
    settings = BeaConveyOverlaySettings(overlay=kind, fingers=fingers, phases=phases)
    interests = draw(nodes, 12, 3)
    overlay = find_overlay("beaconvey").make(interests, settings, np.random.default_rng(3))
    assert overlay.position is not None and overlay.directed
    rank = overlay.position.astype(np.int64)
    assert sorted(rank) == list(range(nodes))
    start, end = overlay.edges.T
    distance = (rank[end] - rank[start]) % nodes
    phase = np.frexp(distance)[1] - 1
    count = count_phases(nodes, phases)
    found = sorted(zip(start.tolist(), phase.tolist(), strict=True))
    assert found == [(node, i) for node in range(nodes) for i in range(count)]
    is_chord = fingers == "chord" and kind in ("s", "none")
    assert not is_chord or (distance == 1 << phase).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_plan_equals_the_overlay(kind: Any) -> None:
    interests = draw(50, 12, 3)
    wanted = [interests.topic[interests.node == node].tolist() for node in range(50)]
    settings = BeaConveyOverlaySettings(overlay=kind)
    plan = plan_overlay(wanted, settings, seed=5)
    overlay = find_overlay("beaconvey").make(interests, settings, np.random.default_rng(5))
    assert overlay.position is not None and overlay.position.tolist() == plan.rank
    planned = {(node, finger) for node, row in enumerate(plan.fingers) for finger in row}
    assert planned == set(map(tuple, overlay.edges.tolist()))
    assert plan_overlay(wanted, settings, seed=6) != plan


def test_greedy_parts_support_more_topics_at_lower_cost() -> None:
    interests = draw(300, 100, 10, "zipf")
    publications = draw_publications(interests, 100, 2, np.random.default_rng(1))
    support, overhead = {}, {}
    for kind in ("sl", "s", "l", "none"):
        settings = BeaConveyOverlaySettings(overlay=kind)
        overlay = find_overlay("beaconvey").make(interests, settings, np.random.default_rng(2))
        pubsub = find_pubsub("beaconvey")
        counts = pubsub.disseminate(overlay, publications, pubsub.Settings())
        assert counts.missed == counts.duplicates == 0
        support[kind] = describe_overlay(overlay).tco_support
        overhead[kind] = counts.pure_forwarding
    assert support["sl"] > max(support["s"], support["none"]) and support["l"] > support["none"]
    assert overhead["sl"] < overhead["s"] < overhead["none"]
    assert overhead["l"] < overhead["none"]
