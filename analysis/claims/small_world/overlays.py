"""Measurements of small-world overlays, on which the claims about them are decided."""

from typing import Any

import numpy as np

from topologies.overlays.interests import make_interests
from topologies.overlays.metrics import tco_support
from topologies.overlays.nsmf import walk_ranges
from topologies.overlays.overlay import Overlay
from topologies.overlays.publications import draw_publications
from topologies.overlays.ring import Phases
from topologies.overlays.small_world import SmallWorldFingers, finger_edges, make_fingers
from workloads.topics.interests import draw_interests
from workloads.topics.popularity import Popularity

GREEDY: SmallWorldFingers = "greedy"
BASELINES: tuple[SmallWorldFingers, ...] = ("chord", "random")

_TOPICS_PER_NODE = 20
# Each use of randomness has its own stream, so that none depends on another.
_PUBLICATIONS, _FINGERS = range(2)


def measure_small_world(
    seed: int, nodes: int, topics: int, publications: int, phases: Phases
) -> dict[str, Any]:
    """The three overlays for the same interests and publications; topics are equally popular."""
    wanted = draw_interests(nodes, topics, _TOPICS_PER_NODE, Popularity("uniform"), seed)
    interests = make_interests(nodes, topics, np.column_stack(wanted))
    published = draw_publications(interests, publications, 0, _random(seed, _PUBLICATIONS))
    found: dict[str, dict[str, Any]] = {}
    for kind in (GREEDY, *BASELINES):
        table = make_fingers(interests, kind, phases, _random(seed, _FINGERS))
        overlay = Overlay(interests, finger_edges(table), directed=True)
        counts = walk_ranges(overlay, published, "po").total()
        if counts.missed:
            raise AssertionError(f"expected no subscriber to be missed, found {counts.missed}")
        found[kind] = {
            "pure_forwarding": counts.pure_forwarding,
            "path": counts.hops / counts.deliveries,
            "longest_path": counts.longest,
            "support": tco_support(overlay),
        }
    for kind in BASELINES:
        found[kind] |= _compare(found[kind], found[GREEDY])
    return {**found, "deliveries": counts.deliveries}


def _compare(baseline: dict[str, Any], greedy: dict[str, Any]) -> dict[str, Any]:
    overhead = baseline["pure_forwarding"] / greedy["pure_forwarding"]
    return {
        "extra_overhead_percent": 100 * (overhead - 1),
        "path_ratio": baseline["path"] / greedy["path"],
        "support_ratio": greedy["support"] / baseline["support"],
    }


def _random(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng((seed, stream))
