"""The figures of merit of a discovery overlay (sections 2 and 6.1 of the TDO paper).

All compare the overlay that a run ended with to the underlay it ran on, so they are the same
for an emulated and a simulated run that built the same overlay. What "between all peers" means
is decided here once: all ordered pairs of the hosts whose agents lived to the end.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.metrics.file import merge_metrics
from analysis.metrics.found_links import count_true_routes, find_links
from analysis.metrics.overlay_paths import (
    OverlayPaths,
    count_pieces,
    count_tree_crossings,
    find_paths,
)
from analysis.overlay import FoundRoute, Overlay, PeerLink, read_overlay
from analysis.unicast import Unicast
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay

Metrics = dict[str, Any]

_SUBJECT = "overlay"
_JOIN_KINDS = ("Join", "Connect", "NewParent", "Accept", "Disconnect")
_NO_ROUTES = "no agent inferred a route"
_NAMES = (
    "peers", "overlay_links", "distant_links", "one_sided_links", "stale_links", "components",
    "components_near", "degree", "degree_near", "rdp", "overlay_rdp", "rdp_without_last_miles",
    "rdp_near", "rdp_near_without_last_miles", "unreachable_pairs", "unreachable_pairs_near",
    "stress_ratio", "stress_ratio_pairs", "discovered_links", "discovered_links_of_all",
    "discovered_links_precision", "mapped_links", "inference_score", "inferences",
    "inferences_count", "routes_true", "routes_reached", "known_routes_count",
    "known_routes_true", "join_messages", "messages_by_kind",
)  # fmt: skip


def measure_run(run: Path) -> Metrics:
    """The metrics of a run's overlay, which are also added to its `analysis/metrics.json`."""
    underlay = load_underlay(run / "underlay.json")
    return add_metrics(run, underlay, read_overlay(run, underlay))


def add_metrics(run: Path, underlay: Underlay, overlay: Overlay) -> Metrics:
    """Measure the overlay of a run, and add what was found to its `analysis/metrics.json`."""
    metrics = measure_overlay(Unicast(underlay, overlay.peers), overlay)
    notes = metrics.pop("notes")
    merge_metrics(run, _SUBJECT, metrics, notes)
    return {**metrics, "notes": notes}


def measure_overlay(unicast: Unicast, overlay: Overlay) -> Metrics:
    """The metrics of an overlay beside unicast; what cannot be told is null, with a note."""
    metrics: Metrics = dict.fromkeys(_NAMES)
    notes = {_SUBJECT: "; ".join(overlay.notes)} if overlay.notes else {}
    metrics["peers"] = len(overlay.peers)
    reason = _why_not(overlay)
    if reason is None:
        metrics |= _shape(unicast, overlay)
        metrics |= _penalties(unicast, overlay)
        metrics |= _discovery(unicast, overlay)
        metrics |= _inferences(unicast, overlay)
        metrics |= _messages(overlay)
    notes |= {name: reason or why for name, why in _REASONS.items() if metrics[name] is None}
    return {**metrics, "notes": notes}


# Why each metric is null, if it is although there is an overlay.
_REASONS = dict.fromkeys(_NAMES, "no pair of peers is connected") | {
    "discovered_links_precision": _NO_ROUTES,
    "inference_score": _NO_ROUTES,
    "routes_true": _NO_ROUTES,
    "routes_reached": _NO_ROUTES,
    "known_routes_true": "no agent derived a route",
    "join_messages": "no agent lived to say what it sent",
    "messages_by_kind": "no agent lived to say what it sent",
}


def _why_not(overlay: Overlay) -> str | None:
    if not overlay.is_recorded:
        return "no agent recorded neighbours or routes"
    if len(overlay.peers) < 2:
        return f"expected at least 2 peers at the end, found {len(overlay.peers)}"
    return None


def _shape(unicast: Unicast, overlay: Overlay) -> Metrics:
    return {
        "overlay_links": len(overlay.links),
        "distant_links": len(overlay.distant),
        "one_sided_links": overlay.one_sided,
        "stale_links": overlay.stale,
        "components": count_pieces(unicast, overlay.links),
        "components_near": count_pieces(unicast, overlay.near),
        "degree": _degrees(overlay, overlay.links),
        "degree_near": _degrees(overlay, overlay.near),
    }


def _degrees(overlay: Overlay, links: Iterable[PeerLink]) -> Metrics:
    """How many links a peer has, and how many peers have each number."""
    count = Counter(end for link in links for end in link)
    degrees = [count[peer] for peer in overlay.peers]
    histogram = {str(degree): times for degree, times in sorted(Counter(degrees).items())}
    return {"mean": float(np.mean(degrees)), "max": max(degrees), "histogram": histogram}


def _penalties(unicast: Unicast, overlay: Overlay) -> Metrics:
    """RDP and stress ratios, over the pairs that the overlay connects."""
    near = paths = find_paths(unicast, overlay.links)
    short_near = short = find_paths(unicast, overlay.links, last_miles=False)
    if overlay.distant:
        near = find_paths(unicast, overlay.near)
        short_near = find_paths(unicast, overlay.near, last_miles=False)
    pairs = len(overlay.peers) * (len(overlay.peers) - 1)
    overlay_rdp = delay_penalty(unicast, paths)
    return {
        "rdp": overlay_rdp,  # which that of deliveries replaces, if there are any
        "overlay_rdp": overlay_rdp,
        "rdp_without_last_miles": delay_penalty(unicast, short),
        "rdp_near": delay_penalty(unicast, near),
        "rdp_near_without_last_miles": delay_penalty(unicast, short_near),
        "unreachable_pairs": pairs - int(paths.is_reached.sum()),
        "unreachable_pairs_near": pairs - int(near.is_reached.sum()),
        "stress_ratio": stress_ratio(unicast, overlay.links, paths),
        "stress_ratio_pairs": stress_ratio_of_pairs(unicast, paths),
    }


def delay_penalty(unicast: Unicast, paths: OverlayPaths) -> Metrics | None:
    """Delay over the overlay divided by unicast delay, as a distribution over all pairs.

    `of_sums` is the sum of the former divided by the sum of the latter. A pair without any
    unicast delay has no penalty.
    """
    counts = paths.is_reached & (unicast.delay_us > 0)
    if not counts.any():
        return None
    over_us, direct_us = paths.delay_us[counts], unicast.delay_us[counts]
    spread = _spread(over_us / direct_us)
    return spread | {"of_sums": float(over_us.sum() / direct_us.sum())}


def stress_ratio(unicast: Unicast, links: Iterable[PeerLink], paths: OverlayPaths) -> float | None:
    """Every peer broadcasts along its tree: link crossings divided by those of unicast."""
    direct = int(unicast.crossings[paths.is_reached].sum())
    return count_tree_crossings(unicast, links, paths) / direct if direct else None


def stress_ratio_of_pairs(unicast: Unicast, paths: OverlayPaths) -> float | None:
    """Every peer sends to each other one by one: crossings divided by those of unicast."""
    direct = int(unicast.crossings[paths.is_reached].sum())
    return int(paths.crossings[paths.is_reached].sum()) / direct if direct else None


def _spread(values: NDArray[np.float64]) -> Metrics:
    p50, p90 = np.percentile(values, (50, 90)).tolist()
    return {"mean": float(values.mean()), "p50": p50, "p90": p90, "max": float(values.max())}


def _discovery(unicast: Unicast, overlay: Overlay) -> Metrics:
    """Links that probing showed, links under the overlay, and how right the former are.

    The whole is the links on any unicast route between two peers.
    """
    found = find_links(unicast, overlay.inferred)
    there_and_back = {pair for a, b in overlay.near for pair in ((a, b), (b, a))}
    mapped = unicast.links_on(there_and_back)
    true = int(found.true.sum())
    seen = true + found.false
    on_probed = int((found.true & found.probed).sum())
    routers = len(found.routers & found.probed_routers)
    return {
        "discovered_links": _share((found.true & unicast.used).sum(), unicast.used.sum()),
        "discovered_links_of_all": _share(true, len(found.true)),
        "discovered_links_precision": _share(true, seen),
        "mapped_links": _share(mapped.sum(), unicast.used.sum()),
        "inference_score": {
            "precision": _share(on_probed, seen),
            "recall": _share(on_probed, found.probed.sum()),
            "router_precision": _share(routers, len(found.routers)),
            "router_recall": _share(routers, len(found.probed_routers)),
        }
        if overlay.inferred
        else None,
    }


def _inferences(unicast: Unicast, overlay: Overlay) -> Metrics:
    count = len(overlay.inferred)
    return {
        "inferences": count / (len(overlay.peers) * (len(overlay.peers) - 1)),
        "inferences_count": count,
        "routes_true": _share_true(unicast, overlay.inferred),
        "routes_reached": _share(sum(route.is_reached for route in overlay.inferred), count),
        "known_routes_count": len(overlay.known),
        "known_routes_true": _share_true(unicast, overlay.known),
    }


def _share_true(unicast: Unicast, routes: tuple[FoundRoute, ...]) -> float | None:
    return _share(count_true_routes(unicast, routes), len(routes))


def _messages(overlay: Overlay) -> Metrics:
    sent: Mapping[str, int] = overlay.sent_by_kind
    if not sent:
        return {}
    joins = sum(sent.get(kind, 0) for kind in _JOIN_KINDS)
    return {"join_messages": joins, "messages_by_kind": dict(sent)}


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None
