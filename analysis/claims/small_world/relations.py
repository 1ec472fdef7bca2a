"""When the claims about small-world overlays hold: bands and trends over two sweeps.

The paper states means over a sweep and single points of some curves, and neither the number of
publications nor that of repetitions. Its values are met within bands. A curve rises if its last
value is above its first, and Spearman's correlation with the sizes is at least 0.9, as the support
of greedy fingers rises in steps: where the nodes pass a power of two, all get one finger more.
"""

from collections.abc import Sequence
from statistics import fmean

from scipy.stats import spearmanr

from analysis.claims.evidence import (
    Comparison,
    Estimate,
    Evidence,
    Finding,
    Part,
    SweepRows,
    Values,
    percent,
    scaled,
    show,
    show_means,
)

BY_NODES, BY_TOPICS = "small-world-nodes", "small-world-topics"

_NAMES = {"chord": "Chord", "random": "RandomSW"}
_LEAST_EXTRA, _MOST_EXTRA = 20, 45
_LEAST_PATH_RATIO, _PATH_NODES = 3.3, 10_000
_LEAST_SUPPORT_RATIO = 5
_LEAST_CORRELATION = 0.9

Series = Sequence[tuple[int, Values]]


def greedy_fingers_forward_less(evidence: Evidence) -> Finding:
    """S1: both baselines need 20 to 45 % more pure forwarding messages, mean over the nodes."""
    rows = evidence[BY_NODES]
    extra = _extra_overheads(rows, "nodes")
    parts = [
        _within_band(kind, extra[kind], paper)
        for kind, paper in (("chord", "+32 %"), ("random", "+29 %"))
    ]
    order = Part(f"order: {_order(extra)}; paper: Chord above RandomSW")
    return Finding((*parts, order), Estimate.of(extra["chord"]), "% more of Chord")


def greedy_paths_grow_slowly(evidence: Evidence) -> Finding:
    """S2: the ratio of path lengths rises with the nodes, and is above 3.3 at 10,000."""
    rows = evidence[BY_NODES]
    place = {"nodes": _PATH_NODES}
    parts = []
    for kind, name in _NAMES.items():
        series = _series(rows, f"{kind}.path_ratio", "nodes")
        last = rows.values(f"{kind}.path_ratio", place)
        text = (
            f"{name}'s path over GrSwico's: {show_means([v for _, v in series])}; at "
            f"{_PATH_NODES:,} nodes {show(last)}"
        )
        bound = Comparison(
            f"{name}'s ratio above {_LEAST_PATH_RATIO}",
            last,
            dict.fromkeys(last, _LEAST_PATH_RATIO),
        )
        parts.append(Part.of(text, [bound, *_rises(f"{name}'s ratio", series)]))
    hops = {kind: rows.values(f"{kind}.path", place) for kind in ("greedy", *_NAMES)}
    shown = ", ".join(show(values, 1) for values in hops.values())
    means = show_means([_mean_over(rows, f"{kind}.path_ratio", "nodes") for kind in _NAMES])
    beside = Part(
        f"GrSwico, Chord, RandomSW at {_PATH_NODES:,} nodes {shown} hops, paper 24.7, 112, 107; "
        f"mean ratios over the nodes {means}, paper above 3.3"
    )
    ratio = rows.values("chord.path_ratio", place)
    return Finding((*parts, beside), Estimate.of(ratio), "Chord's path over GrSwico's")


def greedy_fingers_support_more(evidence: Evidence) -> Finding:
    """S3: GrSwico's support is at least five times theirs and rises with the nodes."""
    rows = evidence[BY_NODES]
    greedy = _mean_over(rows, "greedy.support", "nodes")
    parts = []
    for kind, name in _NAMES.items():
        theirs = _mean_over(rows, f"{kind}.support", "nodes")
        bound = Comparison(
            f"at least {_LEAST_SUPPORT_RATIO} times {name}'s",
            greedy,
            scaled(theirs, _LEAST_SUPPORT_RATIO),
            is_strict=False,
        )
        text = f"GrSwico {_percents(greedy)}, {name} {_percents(theirs)}; paper 75.3 and 11.6 %"
        parts.append(Part.of(text, [bound]))
    series = _series(rows, "greedy.support", "nodes")
    rising = f"GrSwico by nodes {show_means([percent(v) for _, v in series], 0, ' %')}"
    parts.append(Part.of(rising, _rises("GrSwico's support", series)))
    return Finding(tuple(parts), Estimate.of(percent(greedy)), "% support of GrSwico")


def greedy_fingers_do_so_with_topics(evidence: Evidence) -> Finding:
    """S4: the same band as a mean over the topics; shorter paths and more support everywhere."""
    rows = evidence[BY_TOPICS]
    extra = _extra_overheads(rows, "topics")
    parts = [
        _within_band(kind, extra[kind], paper)
        for kind, paper in (("chord", "+37.1 %"), ("random", "+33.5 %"))
    ]
    parts += [_shorter_paths(rows), _more_support(rows), *_gap_by_topics(rows)]
    return Finding(
        (*parts, Part(f"order: {_order(extra)}; paper: Chord above RandomSW")),
        Estimate.of(extra["chord"]),
        "% more of Chord",
    )


def _extra_overheads(rows: SweepRows, key: str) -> dict[str, Values]:
    return {kind: _mean_over(rows, f"{kind}.extra_overhead_percent", key) for kind in _NAMES}


def _within_band(kind: str, extra: Values, paper: str) -> Part:
    name = _NAMES[kind]
    least, most = (dict.fromkeys(extra, float(bound)) for bound in (_LEAST_EXTRA, _MOST_EXTRA))
    comparisons = [
        Comparison(f"{name} at least {_LEAST_EXTRA} %", extra, least, is_strict=False),
        Comparison(f"{name} at most {_MOST_EXTRA} %", most, extra, is_strict=False),
    ]
    return Part.of(f"{name} {show(extra, 1)} % more, paper {paper}", comparisons)


def _shorter_paths(rows: SweepRows) -> Part:
    means = {kind: _mean_over(rows, f"{kind}.path", "topics") for kind in ("greedy", *_NAMES)}
    shown = ", ".join(show(values, 1) for values in means.values())
    text = f"paths of GrSwico, Chord, RandomSW {shown} hops, paper 7.8, over 13, over 13"
    return Part.of(text, _everywhere(rows, "path", "shorter than", is_greedy_larger=False))


def _more_support(rows: SweepRows) -> Part:
    means = {kind: _mean_over(rows, f"{kind}.support", "topics") for kind in ("greedy", *_NAMES)}
    shown = ", ".join(_percents(values) for values in means.values())
    text = f"support of GrSwico, Chord, RandomSW {shown}, paper up to 44, about 6, about 6 %"
    return Part.of(text, _everywhere(rows, "support", "above", is_greedy_larger=True))


def _everywhere(
    rows: SweepRows, column: str, relation: str, is_greedy_larger: bool
) -> list[Comparison]:
    """GrSwico beside both baselines at each number of topics."""
    comparisons = []
    for topics in rows.choices("topics"):
        greedy = rows.values(f"greedy.{column}", {"topics": topics})
        for kind, name in _NAMES.items():
            theirs = rows.values(f"{kind}.{column}", {"topics": topics})
            pair = (greedy, theirs) if is_greedy_larger else (theirs, greedy)
            label = f"{column} {relation} {name}'s, {topics:,} topics"
            comparisons.append(Comparison(label, *pair))
    return comparisons


def _gap_by_topics(rows: SweepRows) -> list[Part]:
    """For information: the extra overhead of both by the number of topics."""
    papers = {"chord": "up to +44.5 %", "random": "up to +39.3 %"}
    found = []
    for kind, paper in papers.items():
        series = _series(rows, f"{kind}.extra_overhead_percent", "topics")
        means = show_means([values for _, values in series], 0, " %")
        found.append(Part(f"{_NAMES[kind]} by topics {means} more; paper: rises {paper}"))
    return found


def _order(extra: dict[str, Values]) -> str:
    names = sorted(extra, key=lambda kind: -fmean(extra[kind].values()))
    return " above ".join(_NAMES[kind] for kind in names)


def _rises(label: str, series: Series) -> list[Comparison]:
    """That the last value is above the first, and that values rise with sizes."""
    correlation = _correlation(series)
    least = dict.fromkeys(correlation, _LEAST_CORRELATION)
    return [
        Comparison(f"{label} rises from first to last", series[-1][1], series[0][1]),
        Comparison(
            f"{label}: rank correlation at least {_LEAST_CORRELATION}",
            correlation,
            least,
            is_strict=False,
        ),
    ]


def _correlation(series: Series) -> Values:
    """Spearman's correlation of a curve with its sizes, for each seed."""
    sizes = [size for size, _ in series]
    seeds = set.intersection(*(set(values) for _, values in series))
    return {
        seed: float(spearmanr(sizes, [values[seed] for _, values in series]).statistic)
        for seed in sorted(seeds)
    }


def _series(rows: SweepRows, column: str, key: str) -> Series:
    return [(size, rows.values(column, {key: size})) for size in rows.choices(key)]


def _mean_over(rows: SweepRows, column: str, key: str) -> Values:
    """The mean over a sweep, for each seed that has all of it."""
    series = [values for _, values in _series(rows, column, key)]
    seeds = set.intersection(*(set(values) for values in series))
    return {seed: fmean(values[seed] for values in series) for seed in sorted(seeds)}


def _percents(values: Values) -> str:
    return show(percent(values), 1, " %")
