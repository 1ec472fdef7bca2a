"""Claims T7 to T12: event routing (section 6.2 of Tariq, Koldehofe and Rothermel, "Efficient
content-based routing with network topology inference", DEBS 2013), and the paper's example 1.
"""

from collections.abc import Sequence
from statistics import fmean

from analysis.claims.evidence import (
    Comparison,
    Estimate,
    Evidence,
    Finding,
    Part,
    SweepRows,
    UnfitRows,
    Values,
    conclude,
    scaled,
    show,
    show_means,
    steps_down,
    steps_up,
)
from analysis.figures.sweep import Row

STRATEGIES = ("SPath", "SPotent", "MaxPath", "CNeigh")
BASELINES = ("Sim", "Rand", "MST")
WORKLOADS = {"content-zipf": "Zipf", "content-uniform": "uniform"}
TREE, ALL_PATHS, MST = "root core's tree", "all shortest paths", "MST"
CONTAINMENT, UNDERLAY = "containment", "underlay"
SERIES = "routing_series.csv"

_EFFICIENCY = "last_tree.routing_efficiency"
_COMMUNICATION = "communication_cost_per_delivery.total"
_OF_SUBSCRIPTIONS = "communication_cost_per_delivery.subscriptions"
_CONTROL = "control_efficiency_without_discovery"
# Other counts of messages, which are given beside that which decides T10.
_OTHER_CONTROL = {
    "control_efficiency_of_routing": "without periodic messages",
    "control_efficiency": "of all layers, with acknowledgements and discovery",
}
_NEARLY = 1.15  # SPotent beside MaxPath
_SAVED = 0.35  # by the best, beside the worst baseline
_STEPS_BEFORE = 5  # of a hundred events each


def shortest_paths_cost_least(evidence: Evidence) -> Finding:
    """T7: SPath best, SPotent about MaxPath, MST worse than all four, 35 % saved at best."""
    costs = {kind: _costs(evidence["fig6-strategies"], kind) for kind in WORKLOADS}
    best, alike, worst, savings, remarks = [], [], [], [], []
    for kind, workload in WORKLOADS.items():
        cost = costs[kind]
        best += [
            Comparison(f"{name} > SPath, {workload}", cost[name], cost["SPath"])
            for name in cost
            if name != "SPath"
        ]
        alike += [
            Comparison(f"{a} within 15 % of {b}, {workload}", scaled(cost[b], _NEARLY), cost[a])
            for a, b in (("SPotent", "MaxPath"), ("MaxPath", "SPotent"))
        ]
        worst += [
            Comparison(f"MST > {name}, {workload}", cost["MST"], cost[name]) for name in STRATEGIES
        ]
        savings.append(_saving(workload, cost))
        remarks.append(f"{workload} {show_means([cost['Sim'], cost['Rand']])}")
    texts = "; ".join(
        f"{workload} " + ", ".join(f"{name} {_mean(costs[kind][name])}" for name in costs[kind])
        for kind, workload in WORKLOADS.items()
    )
    parts = (
        Part.of(f"SPath best, times OPT: {texts}", best),
        Part.of("SPotent and MaxPath within 15 % of each other", alike),
        Part.of("MST worse than all four strategies", worst),
        Part.of(
            "at least 35 % saved by "
            + "; ".join(f"{enough.label}: {show(saved, 1)} %" for enough, saved in savings),
            [enough for enough, _ in savings],
        ),
        Part(f"Sim, Rand: {'; '.join(remarks)}"),
        *_scores_of_sim(evidence["fig6-sim"]),
        *_first_trees(evidence["fig6-strategies"]),
    )
    enough, least = min(savings, key=lambda saving: fmean(saving[1].values()))
    return Finding(parts, Estimate.of(least), f"% saved by {enough.label}")


def _scores_of_sim(rows: SweepRows) -> list[Part]:
    """Sim with both ways to sum up similarities beside Rand, for information."""
    return [
        Part(
            f"a smaller network, {workload}: "
            + ", ".join(
                f"{variant} {show(rows.values(_EFFICIENCY, {'variant': variant, **place}))}"
                for variant in rows.choices("variant")
            )
        )
        for kind, workload in WORKLOADS.items()
        for place in [{"workload.kind": kind}]
    ]


def _saving(workload: str, cost: dict[str, Values]) -> tuple[Comparison, Values]:
    """Whether the best strategy saves enough against the worst baseline, and how many percent."""
    by_cost = lambda name: fmean(cost[name].values())  # noqa: E731
    best, worst = min(STRATEGIES, key=by_cost), max(BASELINES, key=by_cost)
    saved = {
        seed: 100 * (1 - cost[best][seed] / cost[worst][seed])
        for seed in sorted(cost[best].keys() & cost[worst].keys())
    }
    if not saved:
        raise UnfitRows(f"{best} and {worst}, {workload}: expected the same seeds, found none")
    label = f"{best} against {worst}, {workload}"
    return Comparison(label, scaled(cost[worst], 1 - _SAVED), cost[best], is_strict=False), saved


def _costs(rows: SweepRows, kind: str) -> dict[str, Values]:
    return {
        name: rows.values(_EFFICIENCY, {"variant": name, "workload.kind": kind})
        for name in (*STRATEGIES, *BASELINES)
    }


def _first_trees(rows: SweepRows) -> list[Part]:
    """A remark on runs that ended before a tree by interests was in use, if there are any."""
    published = [
        (row.get("last_tree.events.published"), row.get("events.published")) for row in rows.rows
    ]
    count = sum(last == all_ for last, all_ in published if last is not None)
    return [Part(f"{count} of {len(published)} runs had no second tree")] if count else []


def popular_interests_cost_less(evidence: Evidence) -> Finding:
    """T8: all strategies do better on Zipf than on uniform."""
    rows = evidence["fig6-strategies"]
    zipf, uniform = (_costs(rows, kind) for kind in WORKLOADS)
    comparisons = [
        Comparison(f"{name}, uniform > Zipf", uniform[name], zipf[name]) for name in STRATEGIES
    ]
    text, baselines = (
        ", ".join(f"{name} {_mean(zipf[name])} / {_mean(uniform[name])}" for name in names)
        for names in (STRATEGIES, BASELINES)
    )
    return conclude(
        [
            Part.of(f"times OPT, Zipf / uniform: {text}", comparisons),
            Part(f"baselines: {baselines}"),
            Part(
                f"other hotspots on a smaller network, {_other_hotspots(evidence['fig6-hotspots'])}"
            ),
            *_first_trees(rows),
        ]
    )


def _other_hotspots(rows: SweepRows) -> str:
    """The cost of each strategy with every kind of hotspots, and the similarity of neighbours."""
    strategies = rows.choices("routing.strategy")
    texts = []
    for variant in rows.choices("variant"):
        costs = [
            rows.values(_EFFICIENCY, {"variant": variant, "routing.strategy": strategy})
            for strategy in strategies
        ]
        place = {"variant": variant, "routing.strategy": strategies[0]}
        alike = show_means([rows.values("figures.similarity_of_neighbours", place)], 3)
        texts.append(f"{variant} {show_means(costs)} (similarity of neighbours {alike})")
    return f"{', '.join(strategies)}: {'; '.join(texts)}"


def paths_between_cores_matter(evidence: Evidence) -> Finding:
    """T9: cost rises with cores on the root core's tree, and falls with all shortest paths.

    The cost is that of figures 6 (b) and (c), "to forward subscriptions as well as route events".
    """
    rows = evidence["fig6-cores"]
    tree, paths = (_in_ms(rows, variant, _COMMUNICATION) for variant in (TREE, ALL_PATHS))
    subscriptions = [_in_ms(rows, variant, _OF_SUBSCRIPTIONS) for variant in (TREE, ALL_PATHS)]
    cores = ", ".join(str(count) for count, _ in tree)
    return conclude(
        [
            Part.of(
                f"rises on the root core's tree, ms per delivery at {cores} cores: {_means(tree)}",
                steps_up("cost on the root core's tree", tree),
            ),
            Part.of(
                f"falls with all shortest paths: {_means(paths)}",
                steps_down("cost with all shortest paths", paths),
            ),
            Part(f"of it for subscriptions, both: {'; '.join(map(_means, subscriptions))}"),
            Part(
                "of events on the last tree only, times OPT, both: "
                f"{_both_by_cores(rows, _EFFICIENCY)}"
            ),
            Part(
                "messages of subscriptions and events per matching event, both: "
                f"{_both_by_cores(rows, 'communication_messages')}"
            ),
            *_first_trees(rows),
        ]
    )


def _in_ms(rows: SweepRows, variant: str, column: str) -> list[tuple[int, Values]]:
    """A cost by the number of cores, in milliseconds."""
    return [(count, scaled(values, 1000)) for count, values in _by_cores(rows, variant, column)]


def _both_by_cores(rows: SweepRows, column: str) -> str:
    """Means by the number of cores, on the root core's tree and with all shortest paths."""
    return "; ".join(_means(_by_cores(rows, variant, column)) for variant in (TREE, ALL_PATHS))


def more_cores_control_more(evidence: Evidence) -> Finding:
    """T10: messages per matching event rise with cores, as efficiency falls, but below MST's.

    The messages are those that the paper lists: election, selection, trees, subscriptions and
    events. Its efficiency is 1.0 at best, and grows as it gets worse.
    """
    rows = evidence["fig6-cores"]
    tree, mst = _by_cores(rows, TREE, _CONTROL), rows.values(_CONTROL, {"variant": MST})
    cores = ", ".join(str(count) for count, _ in tree)
    return conclude(
        [
            Part.of(
                "messages of routing and content per matching event rise, "
                f"at {cores} cores: {_means(tree)}",
                steps_up("control traffic", tree),
            ),
            Part.of(
                f"fewer than with MST: {show(mst)}",
                [Comparison(f"MST > {count} cores", mst, values) for count, values in tree],
            ),
            Part(f"with all shortest paths: {_means(_by_cores(rows, ALL_PATHS, _CONTROL))}"),
            *(
                Part(
                    f"{words}: {_means(_by_cores(rows, TREE, column))}; "
                    f"MST {show(rows.values(column, {'variant': MST}))}"
                )
                for column, words in _OTHER_CONTROL.items()
            ),
        ]
    )


def _by_cores(rows: SweepRows, variant: str, column: str) -> list[tuple[int, Values]]:
    counts = rows.choices("routing.cores", {"variant": variant})
    return [
        (count, rows.values(column, {"variant": variant, "routing.cores": count}))
        for count in counts
    ]


def _means(series: Sequence[tuple[int, Values]]) -> str:
    return show_means([values for _, values in series])


def recalculation_pays(evidence: Evidence) -> Finding:
    """T11: under churn, the cost per delivery after the second recalculation is below that before.

    Both trees use interests, and are repaired locally.
    """
    rows = evidence["fig6-churn"]
    comparisons, texts, bursts = [], [], []
    for churn in rows.choices("workload.churn"):
        by_seed = rows.steps(SERIES, {"workload.churn": churn})
        sides = {seed: _around_recalculation(steps) for seed, steps in by_seed.items()}
        before, after = (
            {seed: 1000 * _cost(both[side]) for seed, both in sides.items()} for side in (0, 1)
        )
        label = f"{100 * churn:g} % churn"
        comparisons.append(Comparison(f"{label}, before > after", before, after))
        texts.append(f"{label} {show(before, 1)} / {show(after, 1)}")
        bursts.append(f"{label} {_messages(list(by_seed.values()))}")
    return conclude(
        [
            Part.of(f"ms per delivery before / after: {'; '.join(texts)}", comparisons),
            Part(f"messages in a hundred events, median / most: {'; '.join(bursts)}"),
        ]
    )


def _around_recalculation(steps: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The last steps on the second tree, and those that are wholly on the third.

    The first tree does not use interests, so the other two are compared.
    """
    selections = sorted({step["selection"] for step in steps})
    if len(selections) < 3:
        found = f"found {len(selections)}"
        raise UnfitRows(f"fig6-churn: expected trees of three selections or more, {found}")
    before, after = (
        [step for step in steps if step["selection"] == selection] for selection in selections[1:3]
    )
    if len(after) > 1:
        del after[0]  # which has events on the tree before, too
    costed = [[s for s in some if s.get("routing_cost_per_delivery")] for some in (before, after)]
    if not all(costed):
        raise UnfitRows("fig6-churn: expected events after a recalculation, found none")
    return costed[0][-_STEPS_BEFORE:], costed[1]


def _cost(steps: Sequence[Row]) -> float:
    return fmean(step["routing_cost_per_delivery"] for step in steps)


def _messages(runs: Sequence[Sequence[Row]]) -> str:
    """The usual and the largest number of messages in a step, of the seeds together."""
    counts = sorted(s["messages"] for steps in runs for s in steps[:-1] if s.get("messages"))
    return f"{counts[len(counts) // 2]:,.0f} / {counts[-1]:,.0f}" if counts else "not counted"


def underlay_awareness_saves(evidence: Evidence) -> Finding:
    """T12: example 1 shows fewer messages on links and a lower delay penalty."""
    rows = evidence["example1"]
    crossings, penalties, in_vain = (
        {name: rows.values(column, {"variant": name}) for name in (CONTAINMENT, UNDERLAY)}
        for column in ("events.crossings", "rdp_of_paths.max", "events.in_vain")
    )
    fewer, shorter = (
        Comparison(label, found[CONTAINMENT], found[UNDERLAY])
        for label, found in (("fewer messages", crossings), ("lower penalty", penalties))
    )
    saved = fewer.margin
    return Finding(
        (
            Part.of(
                f"event messages on links {_both(crossings, 0)}, {saved.mean:.0f} % saved", [fewer]
            ),
            Part.of(f"largest delay penalty {_both(penalties, 2)}", [shorter]),
            Part(f"false positives {_both(in_vain, 0)}"),
        ),
        saved,
        "% of messages saved",
    )


def _both(found: dict[str, Values], digits: int) -> str:
    return " / ".join(_mean(found[name], digits) for name in (CONTAINMENT, UNDERLAY))


def _mean(values: Values, digits: int = 2) -> str:
    return show_means([values], digits)
