"""`routing_series.csv`: metrics of each hundred events, in the order of their numbers."""

import csv
from pathlib import Path
from typing import Any

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.routing import routing_summary, tree_selections

EVENTS_PER_STEP = 100
SERIES = "routing_series.csv"
_SECOND_US = 1_000_000
_COUNTS = ("published", "received", "delivered", "in_vain", "crossings")


def write_series(evidence: Evidence) -> Path | None:
    """Write the series of a run, if it has events; returns the file."""
    if evidence.why_missing(Input.EVENTS):
        return None
    steps = list(read_series(evidence))
    path = evidence.run.path / "analysis" / SERIES
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(steps[0]))
        writer.writeheader()
        writer.writerows(steps)
    return path


def read_series(evidence: Evidence) -> list[dict[str, Any]]:
    """A row for each step of events."""
    events = evidence.tables.published.sort_values("event_id")
    selections = tree_selections(evidence)
    by_second = evidence.run.figures.get("messages_by_second", [])
    times_us = events["published_us"].tolist()
    rows = []
    for at in range(0, len(events), EVENTS_PER_STEP):
        some = events.iloc[at : at + EVENTS_PER_STEP]
        last_us = times_us[min(at + EVENTS_PER_STEP, len(events) - 1)]
        seconds = slice(times_us[at] // _SECOND_US, last_us // _SECOND_US)
        found = routing_summary(evidence, evidence.tables.of_events(some["event_id"]))
        counts, _ = found.pop("events"), found.pop("rdp_of_paths")
        rows.append(
            {
                "event": at + len(some),
                "selection": None if selections is None else selections[some.index].max(),
                "messages": sum(by_second[seconds]) or None,
                **{name: counts[name] for name in _COUNTS},
                **found,
            }
        )
    return rows
