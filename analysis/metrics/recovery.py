"""Recovery: how many deliveries each fault disturbed, and for how long.

Faults at one time count as one. Each has the deliveries that fell due from then until the next, or
until the end of the run: those owed to other hosts than the publisher whose agents lived through
the whole run. A delivery falls due when its event is twice as old as any was that came before the
first fault. Twice, as chance alone puts the longest of many delays after a moment as often as
before it. What comes after that is late, what never comes is missing.

A fault is recovered from at the last of its late deliveries, or at the publication of the last of
its events that somebody misses; at once, if there is neither. That has to be seen: an event
published after that moment has come in time. What heals (a link or router that is up again, an
agent that restarts) is no fault, and what it disturbs counts for the last fault.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

_HEALING = frozenset({"link-up", "router-up", "restart-agent", "heal"})
_FALLS_DUE = 2
_FOREVER = (1 << 63) - 1
_MOMENTS = pa.schema(
    [("at_us", pa.int64()), ("until_us", pa.int64()), ("what", pa.list_(pa.string()))]
)
Fault = Mapping[str, Any]


def is_failure(fault: Fault) -> bool:
    """Whether a fault takes something away, or changes it."""
    return fault["action"] not in _HEALING


def moments(spark: SparkSession, faults: Iterable[Fault]) -> DataFrame:
    """When something failed: `at_us`, `until_us` (the next such time), and `what`, in words."""
    failed: defaultdict[int, list[str]] = defaultdict(list)
    for fault in faults:
        if is_failure(fault):
            failed[round(float(fault["at_s"]) * 1e6)].append(f"{fault['action']} {fault['target']}")
    times = [*sorted(failed), _FOREVER]
    rows = [{"at_us": a, "until_us": b, "what": failed[a]} for a, b in pairwise(times)]
    return spark.createDataFrame(pa.Table.from_pylist(rows, _MOMENTS))


def recovery(matches: DataFrame, deliveries: DataFrame, moments: DataFrame) -> DataFrame:
    """A row for each moment of faults: what it disturbed, and `recovery_us`.

    That is null if nothing fell due, or if nothing shows that it was recovered from. `due_after_us`
    is how old an event is when its deliveries fall due, null if none came before the first fault.
    """
    got = deliveries.where("copy = 1").select("event_id", "host", "time_us")
    owed = matches.where("is_owed AND is_steady AND NOT is_own")
    owed = owed.select("event_id", "host", "published_us").join(got, ["event_id", "host"], "left")
    first = F.broadcast(moments.agg(F.min("at_us").alias("first_us")))
    age = F.col("time_us") - F.col("published_us")
    undisturbed = owed.join(first, F.col("time_us") < F.col("first_us"))
    due_after = undisturbed.agg((_FALLS_DUE * F.max(age)).alias("due_after_us"))
    timed = owed.crossJoin(F.broadcast(due_after)).withColumn(
        "due_us", F.col("published_us") + F.col("due_after_us")
    )
    is_of = F.expr("due_us >= at_us AND due_us < until_us")
    is_late = F.expr("time_us > due_us")
    is_missing = F.expr("due_us IS NOT NULL AND time_us IS NULL")
    on_time = F.when(F.expr("time_us <= due_us"), F.col("published_us"))
    over = F.when(is_late, F.col("time_us")).when(is_missing, F.col("published_us"))
    found = F.broadcast(moments).join(timed.drop("due_after_us"), is_of, "left")
    return (
        found.groupBy("at_us", "what")
        .agg(
            F.count("due_us").alias("deliveries"),
            F.count_if(is_late).alias("late"),
            F.count_if(is_missing).alias("missing"),
            F.max(over).alias("over_us"),
            F.max(on_time).alias("calm_us"),
        )
        .crossJoin(F.broadcast(due_after))
        .withColumn("recovery_us", F.expr(_RECOVERY))
    )


_RECOVERY = (
    "CASE WHEN over_us IS NULL AND deliveries > 0 THEN 0 "
    "WHEN calm_us > over_us THEN greatest(0, over_us - at_us) END"
)


def recovery_document(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """The metric as it stands in metrics.json, from the rows of `recovery`; None if unknown."""
    ordered = sorted(rows, key=lambda row: int(row["at_us"]))
    if not ordered or ordered[0].get("due_after_us") is None:
        return None
    faults = [_describe(row, row is ordered[-1]) for row in ordered]
    times_s = [fault["recovery_s"] for fault in faults]
    return {
        "due_after_s": ordered[0]["due_after_us"] / 1e6,
        "late": sum(fault["late"] for fault in faults),
        "missing": sum(fault["missing"] for fault in faults),
        "longest_s": None if None in times_s else max(times_s),
        "faults": faults,
    }


def _describe(row: Mapping[str, Any], is_last: bool) -> dict[str, Any]:
    recovery_us, until = row.get("recovery_us"), "the end" if is_last else "the next fault"
    found = {name: row[name] for name in ("what", "deliveries", "late", "missing")}
    found |= {"at_s": row["at_us"] / 1e6, "recovery_s": None}
    if recovery_us is not None:
        return found | {"recovery_s": recovery_us / 1e6}
    why = "not recovered" if row["deliveries"] else "no delivery fell due"
    return found | {"note": f"{why} before {until}"}


def why_unknown(faults: Iterable[Fault]) -> str:
    """Why a run with these faults has no recovery."""
    if not any(map(is_failure, faults)):
        return "nothing failed in this run"
    return "nothing was delivered before the first fault, so nobody knows how long that takes"
