"""Claims T1 to T6: the topology discovery overlay (section 6.1 of Tariq, Koldehofe and Rothermel,
"Efficient content-based routing with network topology inference", DEBS 2013).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from analysis.claims.evidence import (
    ByKey,
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
# The networks of the paper's figure 3, which decide T1; flat Waxman is shown beside them.
FIGURE_3 = {"waxman-hierarchical": "two-level Waxman", "transit-stub": "transit-stub"}
HEURISTICS = {"dbest": "DBest", "dworst": "DWorst", "mlink": "MLink"}
_WITH_TARRAND = {**HEURISTICS, "tarrand": "TarRand"}
_WITH_DONLY = {**HEURISTICS, "donly": "DOnly"}
# Shares of links that are given beside that which decides T2.
_OTHER_LINKS = {
    "mapped_links_between_routers": "mapped, without last miles",
    "discovered_links": "on inferred routes",
    "discovered_links_between_routers": "on inferred routes, without last miles",
}
LIMITS = ("lg1", "lg2", "sq", "none")  # ever looser, with 256 peers or more
_TARGETS = {"nearest": "nearest", None: "landmarks", "farthest": "farthest"}
_MOST_WITHOUT, _MOST_WITH = 1.25, 1.60
_WORSE = 1.20  # what DOnly has to be beside MLink


def nearest_targets_see_most(evidence: Evidence) -> Finding:
    """T1: nearest > landmarks > farthest in links discovered, at every number of targets."""
    rows = evidence["fig3-targets"]
    decisive = [
        part for kind, name in FIGURE_3.items() for part in _orders_of_targets(rows, kind, name)
    ]
    has_flat = "waxman" in rows.choices("topology.kind")
    beside = _orders_of_targets(rows, "waxman", TOPOLOGIES["waxman"]) if has_flat else []
    return conclude([*decisive, *(Part(part.text) for part in beside)])


def _orders_of_targets(rows: SweepRows, kind: str, name: str) -> list[Part]:
    numbers = rows.choices("overlay.targets", {"topology.kind": kind})
    return [_order_of_targets(rows, kind, name, targets) for targets in numbers]


def _order_of_targets(rows: SweepRows, kind: str, topology: str, targets: int) -> Part:
    shares = {
        name: _seen_by(rows, kind, heuristic, targets) for heuristic, name in _TARGETS.items()
    }
    place = f"{topology}, {targets} targets"
    comparisons = [
        Comparison(f"{more} > {less}, {place}", high, low)
        for (more, high), (less, low) in pairwise(shares.items())
    ]
    texts = " / ".join(show(values, 1) for values in shares.values())
    return Part.of(f"{place}, {' / '.join(shares)}: {texts} %", comparisons)


def _seen_by(rows: SweepRows, kind: str, heuristic: str | None, targets: int) -> Values:
    """The percentage of links discovered; landmarks have no heuristic."""
    place = {
        "topology.kind": kind,
        "overlay.heuristic": heuristic,
        "overlay.targets": targets,
    }
    return percent(rows.values("discovered_links", place))


def looser_limits_see_more(evidence: Evidence) -> Finding:
    """T2: more links with looser limits; DBest >= DWorst and MLink; TarRand last.

    Links count that overlay links map. Section 4.2 of the paper calls a link undiscovered that is
    "not mapped by the overlay paths in the TDO".
    """
    rows = evidence["fig5-limits"]
    return conclude(
        [
            *(_sees_more(rows, kind) for kind in TOPOLOGIES),
            *(_dbest_sees_most(rows, kind) for kind in TOPOLOGIES),
            *(_tarrand_sees_least(rows, kind) for kind in TOPOLOGIES),
            *(
                Part(f"{what}, {_shares(rows, kind, column)}")
                for column, what in _OTHER_LINKS.items()
                for kind in TOPOLOGIES
            ),
        ]
    )


def _shares(rows: SweepRows, kind: str, column: str) -> str:
    """Another share of links, by limits and by heuristics."""
    by_limit = [_seen(rows, kind, "mlink", limit, column) for limit in _limits(rows)]
    by_name = [_seen(rows, kind, name, "none", column) for name in _WITH_TARRAND]
    names = ", ".join(_WITH_TARRAND.values())
    return (
        f"{TOPOLOGIES[kind]}, MLink, {_span(rows)}: {show_means(by_limit, 1, ' %')}; "
        f"{names} without limit: {show_means(by_name, 1, ' %')}"
    )


def _sees_more(rows: SweepRows, kind: str) -> Part:
    """That no looser limit discovers less, and the loosest more than the tightest."""
    topology, comparisons = TOPOLOGIES[kind], []
    for heuristic, name in HEURISTICS.items():
        series = [(limit, _seen(rows, kind, heuristic, limit)) for limit in _limits(rows)]
        comparisons += steps_up(f"{name} on {topology}", series, is_strict=False)
        comparisons += steps_up(f"{name} on {topology}", [series[0], series[-1]])
    means = show_means([_seen(rows, kind, "mlink", limit) for limit in _limits(rows)], 1, " %")
    text = f"{topology}, more links mapped with looser limits, MLink, {_span(rows)}: {means}"
    return Part.of(text, comparisons)


def _dbest_sees_most(rows: SweepRows, kind: str) -> Part:
    topology, names = TOPOLOGIES[kind], _WITH_TARRAND
    comparisons = [
        Comparison(
            f"DBest >= {HEURISTICS[other]}, {limit} on {topology}",
            _seen(rows, kind, "dbest", limit),
            _seen(rows, kind, other, limit),
            is_strict=False,
        )
        for limit in _limits(rows)
        for other in ("dworst", "mlink")
    ]
    means = show_means([_seen(rows, kind, name, "none") for name in names], 1, " %")
    text = f"{topology}, DBest first; {', '.join(names.values())} without limit: {means}"
    return Part.of(text, comparisons)


def _tarrand_sees_least(rows: SweepRows, kind: str) -> Part:
    topology = TOPOLOGIES[kind]
    comparisons = [
        Comparison(
            f"{name} > TarRand, {limit} on {topology}",
            _seen(rows, kind, heuristic, limit),
            _seen(rows, kind, "tarrand", limit),
        )
        for limit in _limits(rows)
        for heuristic, name in HEURISTICS.items()
    ]
    return Part.of(f"{topology}, TarRand last", comparisons)


def _seen(
    rows: SweepRows, kind: str, heuristic: str, limit: str, column: str = "mapped_links"
) -> Values:
    return percent(rows.values(column, _place(kind, heuristic, limit)))


def mlink_penalty_is_low(evidence: Evidence) -> Finding:
    """T3: RDP on Waxman, no limit, MLink: at most 1.25 without last miles, 1.60 with them."""
    rows, place = evidence["fig5-limits"], _place("waxman", "mlink", "none")
    with_them, without = _penalties(rows, place)
    parts = [
        _at_most("without last miles of peers on the way", without, _MOST_WITHOUT),
        _at_most("with them", with_them, _MOST_WITH),
        Part(
            f"readings of algorithm 1 on a smaller network, {_readings(evidence['fig5-readings'])}"
        ),
    ]
    return Finding(tuple(parts), Estimate.of(with_them), "RDP with last miles")


def _penalties(rows: SweepRows, place: ByKey) -> tuple[Values, Values]:
    """RDP with the last miles of peers on the way, and without."""
    return rows.values("rdp.mean", place), rows.values("rdp_without_last_miles.mean", place)


def _readings(rows: SweepRows) -> str:
    """RDP of MLink with k_L spent in two ways, and without its rule or its cases."""
    texts = []
    for variant in rows.choices("variant"):
        place = {"variant": variant, "overlay.degree_limit": "none"}
        texts.append(f"{variant} {show_means(_penalties(rows, place))}")
    return f"with, without last miles: {'; '.join(texts)}"


def _at_most(label: str, values: Values, bound: float) -> Part:
    comparison = Comparison(label, dict.fromkeys(values, bound), values, is_strict=False)
    return Part(f"{label} {show(values, 3)}, bound {bound:.2f}", comparison.holds, (comparison,))


def looser_limits_cost_less(evidence: Evidence) -> Finding:
    """T4: RDP falls with looser limits; DOnly is above all heuristics at the same limit."""
    rows = evidence["fig5-limits"]
    return conclude(
        [
            *(_penalty_falls(rows, kind) for kind in TOPOLOGIES),
            *(_donly_is_worst(rows, kind) for kind in TOPOLOGIES),
            *_by_length_of_walks(evidence["fig5-walks"]),
        ]
    )


def _by_length_of_walks(rows: SweepRows) -> list[Part]:
    """Both relations for walks of each length, for information: the paper gives no TTL."""
    parts = []
    for ttl in rows.choices("overlay.ttl"):
        of_length = replace(rows, rows=[row for row in rows.rows if row["overlay.ttl"] == ttl])
        for kind in TOPOLOGIES:
            means = ", ".join(
                f"{name} {_penalty_span(of_length, kind, heuristic)}"
                for heuristic, name in _WITH_DONLY.items()
            )
            judged = (_penalty_falls(of_length, kind), _donly_is_worst(of_length, kind))
            falls, worst = ("yes" if part.holds else "no" for part in judged)
            parts.append(
                Part(
                    f"walks of at most {ttl:,} hops, {TOPOLOGIES[kind]}, {_span(of_length)}: "
                    f"{means}; falls: {falls}, DOnly above all: {worst}"
                )
            )
    return parts


def _penalty_span(rows: SweepRows, kind: str, heuristic: str) -> str:
    return show_means([_penalty(rows, kind, heuristic, limit) for limit in _limits(rows)])


def _penalty_falls(rows: SweepRows, kind: str) -> Part:
    topology = TOPOLOGIES[kind]
    comparisons = [
        comparison
        for heuristic, name in HEURISTICS.items()
        for comparison in steps_down(
            f"{name} on {topology}",
            [(limit, _penalty(rows, kind, heuristic, limit)) for limit in _limits(rows)],
            is_strict=False,
        )
    ]
    means = show_means([_penalty(rows, kind, "mlink", limit) for limit in _limits(rows)])
    text = f"{topology}, RDP falls with looser limits, MLink, {_span(rows)}: {means}"
    return Part.of(text, comparisons)


def _donly_is_worst(rows: SweepRows, kind: str) -> Part:
    topology = TOPOLOGIES[kind]
    comparisons = [
        Comparison(
            f"DOnly > {name}, {limit} on {topology}",
            _penalty(rows, kind, "donly", limit),
            _penalty(rows, kind, heuristic, limit),
        )
        for limit in _limits(rows)
        for heuristic, name in HEURISTICS.items()
    ]
    means = show_means([_penalty(rows, kind, "donly", limit) for limit in _limits(rows)])
    return Part.of(f"{topology}, DOnly above all at the same limit: {means}", comparisons)


def _penalty(rows: SweepRows, kind: str, heuristic: str, limit: str) -> Values:
    return rows.values("rdp.mean", _place(kind, heuristic, limit))


@dataclass(frozen=True, slots=True)
class _Figure:
    """A column that changes with the number of peers, and how it is shown."""

    column: str
    name: str
    digits: int = 2
    factor: float = 1
    unit: str = ""

    def values(self, rows: SweepRows, kind: str, heuristic: str, hosts: int) -> Values:
        return scaled(rows.values(self.column, _at(kind, heuristic, hosts)), self.factor)

    def means(self, series: Sequence[Values]) -> str:
        return show_means(series, self.digits, self.unit)


_PENALTY = _Figure("rdp.mean", "RDP")
_WITHOUT = _Figure("rdp_without_last_miles.mean", "RDP without last miles of peers on the way")
_INFERENCES = _Figure("inferences", "share of inferences", 3, 100, " %")
_JOINS = _Figure("join_messages", "number of joins", 0)


def more_peers_cost_less(evidence: Evidence) -> Finding:
    """T5: RDP falls with N; at the largest N DOnly is 20 % worse in RDP and stress than MLink."""
    rows = evidence["fig5-peers"]
    return conclude(
        [
            *(_falls_with_peers(rows, _PENALTY, kind) for kind in TOPOLOGIES),
            *(_donly_is_worse(rows, kind) for kind in TOPOLOGIES),
            Part(f"{_WITHOUT.name}: {_by_topology(lambda kind: _by_size(rows, _WITHOUT, kind))}"),
        ]
    )


def _donly_is_worse(rows: SweepRows, kind: str) -> Part:
    """That DOnly has a fifth more RDP and stress than MLink, with the most peers."""
    topology, most = TOPOLOGIES[kind], _sizes(rows)[-1]
    comparisons, extras = [], []
    for figure in (_PENALTY, _Figure("stress_ratio", "stress")):
        donly, mlink = (figure.values(rows, kind, name, most) for name in ("donly", "mlink"))
        label = f"{figure.name} of DOnly over {_WORSE} times that of MLink, {topology}"
        comparisons.append(Comparison(label, donly, scaled(mlink, _WORSE), is_strict=False))
        ratio = fmean(donly.values()) / fmean(mlink.values())
        extras.append(f"{100 * (ratio - 1):+.1f} % {figure.name}")
    text = f"{topology}, DOnly 20 % worse than MLink at {most:,} peers: {', '.join(extras)}"
    return Part.of(text, comparisons)


def more_peers_infer_less(evidence: Evidence) -> Finding:
    """T6: the share of inferences falls with N; MLink infers most and sends most joins."""
    rows = evidence["fig5-peers"]
    return conclude(
        [
            *(_falls_with_peers(rows, _INFERENCES, kind) for kind in TOPOLOGIES),
            *(_mlink_has_most(rows, _INFERENCES, kind) for kind in TOPOLOGIES),
            *(_mlink_has_most(rows, _JOINS, kind) for kind in TOPOLOGIES),
        ]
    )


def _mlink_has_most(rows: SweepRows, figure: _Figure, kind: str) -> Part:
    """That MLink has more of something than the other heuristics, with the most peers."""
    topology, most = TOPOLOGIES[kind], _sizes(rows)[-1]
    found = {
        name: figure.values(rows, kind, heuristic, most) for heuristic, name in HEURISTICS.items()
    }
    comparisons = [
        Comparison(f"{figure.name}, MLink > {name}, {topology}", found["MLink"], found[name])
        for name in ("DBest", "DWorst")
    ]
    text = f"{topology}, largest {figure.name} with MLink at {most:,} peers; {', '.join(found)}"
    return Part.of(f"{text}: {figure.means(list(found.values()))}", comparisons)


def _falls_with_peers(rows: SweepRows, figure: _Figure, kind: str) -> Part:
    """That a figure falls with the number of peers, of all heuristics."""
    topology, sizes = TOPOLOGIES[kind], _sizes(rows)
    comparisons = [
        comparison
        for heuristic, name in HEURISTICS.items()
        for comparison in steps_down(
            f"{name} on {topology}",
            [(size, figure.values(rows, kind, heuristic, size)) for size in sizes],
        )
    ]
    places = ", ".join(f"{size:,}" for size in sizes)
    text = f"{topology}, {figure.name} falls with peers, MLink at {places}"
    return Part.of(f"{text}: {_by_size(rows, figure, kind)}", comparisons)


def _by_size(rows: SweepRows, figure: _Figure, kind: str) -> str:
    """Means of MLink from the fewest peers to the most."""
    return figure.means([figure.values(rows, kind, "mlink", size) for size in _sizes(rows)])


def _sizes(rows: SweepRows) -> list[int]:
    return rows.choices("topology.hosts")


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
