"""When the claims about generators hold: means over seeds beside ranges of the original programs.

Single networks of one program differ, and the ranges are of a few of them. So a mean may leave a
range by a stated share. Maxima are reported and decide nothing: they are of single routers and
pairs, and grow with the number of networks that are looked at.
"""

from dataclasses import dataclass

from analysis.claims.evidence import (
    Comparison,
    Estimate,
    Evidence,
    Finding,
    Part,
    SweepRows,
    Values,
    show,
)

WAXMAN, TRANSIT_STUB = "waxman-networks", "transit-stub-networks"
WAXMAN_ROUTERS, TRANSIT_STUB_ROUTERS = 1_640, 1_584

_HOPS = "hops.mean"
# The transit domains of a transit-stub network may form anything from a row to a mesh.
_WAXMAN_SLACK, _LINKS_SLACK, _TRANSIT_STUB_SLACK = 0.02, 0.02, 0.05


@dataclass(frozen=True, slots=True)
class _Range:
    """What networks of the original program have, and by which share a mean may leave it."""

    name: str
    column: str
    low: float
    high: float
    slack: float = 0.0
    digits: int = 2


_WAXMAN_RANGES = (
    _Range("links", "network.links", 3_280, 3_280, digits=0),
    _Range("mean degree", "degree.mean", 4, 4),
    _Range("mean hops", _HOPS, 5.20, 5.24, _WAXMAN_SLACK),
)
_TRANSIT_STUB_RANGES = (
    _Range("routers", "network.routers", 1_584, 1_584, digits=0),
    _Range("links", "network.links", 2_788, 2_838, _LINKS_SLACK, 0),
    _Range("mean degree", "degree.mean", 3.52, 3.58, _LINKS_SLACK),
    _Range("mean hops", _HOPS, 8.27, 8.40, _TRANSIT_STUB_SLACK),
)


def waxman_is_like_brite(evidence: Evidence) -> Finding:
    """G1: links and mean degree as in BRITE's networks, mean hops within 2 % of their range."""
    return _compare(evidence[WAXMAN], WAXMAN_ROUTERS, _WAXMAN_RANGES, "18 to 23", "8 to 9")


def transit_stub_is_like_gt_itm(evidence: Evidence) -> Finding:
    """G2: routers as in GT-ITM's networks, links and degree within 2 %, mean hops within 5 %."""
    rows = evidence[TRANSIT_STUB]
    return _compare(rows, TRANSIT_STUB_ROUTERS, _TRANSIT_STUB_RANGES, "13 to 16", "16 to 17")


def _compare(
    rows: SweepRows, routers: int, ranges: tuple[_Range, ...], degrees: str, longest: str
) -> Finding:
    place = {"routers": routers}
    maxima = (
        f"largest degree {show(rows.values('degree.max', place), 1)}, original {degrees}; "
        f"longest shortest path {show(rows.values('hops.max', place), 1)} hops, original {longest}"
    )
    parts = [_within(some, rows.values(some.column, place)) for some in ranges]
    hops = Estimate.of(rows.values(_HOPS, place))
    return Finding((*parts, Part(maxima)), hops, "mean hops")


def _within(some: _Range, values: Values) -> Part:
    """Whether the mean is in the range of the original, widened by its slack."""
    low, high = some.low * (1 - some.slack), some.high * (1 + some.slack)
    least, most = (dict.fromkeys(values, bound) for bound in (low, high))
    comparisons = [
        Comparison(f"{some.name} at least {low:,.6g}", values, least, is_strict=False),
        Comparison(f"{some.name} at most {high:,.6g}", most, values, is_strict=False),
    ]
    ends = dict.fromkeys((some.low, some.high))
    span = " to ".join(f"{end:,.{some.digits}f}" for end in ends)
    slack = f" ± {100 * some.slack:g} %" if some.slack else ""
    return Part.of(f"{some.name} {show(values, some.digits)}, original {span}{slack}", comparisons)
