"""The name and the unit of each number in `metrics.json`, for tables that people read."""

from collections.abc import Container
from typing import NamedTuple

from analysis.metrics.metric import Metric
from analysis.metrics.table import METRICS, find_metric

# Keys that metrics have in common, in the order of tables; other keys are their own words.
_COMMON_PARTS = {
    "mean": "mean",
    "p50": "median",
    "p90": "90th percentile",
    "p99": "99th percentile",
    "max": "maximum",
    "of_sums": "ratio of sums",
    "count": "number of values",
    "total": "total",
}
_PRESENT = {"in_vain": "false_positives"}  # by former key; runs have both or only the former


class NumberName(NamedTuple):
    """The words for a number and its unit."""

    words: str
    unit: str


def name_number(name: str) -> NumberName:
    """The words and the unit of a number of `metrics.json` by its name with dots."""
    metric, key = _split(name)
    if metric is None:
        return NumberName(_capitalised(name), "")
    for part in (*metric.summary, *metric.parts):
        if part.key == key:
            return NumberName(part.words, part.unit or metric.unit)
    if not key:
        return NumberName(metric.label, metric.unit)
    if not metric.unit and _split(key)[0]:  # a metric of metrics, such as `last_tree`
        words, unit = name_number(key)
        return NumberName(f"{metric.label}: {words}", unit)
    unit = "" if key == "count" else "s" if key.endswith("_s") else metric.unit
    steps = [_COMMON_PARTS.get(s) or s.replace("_", " ") for s in key.removesuffix("_s").split(".")]
    return NumberName(", ".join([metric.label, *steps]), unit)


def is_former(name: str, names: Container[str]) -> bool:
    """Whether a number is also among the names under its present name."""
    head, dot, key = name.rpartition(".")
    return key in _PRESENT and f"{head}{dot}{_PRESENT[key]}" in names


def number_order(name: str) -> tuple[int | str, ...]:
    """Sorts numbers by metric, in the order of the table of metrics, then by part."""
    metric, key = _split(name)
    if metric is None:
        return len(METRICS), name
    if not metric.unit and _split(key)[0]:
        return METRICS.index(metric), *number_order(key)
    keys = [part.key for part in metric.summary]
    order = [*keys, *(common for common in _COMMON_PARTS if common not in keys)]
    return METRICS.index(metric), order.index(key) if key in order else len(order), key


def _split(name: str) -> tuple[Metric | None, str]:
    """The metric that a number belongs to, and its present key in that metric."""
    head, _, key = name.partition(".")
    return find_metric(head), _PRESENT.get(key, key)


def _capitalised(name: str) -> str:
    words = name.replace("_", " ").replace(".", ", ")
    return words[:1].upper() + words[1:]
