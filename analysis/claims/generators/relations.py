"""When the claims about generators hold: means over seeds beside those of the original programs.

Single networks of one program differ, so a mean over few seeds is uncertain. What varies between
networks agrees if the 95 % interval of our mean overlaps the original's: for BRITE the range of a
few networks, for GT-ITM the 95 % interval of the mean over 100 networks. Maxima are reported and
decide nothing: they are of single routers and pairs, and grow with the number of networks.
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


@dataclass(frozen=True, slots=True)
class _Range:
    """What networks of the original program have; `varies` if they differ from each other."""

    name: str
    column: str
    low: float
    high: float
    varies: bool = True
    digits: int = 2


_WAXMAN_RANGES = (
    _Range("links", "network.links", 3_280, 3_280, varies=False, digits=0),
    _Range("mean degree", "degree.mean", 4, 4, varies=False),
    _Range("mean hops", _HOPS, 5.20, 5.24),
)
# GT-ITM's 100 networks of the specification `ts 100 47` with the paper's parameters.
_TRANSIT_STUB_RANGES = (
    _Range("routers", "network.routers", 1_584, 1_584, varies=False, digits=0),
    _Range("links", "network.links", 2_831.5, 2_847.9, digits=0),
    _Range("mean degree", "degree.mean", 3.575, 3.596),
    _Range("mean hops", _HOPS, 8.297, 8.456),
)


def waxman_is_like_brite(evidence: Evidence) -> Finding:
    """G1: links and mean degree as in BRITE's networks, mean hops within chance of their range."""
    return _compare(evidence[WAXMAN], WAXMAN_ROUTERS, _WAXMAN_RANGES, "18 to 23", "8 to 9")


def transit_stub_is_like_gt_itm(evidence: Evidence) -> Finding:
    """G2: routers as in GT-ITM's networks; links, degree and hops equal within chance."""
    rows = evidence[TRANSIT_STUB]
    return _compare(rows, TRANSIT_STUB_ROUTERS, _TRANSIT_STUB_RANGES, "12 to 19", "15 to 23")


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
    """Whether the mean, or its interval if networks vary, meets the range of the original."""
    low, high = Estimate.of(values).bounds or (0.0, 0.0)
    reach = (high - low) / 2 if some.varies else 0.0
    above, below = ({seed: v + sign * reach for seed, v in values.items()} for sign in (1, -1))
    least, most = (dict.fromkeys(values, bound) for bound in (some.low, some.high))
    comparisons = [
        Comparison(f"{some.name} at least {some.low:,.6g}", above, least, is_strict=False),
        Comparison(f"{some.name} at most {some.high:,.6g}", most, below, is_strict=False),
    ]
    span = " to ".join(f"{end:,.{some.digits}f}" for end in dict.fromkeys((some.low, some.high)))
    return Part.of(f"{some.name} {show(values, some.digits)}, original {span}", comparisons)
