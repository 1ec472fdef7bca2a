"""The words of metrics and checks, and where they stand in a report: all from their tables."""

from typing import NamedTuple

from analysis.metrics.checks import CHECKS
from analysis.metrics.metric import Group
from analysis.metrics.table import METRICS, find_metric


class Explanation(NamedTuple):
    """A metric in words."""

    label: str
    explain: str


class ReportGroup(NamedTuple):
    """Metrics that belong together, on one side of the page.

    Where `of` names a metric, the metrics are its parts.
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
    """The words for a metric; one that nobody has explained goes by its name."""
    metric = find_metric(name)
    if metric is not None:
        return Explanation(metric.label, metric.explanation)
    words = name.replace("_", " ")
    return Explanation(words[:1].upper() + words[1:], "")
