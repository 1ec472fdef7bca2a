"""The names and explanations of metrics and checks in a report, from their tables."""

from typing import NamedTuple

from analysis.metrics.checks import CHECKS
from analysis.metrics.metric import Group
from analysis.metrics.table import METRICS, find_metric


class Explanation(NamedTuple):
    """The label and the explanation of a metric."""

    label: str
    explain: str


class ReportGroup(NamedTuple):
    """Metrics of one group, on one side of the page.

    If `of` names a metric, the metrics are its parts.
    """

    title: str
    side: str
    metrics: dict[str, Explanation]
    of: str = ""


def read_groups() -> list[ReportGroup]:
    """All groups, in the order of the page."""
    groups = [
        ReportGroup(
            group.title,
            group.side,
            {m.name: Explanation(m.label, m.explanation) for m in METRICS if m.group is group},
        )
        for group in Group
    ]
    checks = {check.name: Explanation(check.label, check.explanation) for check in CHECKS}
    return [*groups, ReportGroup("Checks of packets against records", "left", checks, "checks")]


def explain(name: str) -> Explanation:
    """The label and explanation of a metric; an unknown one has its key as its label."""
    metric = find_metric(name)
    if metric is not None:
        return Explanation(metric.label, metric.explanation)
    words = name.replace("_", " ")
    return Explanation(words[:1].upper() + words[1:], "")
