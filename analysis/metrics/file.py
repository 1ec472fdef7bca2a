"""`analysis/metrics.json` of a run: every metric, the checks, and notes."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.metrics.checks import failing, run_checks
from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.series import write_series
from analysis.metrics.table import METRICS
from analysis.overlay_file import choose_publications, write_overlay
from analysis.promised_files import find_unreadable
from analysis.run_directory import RecordedRun, open_run
from topologies.errors import TestbedError

Metrics = dict[str, Any]
_GENERAL, _OVERLAY, _CHECKS = "analysis", "overlay", "checks"


def measure_run(path: Path) -> Metrics:
    """The metrics of a run from its records alone, as written to `metrics.json`.

    The tasks of sweeps use this function.
    """
    evidence = Evidence(open_run(path))
    notes = [*evidence.run.notes(), evidence.run.workload.note]
    return write_metrics(evidence, [note for note in notes if note])


def write_metrics(evidence: Evidence, notes: list[str]) -> Metrics:
    """Write `metrics.json`, the series and the overlay of a run; returns the first.

    `notes` concern all metrics.
    """
    document = measure(evidence, notes)
    path = evidence.run.path / "analysis" / "metrics.json"
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    draft = path.with_name(".metrics.json.new")
    draft.write_text(text)
    draft.replace(path)
    write_series(evidence)
    if not evidence.why_missing(Input.TABLES):
        write_overlay(evidence.table_overlay, _publications(evidence), path.parent)
    return dict(json.loads(text))


def measure(evidence: Evidence, notes: list[str]) -> Metrics:
    """The content of `metrics.json`; unknown values are null, with a note under their name.

    `unreadable` lists the files that the run should have and that cannot be read, if any.
    """
    found = {metric.name: metric.evaluate(evidence) for metric in METRICS}
    checks = run_checks(evidence)
    words = {name: note for name, (_, note) in found.items() if note}
    words |= {_GENERAL: "; ".join(notes)} if notes else {}
    words |= {_OVERLAY: text} if (text := _about_overlay(evidence.run)) else {}
    words |= {_CHECKS: text} if (text := failing(checks)) else {}
    document = {name: value for name, (value, _) in found.items()}
    document |= {"checks": checks, "notes": words}
    if unreadable := [one._asdict() for one in find_unreadable(evidence.run)]:
        document["unreadable"] = unreadable
    return document


def _publications(evidence: Evidence) -> pd.DataFrame | None:
    """The publications of the measured window, where events have topics."""
    if not evidence.run.is_topic_based:
        return None
    published = evidence.measured.published
    return choose_publications(evidence.run, evidence.agent_tables, published)


def _about_overlay(run: RecordedRun) -> str:
    try:
        return "; ".join(run.overlay.notes)
    except TestbedError as error:
        return str(error)
