"""A metric as one object: its name, its meaning, its inputs and its computation."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from analysis.metrics.evidence import Evidence, Input

Value = Any  # a number, an object of numbers, or None


class Group(Enum):
    """Metrics that belong together, with their title and their side of the report."""

    EVENTS = ("Events", "left")
    TOPICS = ("Topics", "right")
    TRAFFIC = ("Traffic", "left")
    OVERLAY = ("Overlay", "right")
    DISCOVERY = ("Discovery of the network", "right")

    @property
    def title(self) -> str:
        """The heading of the group."""
        return self.value[0]

    @property
    def side(self) -> str:
        """The side of the report that the group is on."""
        return self.value[1]


@dataclass(frozen=True)
class Part:
    """One number of a metric and its name, which begins with the metric's label.

    An empty key is the metric's only number, an empty unit the metric's.
    """

    key: str
    words: str
    unit: str = ""


@dataclass(frozen=True)
class Headline:
    """How a metric is shown at the top of a report.

    `label` begins with the metric's label. `key` is the part that is shown and `of` the name of
    the number that it is a part of. `details` are names of other numbers of `metrics.json`, with
    words for them.
    """

    label: str
    key: str = ""
    of: str = ""
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Metric:
    """A metric of `metrics.json`.

    It is null if one of its `inputs` is missing, or if `measure` returns None; `why_null` is the
    reason then. `note` may say how to read a value. `summary` are the numbers that the terminal
    shows, `parts` names of other numbers whose key does not say enough.
    """

    name: str
    unit: str
    label: str
    explanation: str
    group: Group
    inputs: tuple[Input, ...]
    measure: Callable[[Evidence], Value]
    why_null: str | Callable[[Evidence], str] = "no pair of peers is connected"
    note: Callable[[Evidence], str] = lambda _: ""
    headline: Headline | None = None
    summary: tuple[Part, ...] = ()
    parts: tuple[Part, ...] = ()

    def evaluate(self, evidence: Evidence) -> tuple[Value, str]:
        """The value with its note: why it is null or how to read it; the note may be empty."""
        for needed in self.inputs:
            if reason := evidence.why_missing(needed):
                return None, reason
        value = self.measure(evidence)
        if value is None:
            return None, self.why_null if isinstance(self.why_null, str) else self.why_null(
                evidence
            )
        return value, self.note(evidence)

    @property
    def headline_name(self) -> str:
        """The name of the number that the headline shows."""
        key = self.headline.key if self.headline else ""
        return f"{self.name}.{key}" if key else self.name


def look_up(document: Any, name: str) -> Any:
    """A number of `metrics.json` by its name with dots, or None."""
    for part in name.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return document
