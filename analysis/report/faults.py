"""The faults of a run for its report: those at one time together, with their recovery time."""

from collections.abc import Mapping, Sequence
from typing import Any

from analysis.report.reported_run import ReportedRun
from analysis.run_directory import is_failure

Row = dict[str, Any]

_MOST_NAMES = 4
_MEASURED = ("recovery_s", "late", "missing", "deliveries", "note")


def played_faults(run: ReportedRun) -> list[Row]:
    """All faults and repairs as carried out, in order of time, those of churn included."""
    keys = ("at_s", "action", "target", "is_repair")
    faults = ({"target": "", **fault} for fault in run.faults)
    rows = ({key: fault[key] for key in keys} for fault in faults)
    return sorted(rows, key=lambda fault: float(fault["at_s"]))


def read_moments(run: ReportedRun) -> list[Row]:
    """A row for each time of faults or repairs, with its part of the metric `recovery`.

    `what` has every name, `label` is short.
    """
    measured = {
        _microsecond(fault): fault
        for fault in (run.metrics.get("recovery") or {}).get("faults", ())
    }
    by_time: dict[int, list[Row]] = {}
    for fault in played_faults(run):
        by_time.setdefault(_microsecond(fault), []).append(fault)
    return [
        {
            "at_s": at_us / 1e6,
            "what": _words(faults, len(faults)),
            "label": _words(faults, _MOST_NAMES),
            "is_failure": any(map(is_failure, faults)),
            **{name: measured.get(at_us, {}).get(name) for name in _MEASURED},
        }
        for at_us, faults in by_time.items()
    ]


def _microsecond(fault: Mapping[str, Any]) -> int:
    return round(float(fault["at_s"]) * 1e6)


def _words(faults: Sequence[Row], most: int) -> str:
    """Faults by action: `router-down r1, r2; kill-agent h1, h2, h3, h4 and 3 more`."""
    targets: dict[str, list[str]] = {}
    for fault in faults:
        targets.setdefault(str(fault["action"]), []).append(str(fault["target"]))
    parts = []
    for action, names in targets.items():
        # One more name is not longer than "and 1 more".
        shown = names if len(names) <= most + 1 else names[:most]
        rest = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
        parts.append(f"{action} {', '.join(shown)}{rest}")
    return "; ".join(parts)
