"""Relative delay penalty (RDP) of deliveries, and the overlay hops they took.

RDP is the delay from publisher to subscriber over the overlay, divided by the unicast delay between
them (Tariq, Koldehofe and Rothermel, DEBS 2013, section 2). It is over the first delivery of each
event to each host other than its publisher; `analysis/metrics/overlay.py` has that over all pairs
of peers.
"""

from collections import Counter
from typing import Any

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.metrics.overlay import overlay_rdp
from analysis.metrics.statistics import relative_delay

DELIVERIES, PAIRS = "deliveries", "pairs"
_PARTS = (
    "Parts: mean, p50 (median), p90 (90th percentile), max; of_sums is the sum of all delays "
    "divided by the sum of all unicast delays."
)


def delivery_rdp(evidence: Evidence) -> dict[str, Any] | None:
    """RDP of deliveries by recorded times."""
    if evidence.why_missing(Input.DELIVERIES):
        return None
    return relative_delay(evidence.to_others, "delay_us")


def rdp_over(evidence: Evidence) -> str | None:
    """Whether `rdp` is over deliveries or over pairs of peers."""
    if delivery_rdp(evidence) is not None:
        return DELIVERIES
    return PAIRS if _pairs_rdp(evidence) is not None else None


def rdp(evidence: Evidence) -> dict[str, Any] | None:
    """RDP over deliveries; in a run without any, over all pairs of peers."""
    return delivery_rdp(evidence) or _pairs_rdp(evidence)


def _pairs_rdp(evidence: Evidence) -> dict[str, Any] | None:
    return None if evidence.why_missing(Input.OVERLAY) else overlay_rdp(evidence.overlay)


def _why_pairs(evidence: Evidence) -> str:
    if rdp_over(evidence) == DELIVERIES:
        return ""
    reason = evidence.why_missing(Input.DELIVERIES)
    return f"of the discovery overlay, over all pairs of peers: {reason}"


def _why_null(evidence: Evidence) -> str:
    why_no_pairs = evidence.why_missing(Input.OVERLAY) or "no pair of peers is connected"
    return f"{evidence.why_missing(Input.DELIVERIES)}; {why_no_pairs}"


def hops(evidence: Evidence) -> dict[str, Any] | None:
    """Overlay links between publisher and subscriber, over the same deliveries as RDP."""
    known = evidence.to_others["hops"].dropna()
    if known.empty:
        return None
    total, times = int(known.sum()), Counter(known.astype("int64").tolist())
    return {
        "mean": total / len(known),
        "max": int(known.max()),
        "count": len(known),
        "distribution": {str(length): n for length, n in sorted(times.items())},
    }


def _packet_rdp(evidence: Evidence) -> dict[str, Any] | None:
    delays = evidence.packets.delays if evidence.packets else None
    return None if delays is None else relative_delay(delays, "packets_us")


METRICS = (
    Metric(
        "rdp",
        "times unicast delay",
        "RDP",
        "Relative delay penalty: delay from publisher to subscriber over the overlay, divided by "
        "the unicast delay between them. Without events: over all ordered pairs of peers (see "
        f"`rdp_over`). {_PARTS}",
        Group.EVENTS,
        (Input.RECORDS,),
        rdp,
        why_null=_why_null,
        note=_why_pairs,
        headline=Headline(
            "RDP, mean",
            "mean",
            details=(("rdp.p50", "median"), ("rdp.p90", "90th percentile"), ("rdp.max", "maximum")),
        ),
        summary=(
            Part("mean", "RDP, mean"),
            Part("p90", "RDP, 90th percentile"),
            Part("max", "RDP, maximum"),
        ),
    ),
    Metric(
        "rdp_over",
        "",
        "RDP is over",
        "Whether `rdp` is over deliveries or, in a run without deliveries, over pairs of peers.",
        Group.EVENTS,
        (Input.RECORDS,),
        rdp_over,
        why_null="there is no RDP",
    ),
    Metric(
        "delivery_rdp",
        "times unicast delay",
        "RDP of deliveries",
        f"RDP from publisher to subscriber, over deliveries, by recorded times. {_PARTS}",
        Group.EVENTS,
        (Input.DELIVERIES,),
        delivery_rdp,
        why_null="no delivery has a unicast delay",
    ),
    Metric(
        "rdp_of_paths",
        "times unicast delay",
        "RDP of paths",
        "RDP of deliveries by the true delays of the links on their path, without waiting and "
        "processing. The difference from RDP is the time that hosts add.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        lambda evidence: relative_delay(evidence.to_others, "path_us"),
        why_null="the path of no delivery is known",
    ),
    Metric(
        "rdp_of_packets",
        "times unicast delay",
        "RDP of packets",
        "RDP of deliveries by the times of captured packets, from when an event left its "
        "publisher's host until it came to the subscriber's. The difference from RDP is the "
        "time that these two agents take.",
        Group.EVENTS,
        (Input.PACKETS, Input.FIXED_NETWORK, Input.DELIVERIES),
        _packet_rdp,
        why_null="the packets of no delivery were found",
    ),
    Metric(
        "hops",
        "overlay links",
        "Path length",
        "Overlay hops from the publisher to a subscriber, of the copy that was delivered: mean, "
        "maximum, number of deliveries (count), and deliveries by length (distribution).",
        Group.EVENTS,
        (Input.DELIVERIES,),
        hops,
        why_null="no delivery has a hop count",
        summary=(Part("mean", "Path length, mean"), Part("max", "Path length, maximum")),
    ),
)
