"""The verdict on a run, once its packets and records have been compared."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from analysis.json_files import read_object
from testbed.run.directory import write_json

_MOST_LATE_DELIVERIES = 1.25
_BY_ANALYSIS = "reasons_by_analysis"


class Verdict(NamedTuple):
    """`valid`, `degraded` or `invalid`, and why."""

    verdict: str
    reasons: tuple[str, ...]


def judge_metrics(run: Path, metrics: Mapping[str, Any]) -> Verdict | None:
    """Put into `verdict.json` what metrics say against a run; None if it has no verdict.

    The reasons that the run itself gave stay, those of an earlier analysis do not. It is written
    whole or not at all: sweeps read it after whatever has befallen an analysis.
    """
    document = read_object(run / "verdict.json")
    if "verdict" not in document:
        return None
    broken = _find_broken_checks(metrics)
    added = [*broken, *_find_late_deliveries(metrics)]
    earlier, reasons = document.get(_BY_ANALYSIS, []), document.get("reasons", [])
    own = [reason for reason in reasons if reason not in (*earlier, *added)]
    word = "invalid" if broken else "degraded" if own or added else "valid"
    judged = {"verdict": word, "reasons": [*own, *added], _BY_ANALYSIS: added}
    draft = run / ".verdict.json.new"
    write_json(draft, document | judged)
    draft.replace(run / "verdict.json")
    return Verdict(word, (*own, *added))


def is_judged(run: Path) -> bool:
    """Whether metrics have had their say in the verdict on a run."""
    return _BY_ANALYSIS in read_object(run / "verdict.json")


def _find_broken_checks(metrics: Mapping[str, Any]) -> list[str]:
    return [
        f"packets and records disagree on {name}: expected {check['expected']}, found "
        f"{check['found']}; trust no figure of this run"
        for name, check in metrics.get("checks", {}).items()
        if not check["ok"]
    ]


def _find_late_deliveries(metrics: Mapping[str, Any]) -> list[str]:
    """Whether half of the deliveries took much longer than the links on their way do.

    After faults they do, until all is repaired. As metrics are of the whole run, this says nothing
    about one with faults (or churn), not even about its deliveries before the first of them.
    """
    measured, intended = metrics.get("rdp"), metrics.get("rdp_of_paths")
    if not measured or not intended or metrics.get("recovery"):
        return []
    ratio = measured["p50"] / intended["p50"]
    if ratio <= _MOST_LATE_DELIVERIES:
        return []
    return [
        f"deliveries took {ratio:.2f} times the delays of their paths (median), expected at most "
        f"{_MOST_LATE_DELIVERIES}; use a larger time_scale or a less busy machine"
    ]
