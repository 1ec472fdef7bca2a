"""The systems that BeaConvey's evaluation compares, on the same interests and publications.

A system is a way of routing on an overlay, as in `pie_sl`: BeaConvey's rules `po`, `pie` and `pal`,
`scribe`, or `iscribe`; on an overlay whose ring (s), long fingers (l), both or none are greedy.
Routing overhead, mean and longest path are divided by those of Scribe on the overlay `none`.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from topologies.overlays.arrays import Numbers
from topologies.overlays.beaconvey import (
    BeaConveyOverlaySettings,
    GreedyParts,
    choose_ring,
    make_fingers_on_ring,
    overlay_on_ring,
)
from topologies.overlays.dissemination import Counts
from topologies.overlays.interests import Interests
from topologies.overlays.kinds import find_pubsub
from topologies.overlays.nsmf import Rule, walk_ranges
from topologies.overlays.overlay import Overlay
from topologies.overlays.publications import draw_publications
from topologies.overlays.ring import Fingers, Phases
from topologies.overlays.scribe import ScribeSettings

ALL_OVERLAYS: tuple[GreedyParts, ...] = ("sl", "s", "l", "none")
FAMILIES = ("pie", "iscribe", "scribe")
RULES_OF_SL = ("po_sl", "pal_sl")
# The rows of tables 3 to 5.
ALL_SYSTEMS = (*(f"{way}_{name}" for way in FAMILIES for name in ALL_OVERLAYS), *RULES_OF_SL)
# The comparison of BeaConvey's rules.
RULE_SYSTEMS = ("po_sl", "pie_sl", "pal_sl")
BASELINE = "scribe_none"

_MIN_SUBSCRIBERS = 2
_RULES: dict[str, Rule] = {"po": "po", "pie": "pie", "pal": "pal"}
# Each use of randomness has its own stream, so that none depends on another.
_PUBLICATIONS, _GREEDY_RING, _RANDOM_RING, _FINGERS = range(4)


class Plain(NamedTuple):
    """The choice of fingers that are not greedy, and the number of phases."""

    fingers: Fingers
    phases: Phases


def compare_systems(
    interests: Interests, publications: int, seed: int, plain: Plain, systems: Sequence[str]
) -> dict[str, Any]:
    """Each system beside the baseline, and the processor time that the overlay `sl` took."""
    published = draw_publications(
        interests, publications, _MIN_SUBSCRIBERS, _random(seed, _PUBLICATIONS)
    )
    wanted = dict.fromkeys((BASELINE, *systems))
    overlays, seconds = _make_overlays(interests, seed, plain, wanted)
    counts = {}
    for system in wanted:
        way, _, name = system.partition("_")
        counts[system] = _disseminate(way, overlays[name], published)
        if counts[system].missed:
            raise AssertionError(f"{system}: expected no missed subscriber, found some")
    found = {system: _beside(counts[system], counts[BASELINE]) for system in wanted}
    split = _split(found) if set(systems) == set(ALL_SYSTEMS) else {}
    sizes = interests.sizes
    return {
        **found,
        **split,
        "seconds": seconds,
        "sample": {
            "nodes": interests.nodes,
            "topics_per_node": len(interests) / interests.nodes,
            "most_subscribers": int(sizes.max()),
            "published_topics": int((sizes >= _MIN_SUBSCRIBERS).sum()),
        },
    }


def _make_overlays(
    interests: Interests, seed: int, plain: Plain, systems: Mapping[str, Any]
) -> tuple[dict[str, Overlay], float]:
    """The overlays of some systems, and the processor time of `sl`; two have each ring."""
    names = {system.partition("_")[2] for system in systems}
    start_s = time.process_time()
    greedy = choose_ring(interests, _random(seed, _GREEDY_RING))
    ring_s = time.process_time() - start_s
    random = _random(seed, _RANDOM_RING).permutation(interests.nodes)
    overlays: dict[str, Overlay] = {}
    seconds = 0.0
    for name in (name for name in ALL_OVERLAYS if name in names):
        settings = BeaConveyOverlaySettings(
            overlay=name, fingers=plain.fingers, phases=plain.phases
        )
        ring = greedy if name in ("sl", "s") else random
        start_s = time.process_time()
        table = make_fingers_on_ring(interests, ring, settings, _random(seed, _FINGERS))
        if name == "sl":
            seconds = ring_s + time.process_time() - start_s
        overlays[name] = overlay_on_ring(interests, ring, table)
    return overlays, seconds


def _disseminate(way: str, overlay: Overlay, publications: Numbers) -> Counts:
    if way in _RULES:
        return walk_ranges(overlay, publications, _RULES[way]).total()
    return find_pubsub(way).disseminate(overlay, publications, ScribeSettings())


def _beside(counts: Counts, baseline: Counts) -> dict[str, float]:
    """Ratios against the baseline, and the mean path itself."""
    hops = counts.hops / counts.deliveries
    return {
        "overhead": counts.pure_forwarding / baseline.pure_forwarding,
        "path": hops / (baseline.hops / baseline.deliveries),
        "longest_path": counts.longest / baseline.longest,
        "hops": hops,
    }


def _split(found: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """The share of routing in the savings of (SL, Pie) against the best of both Scribe families."""
    saved = 1 - found["pie_sl"]["overhead"]
    trees = [f"{way}_{name}" for way in ("scribe", "iscribe") for name in ALL_OVERLAYS]
    by_overlay = 1 - min(found[system]["overhead"] for system in trees)
    return {"split": {"saved": saved, "routing_share": 1 - by_overlay / saved}}


def _random(seed: int, stream: int) -> np.random.Generator:
    return np.random.default_rng((seed, stream))
