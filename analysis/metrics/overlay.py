"""The shape of a discovery overlay and what it adds to delays and link loads.

The definitions are those of sections 2 and 6.1 of Tariq, Koldehofe and Rothermel, DEBS 2013. All
compare the overlay that a run ended with to the underlay it ran on, so they are the same for an
emulated and a simulated run that built the same overlay.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.measured_overlay import MeasuredOverlay
from analysis.metrics.metric import Group, Headline, Metric, Value
from analysis.metrics.statistics import ratio, spread
from analysis.overlay import PeerLink
from analysis.overlay_paths import OverlayPaths, count_pieces, count_tree_crossings


def delay_penalty(
    overlay: MeasuredOverlay, paths: OverlayPaths, pairs: NDArray[np.bool_] | None = None
) -> dict[str, Any] | None:
    """Delay over the overlay divided by unicast delay, as a distribution over pairs of peers.

    Over all ordered pairs that the paths connect, or those of them that are among `pairs`.
    `of_sums` is the sum of the former divided by the sum of the latter. A pair without any unicast
    delay has no penalty.
    """
    counts = paths.is_reached & (overlay.unicast.delay_us > 0)
    if pairs is not None:
        counts &= pairs
    over_us, direct_us = paths.delay_us[counts], overlay.unicast.delay_us[counts]
    found = spread(over_us / direct_us)
    return None if found is None else found | {"of_sums": float(over_us.sum() / direct_us.sum())}


def overlay_rdp(overlay: MeasuredOverlay) -> dict[str, Any] | None:
    """RDP over all ordered pairs of peers."""
    return delay_penalty(overlay, overlay.paths)


def stress_ratio(overlay: MeasuredOverlay) -> float | None:
    """Every peer broadcasts along its tree: link crossings divided by those of unicast."""
    paths, unicast = overlay.paths, overlay.unicast
    links, is_directed = overlay.overlay.links, overlay.overlay.is_directed
    crossed = count_tree_crossings(unicast, links, paths, is_directed)
    return ratio(crossed, int(unicast.crossings[paths.is_reached].sum()))


def stress_ratio_of_pairs(overlay: MeasuredOverlay) -> float | None:
    """Every peer sends to each other one by one: crossings divided by those of unicast."""
    is_reached = overlay.paths.is_reached
    crossed = int(overlay.paths.crossings[is_reached].sum())
    return ratio(crossed, int(overlay.unicast.crossings[is_reached].sum()))


def degrees(overlay: MeasuredOverlay, links: Iterable[PeerLink]) -> dict[str, Any]:
    """How many links a peer has, in a directed overlay its own, and how many peers have each."""
    ends = 1 if overlay.overlay.is_directed else 2
    count = Counter(end for link in links for end in link[:ends])
    held = [count[peer] for peer in overlay.overlay.peers]
    histogram = {str(degree): times for degree, times in sorted(Counter(held).items())}
    return {"mean": float(np.mean(held)), "max": max(held), "histogram": histogram}


def unreachable(overlay: MeasuredOverlay, paths: OverlayPaths) -> int:
    """Ordered pairs of peers without a path."""
    return overlay.pairs - int(paths.is_reached.sum())


def _metric(
    name: str,
    unit: str,
    label: str,
    explanation: str,
    measure: Callable[[MeasuredOverlay], Value],
    headline: Headline | None = None,
    why_null: str = "no pair of peers is connected",
) -> Metric:
    return Metric(
        name,
        unit,
        label,
        explanation,
        Group.OVERLAY,
        (Input.OVERLAY,),
        lambda evidence: measure(evidence.overlay),
        why_null=why_null,
        headline=headline,
    )


def one_sided(overlay: MeasuredOverlay) -> int | None:
    """Links that only one end holds; None where that is how links are."""
    return None if overlay.overlay.is_directed else overlay.overlay.one_sided


def _peers(evidence: Evidence) -> int:
    return len(evidence.run.overlay.peers)


METRICS = (
    Metric(
        "peers", "hosts", "Peers", "Hosts whose agents ran to the end of the run.",
        Group.OVERLAY, (Input.RECORDS,), _peers, headline=Headline("Peers"),
    ),
    _metric(
        "overlay_links", "links", "Overlay links",
        "Links that both ends hold at the end, near and distant. In a directed overlay, links that "
        "their owners hold; paths then follow their direction.",
        lambda o: len(o.overlay.links),
        Headline("Overlay links", details=(("degree.mean", "mean degree"),)),
    ),
    _metric(
        "distant_links", "links", "Distant links",
        "Overlay links that neither end holds as a near link; they keep the overlay connected.",
        lambda o: len(o.overlay.distant),
    ),
    _metric(
        "one_sided_links", "links", "One-sided links",
        "Links that only one end holds; 0 in a stable overlay.",
        one_sided, why_null="the links of this overlay are one-way",
    ),
    _metric(
        "stale_links", "links", "Stale links", "Links to hosts that are no longer peers.",
        lambda o: o.overlay.stale,
    ),
    _metric(
        "components", "components", "Connected components",
        "Connected components of the overlay; 1 if every peer can reach every other.",
        lambda o: count_pieces(o.unicast, o.overlay.links),
    ),
    _metric(
        "components_near", "components", "Connected components without distant links",
        "Connected components if only near links count.",
        lambda o: count_pieces(o.unicast, o.overlay.near),
    ),
    _metric(
        "degree", "links", "Degree",
        "Overlay links of a peer; in a directed overlay, the links that it owns.",
        lambda o: degrees(o, o.overlay.links),
    ),
    _metric(
        "degree_near", "links", "Degree, near links", "Near overlay links of a peer.",
        lambda o: degrees(o, o.overlay.near),
    ),
    _metric(
        "overlay_rdp", "times unicast delay", "RDP of the overlay",
        "Delay of the shortest path over the overlay divided by unicast delay, over all ordered "
        "pairs of peers. Parts: mean, p50 (median), p90 (90th percentile), max; of_sums is the sum "
        "of all delays divided by the sum of all unicast delays.",
        overlay_rdp,
    ),
    _metric(
        "rdp_without_last_miles", "times unicast delay", "RDP without last miles",
        "RDP of the overlay without the delay of the last miles of intermediate peers.",
        lambda o: delay_penalty(o, o.short_paths),
    ),
    _metric(
        "rdp_near", "times unicast delay", "RDP over near links",
        "RDP of the overlay if only near links are used, over the pairs that they connect (see "
        "`rdp_near_left_out`).",
        lambda o: delay_penalty(o, o.near_paths),
    ),
    _metric(
        "rdp_near_without_last_miles", "times unicast delay",
        "RDP over near links without last miles",
        "RDP over near links without the delay of the last miles of intermediate peers.",
        lambda o: delay_penalty(o, o.short_near_paths),
    ),
    _metric(
        "rdp_near_left_out", "share", "Pairs left out of RDP over near links",
        "Share of the ordered pairs of peers that near links do not connect, which RDP over near "
        "links leaves out.",
        lambda o: ratio(unreachable(o, o.near_paths), o.pairs),
    ),
    _metric(
        "rdp_of_near_pairs", "times unicast delay", "RDP of pairs that near links connect",
        "RDP of the overlay over all links, over the pairs that near links connect; compare it "
        "with RDP over near links, which is over the same pairs.",
        lambda o: delay_penalty(o, o.paths, o.near_paths.is_reached),
    ),
    _metric(
        "unreachable_pairs", "pairs", "Unreachable pairs",
        "Ordered pairs of peers with no path over the overlay; they are in no other metric.",
        lambda o: unreachable(o, o.paths),
    ),
    _metric(
        "unreachable_pairs_near", "pairs", "Unreachable pairs over near links",
        "Ordered pairs of peers with no path over near links.",
        lambda o: unreachable(o, o.near_paths),
    ),
    _metric(
        "stress_ratio", "times unicast crossings", "Stress ratio",
        "Every peer broadcasts once along its shortest-path tree over the overlay: links crossed, "
        "divided by those of sending to every peer by unicast. Below 1 the overlay saves traffic.",
        stress_ratio,
        Headline("Stress ratio", details=(("stress_ratio_pairs", "of pairs"),)),
    ),
    _metric(
        "stress_ratio_pairs", "times unicast crossings", "Stress ratio of pairs",
        "Every peer sends to each other peer separately over the overlay: links crossed, divided "
        "by those of unicast.",
        stress_ratio_of_pairs,
    ),
)  # fmt: skip
