"""Claims T1 to T6: the topology discovery overlay (section 6.1 of Tariq, Koldehofe and Rothermel,
"Efficient content-based routing with network topology inference", DEBS 2013).
"""

from collections.abc import Callable
from itertools import pairwise
from statistics import fmean

from analysis.claims.evidence import (
    Comparison,
    Estimate,
    Evidence,
    Finding,
    Part,
    SweepRows,
    Values,
    conclude,
    percent,
    scaled,
    show,
    show_means,
    steps_down,
    steps_up,
)

TOPOLOGIES = {"waxman": "Waxman", "transit-stub": "transit-stub"}
HEURISTICS = {"dbest": "DBest", "dworst": "DWorst", "mlink": "MLink"}
LIMITS = ("lg1", "lg2", "sq", "none")  # ever looser, with 256 peers or more
_TARGETS = {"nearest": "nearest", None: "landmarks", "farthest": "farthest"}
_MOST_WITHOUT, _MOST_WITH = 1.25, 1.60
_WORSE = 1.20  # what DOnly has to be beside MLink


def nearest_targets_see_most(evidence: Evidence) -> Finding:
    """T1: nearest > landmarks > farthest in links discovered, at every number of targets."""
    rows = evidence["fig3-targets"]
    parts = []
    for kind, topology in TOPOLOGIES.items():
        comparisons, texts = [], []
        for targets in rows.choices("overlay.targets", {"topology.kind": kind}):
            shares = {
                name: _seen_by(rows, kind, heuristic, targets)
                for heuristic, name in _TARGETS.items()
            }
            order = list(shares.items())
            comparisons += [
                Comparison(f"{topology}, {targets} targets, {more} > {less}", high, low)
                for (more, high), (less, low) in pairwise(order)
            ]
            texts.append(f"{' / '.join(show(v, 1) for v in shares.values())} % at {targets}")
        parts.append(Part.of(f"{topology}, {' / '.join(shares)}: {'; '.join(texts)}", comparisons))
    return conclude(parts)


def _seen_by(rows: SweepRows, kind: str, heuristic: str | None, targets: int) -> Values:
    """The percentage of links discovered; landmarks have no heuristic."""
    place = {
        "topology.kind": kind,
        "overlay.heuristic": heuristic,
        "overlay.targets": targets,
    }
    return percent(rows.values("discovered_links", place))


def looser_limits_see_more(evidence: Evidence) -> Finding:
    """T2: more links with looser limits; DBest >= DWorst and MLink; TarRand last."""
    rows = evidence["fig5-limits"]
    by_limit, mapped = (
        _by_limit(rows, "mlink", column, 100, 1, " %")
        for column in ("discovered_links", "mapped_links")
    )
    names = {**HEURISTICS, "tarrand": "TarRand"}
    unlimited = _by_topology(
        lambda kind: show_means([_seen(rows, kind, name, "none") for name in names], 1, " %")
    )
    rising = [
        comparison
        for kind, topology in TOPOLOGIES.items()
        for heuristic, name in HEURISTICS.items()
        for comparison in steps_up(
            f"{name} on {topology}",
            [(limit, _seen(rows, kind, heuristic, limit)) for limit in _limits(rows)],
            is_strict=False,
        )
    ]
    best, last = _rank(rows)
    return conclude(
        [
            Part.of(f"more links with looser limits, MLink, {_span(rows)}: {by_limit}", rising),
            Part.of(f"DBest first; {', '.join(names.values())} without limit: {unlimited}", best),
            Part.of("TarRand last", last),
            Part(f"links under overlay links, MLink, {_span(rows)}: {mapped}"),
        ]
    )


def _rank(rows: SweepRows) -> tuple[list[Comparison], list[Comparison]]:
    """That DBest discovers most and TarRand least, at each limit on both topologies."""
    best, last = [], []
    for kind, topology in TOPOLOGIES.items():
        for limit in _limits(rows):
            place = f"{limit} on {topology}"
            dbest, tarrand = (_seen(rows, kind, name, limit) for name in ("dbest", "tarrand"))
            for heuristic, name in HEURISTICS.items():
                seen = _seen(rows, kind, heuristic, limit)
                last.append(Comparison(f"{name} > TarRand, {place}", seen, tarrand))
                if heuristic != "dbest":
                    best.append(Comparison(f"DBest >= {name}, {place}", dbest, seen, False))
    return best, last


def _seen(rows: SweepRows, kind: str, heuristic: str, limit: str) -> Values:
    return percent(rows.values("discovered_links", _place(kind, heuristic, limit)))


def mlink_penalty_is_low(evidence: Evidence) -> Finding:
    """T3: RDP on Waxman, no limit, MLink: at most 1.25 without last miles, 1.60 with them."""
    rows, place = evidence["fig5-limits"], _place("waxman", "mlink", "none")
    with_them = rows.values("rdp.mean", place)
    without = rows.values("rdp_without_last_miles.mean", place)
    parts = [
        _at_most("without last miles of peers on the way", without, _MOST_WITHOUT),
        _at_most("with them", with_them, _MOST_WITH),
    ]
    return Finding(tuple(parts), Estimate.of(with_them), "RDP with last miles")


def _at_most(label: str, values: Values, bound: float) -> Part:
    comparison = Comparison(label, dict.fromkeys(values, bound), values, is_strict=False)
    return Part(f"{label} {show(values, 3)}, bound {bound:.2f}", comparison.holds, (comparison,))


def looser_limits_cost_less(evidence: Evidence) -> Finding:
    """T4: RDP falls with looser limits; DOnly is above all heuristics at the same limit."""
    rows = evidence["fig5-limits"]
    falling, worst = [], []
    for kind, topology in TOPOLOGIES.items():
        donly = {limit: _penalty(rows, kind, "donly", limit) for limit in _limits(rows)}
        for heuristic, name in HEURISTICS.items():
            series = [(limit, _penalty(rows, kind, heuristic, limit)) for limit in _limits(rows)]
            falling += steps_down(f"{name} on {topology}", series, is_strict=False)
            worst += [
                Comparison(f"DOnly > {name}, {limit} on {topology}", donly[limit], values)
                for limit, values in series
            ]
    return conclude(
        [
            Part.of(
                f"RDP falls with looser limits, MLink, {_span(rows)}: {_by_limit(rows, 'mlink')}",
                falling,
            ),
            Part.of(f"DOnly above all at the same limit: {_by_limit(rows, 'donly')}", worst),
        ]
    )


def _by_limit(
    rows: SweepRows,
    heuristic: str,
    column: str = "rdp.mean",
    factor: float = 1,
    digits: int = 2,
    unit: str = "",
) -> str:
    """Means of a figure from the tightest limit to none, for each topology."""
    texts = []
    for kind, topology in TOPOLOGIES.items():
        found = [rows.values(column, _place(kind, heuristic, limit)) for limit in _limits(rows)]
        means = show_means([scaled(values, factor) for values in found], digits, unit)
        texts.append(f"{topology} {means}")
    return "; ".join(texts)


def _penalty(rows: SweepRows, kind: str, heuristic: str, limit: str) -> Values:
    return rows.values("rdp.mean", _place(kind, heuristic, limit))


def more_peers_cost_less(evidence: Evidence) -> Finding:
    """T5: RDP falls with N; at the largest N DOnly is 20 % worse in RDP and stress than MLink."""
    rows = evidence["fig5-peers"]
    sizes = rows.choices("topology.hosts")
    falling = _falling(rows, "rdp.mean", sizes)
    worse, texts = [], []
    for kind, topology in TOPOLOGIES.items():
        extras = []
        for column, name in (("rdp.mean", "RDP"), ("stress_ratio", "stress")):
            donly, mlink = (
                rows.values(column, _at(kind, heuristic, sizes[-1]))
                for heuristic in ("donly", "mlink")
            )
            label = f"{name} of DOnly over {_WORSE} times that of MLink, {topology}"
            worse.append(Comparison(label, donly, scaled(mlink, _WORSE), is_strict=False))
            ratio = fmean(donly.values()) / fmean(mlink.values())
            extras.append(f"{100 * (ratio - 1):+.0f} % {name}")
        texts.append(f"{topology} {', '.join(extras)}")
    places = ", ".join(f"{size:,}" for size in sizes)
    without = _series_text(rows, "rdp_without_last_miles.mean", sizes)
    return conclude(
        [
            Part.of(
                f"RDP falls with peers, MLink at {places}: {_series_text(rows, 'rdp.mean', sizes)}",
                falling,
            ),
            Part.of(
                f"DOnly 20 % worse than MLink at {sizes[-1]:,} peers: {'; '.join(texts)}", worse
            ),
            Part(f"RDP without last miles of peers on the way: {without}"),
        ]
    )


def more_peers_infer_less(evidence: Evidence) -> Finding:
    """T6: the share of inferences falls with N; MLink infers most and sends most joins."""
    rows = evidence["fig5-peers"]
    sizes = rows.choices("topology.hosts")
    shares = _by_topology(
        lambda kind: show_means(
            [percent(rows.values("inferences", _at(kind, "mlink", size))) for size in sizes],
            2,
            " %",
        )
    )
    parts = [
        Part.of(f"share of inferences falls, MLink: {shares}", _falling(rows, "inferences", sizes))
    ]
    for column, verb, factor, digits, unit in (
        ("inferences", "infers most", 100, 3, " %"),
        ("join_messages", "sends most joins", 1, 0, ""),
    ):
        comparisons, texts = [], []
        for kind, topology in TOPOLOGIES.items():
            found = {
                name: scaled(rows.values(column, _at(kind, heuristic, sizes[-1])), factor)
                for heuristic, name in HEURISTICS.items()
            }
            comparisons += [
                Comparison(f"MLink > {name}, {topology}", found["MLink"], found[name])
                for name in ("DBest", "DWorst")
            ]
            texts.append(f"{topology} {show_means(list(found.values()), digits, unit)}")
        parts.append(
            Part.of(
                f"MLink {verb}; {', '.join(HEURISTICS.values())} at {sizes[-1]:,} peers: "
                f"{'; '.join(texts)}",
                comparisons,
            )
        )
    return conclude(parts)


def _falling(rows: SweepRows, column: str, sizes: list[int]) -> list[Comparison]:
    """That a figure falls with the number of peers, of all heuristics on both topologies."""
    return [
        comparison
        for kind, topology in TOPOLOGIES.items()
        for heuristic, name in HEURISTICS.items()
        for comparison in steps_down(
            f"{name} on {topology}",
            [(size, rows.values(column, _at(kind, heuristic, size))) for size in sizes],
        )
    ]


def _series_text(rows: SweepRows, column: str, sizes: list[int]) -> str:
    return _by_topology(
        lambda kind: show_means([rows.values(column, _at(kind, "mlink", size)) for size in sizes])
    )


def _by_topology(text_of: Callable[[str], str]) -> str:
    return "; ".join(f"{name} {text_of(kind)}" for kind, name in TOPOLOGIES.items())


def _limits(rows: SweepRows) -> list[str]:
    """The degree limits that were swept, the tightest first."""
    return [limit for limit in LIMITS if limit in rows.choices("overlay.degree_limit")]


def _span(rows: SweepRows) -> str:
    return ", ".join(_limits(rows))


def _place(kind: str, heuristic: str, limit: str) -> dict[str, str]:
    return {
        "topology.kind": kind,
        "overlay.heuristic": heuristic,
        "overlay.degree_limit": limit,
    }


def _at(kind: str, heuristic: str, hosts: int) -> dict[str, str | int]:
    return {"topology.kind": kind, "overlay.heuristic": heuristic, "topology.hosts": hosts}
