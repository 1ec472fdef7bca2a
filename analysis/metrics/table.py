"""Every metric of `metrics.json`, in the order of the summary, the report and the documentation."""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.metrics import (
    agent_tables,
    communication,
    delays,
    delivery,
    discovery,
    offline_walk,
    overlay,
    recovery,
    routing,
    topics,
    traffic,
)
from analysis.metrics.metric import Metric, look_up
from analysis.numbers import read_quantity

METRICS: tuple[Metric, ...] = (
    *delivery.METRICS,
    *recovery.METRICS,
    *traffic.METRICS,
    *delays.METRICS,
    *routing.METRICS,
    *communication.METRICS,
    *topics.METRICS,
    *agent_tables.METRICS,
    *offline_walk.METRICS,
    *discovery.METRICS,
    *overlay.METRICS,
)


def find_metric(name: str) -> Metric | None:
    """The metric of this name, if there is one."""
    return next((metric for metric in METRICS if metric.name == name), None)


def summary_lines(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a terminal shows of `metrics.json`: names, and values with their units."""
    for metric in METRICS:
        for part in metric.summary:
            value = look_up(metrics, f"{metric.name}.{part.key}" if part.key else metric.name)
            if value is not None:
                yield part.words, read_quantity(value, part.unit or metric.unit)
