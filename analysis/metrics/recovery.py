"""Recovery: the deliveries that each fault disturbed, and the time to recover.

Faults at one time count as one. A fault has the deliveries that are due between it and the next
fault, or the end of the run. Only deliveries count that are expected at other hosts than the
publisher whose agents ran during the whole run. A delivery is due when its event is twice as old as
the oldest one delivered before the first fault. The factor is two, because by chance alone the
longest of many delays is as often after a given time as before it. A later delivery is late; a
delivery that is never made is missing.

The recovery time ends at the last late delivery of the fault, or at the publication of its last
event with a missing delivery; it is 0 if there is neither. It is known only if an event published
afterwards was delivered in time. Repairs (a link or router that is up again, an agent that
restarts) are not faults; what they disturb counts for the last fault.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pandas as pd

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.run_directory import Fault, is_failure

_FALLS_DUE = 2
_FOREVER = (1 << 63) - 1
Row = Mapping[str, Any]


def moments(faults: Iterable[Fault]) -> list[Row]:
    """The times of faults: `at_us`, `until_us` (the next such time), and `what`, in words."""
    failed: defaultdict[int, list[str]] = defaultdict(list)
    for fault in faults:
        if is_failure(fault):
            failed[round(float(fault["at_s"]) * 1e6)].append(f"{fault['action']} {fault['target']}")
    times = [*sorted(failed), _FOREVER]
    return [{"at_us": a, "until_us": b, "what": failed[a]} for a, b in pairwise(times)]


def recovery(matches: pd.DataFrame, deliveries: pd.DataFrame, moments: Sequence[Row]) -> list[Row]:
    """A row for each time of faults: the disturbed deliveries, and `recovery_us`.

    That is None if no delivery was due, or if nothing shows the recovery. There are no rows if
    nothing was delivered before the first fault, because then it is unknown when deliveries are
    due: `due_after_us` after their event.
    """
    got = deliveries[deliveries["copy"] == 1][["event_id", "host", "time_us"]]
    owed = matches[matches["is_owed"] & matches["is_steady"] & ~matches["is_own"]]
    owed = owed[["event_id", "host", "published_us"]].merge(got, "left", ["event_id", "host"])
    undisturbed = owed[owed["time_us"] < moments[0]["at_us"]]
    if undisturbed.empty:
        return []
    longest_us = int((undisturbed["time_us"] - undisturbed["published_us"]).max())
    due_after_us = _FALLS_DUE * longest_us
    owed = owed.assign(due_us=owed["published_us"] + due_after_us)
    return [_disturbed(owed, moment) | {"due_after_us": due_after_us} for moment in moments]


def _disturbed(owed: pd.DataFrame, moment: Row) -> dict[str, Any]:
    at_us = moment["at_us"]
    due = owed[(owed["due_us"] >= at_us) & (owed["due_us"] < moment["until_us"])]
    is_late, is_missing = due["time_us"] > due["due_us"], due["time_us"].isna()
    over = [*due["time_us"][is_late], *due["published_us"][is_missing]]
    calm = due["published_us"][due["time_us"] <= due["due_us"]]
    recovery_us = None
    if len(due) and not over:
        recovery_us = 0
    elif over and len(calm) and calm.max() > max(over):
        recovery_us = max(0, int(max(over)) - at_us)
    counts = {"deliveries": len(due), "late": int(is_late.sum()), "missing": int(is_missing.sum())}
    return {"at_us": at_us, "what": moment["what"], **counts, "recovery_us": recovery_us}


def recovery_document(rows: Sequence[Row]) -> dict[str, Any] | None:
    """The metric as in metrics.json, from the rows of `recovery`; None if unknown."""
    if not rows:
        return None
    faults = [_describe(row, row is rows[-1]) for row in rows]
    times_s = [fault["recovery_s"] for fault in faults]
    return {
        "due_after_s": rows[0]["due_after_us"] / 1e6,
        "late": sum(fault["late"] for fault in faults),
        "missing": sum(fault["missing"] for fault in faults),
        "longest_s": None if None in times_s else max(times_s),
        "faults": faults,
    }


def _describe(row: Row, is_last: bool) -> dict[str, Any]:
    recovery_us, until = row["recovery_us"], "the end" if is_last else "the next fault"
    found = {name: row[name] for name in ("what", "deliveries", "late", "missing")}
    found |= {"at_s": row["at_us"] / 1e6, "recovery_s": None}
    if recovery_us is not None:
        return found | {"recovery_s": recovery_us / 1e6}
    why = "not recovered" if row["deliveries"] else "no delivery fell due"
    return found | {"note": f"{why} before {until}"}


def _measure(evidence: Evidence) -> dict[str, Any] | None:
    tables = evidence.tables
    failed = moments(evidence.run.faults)
    return recovery_document(recovery(tables.matches, tables.deliveries, failed))


METRICS = (
    Metric(
        "recovery",
        "s",
        "Recovery from faults",
        "Deliveries that were late or missing after faults, and the longest time to recover from "
        "a fault. A delivery is late if its event is older than `due_after_s`, which is twice the "
        "longest delivery before the first fault. A fault is recovered from when the last late "
        "delivery is made and events published later are in time. Only deliveries expected at "
        "hosts whose agents ran during the whole run count.",
        Group.EVENTS,
        (Input.FAULTS, Input.RECORDS),
        _measure,
        why_null="nothing was delivered before the first fault, so the usual delay is unknown",
        headline=Headline(
            "Recovery from faults, longest",
            "longest_s",
            details=(("recovery.late", "late"), ("recovery.missing", "missing")),
        ),
        summary=(Part("longest_s", "Recovery from faults, longest"),),
        parts=(
            Part("due_after_s", "Recovery from faults, a delivery is late after"),
            Part("late", "Recovery from faults, late deliveries", "deliveries"),
            Part("missing", "Recovery from faults, missing deliveries", "deliveries"),
        ),
    ),
)
