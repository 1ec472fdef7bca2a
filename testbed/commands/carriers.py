"""Tasks of sweeps and computations on Spark, on this machine's cores or on a cluster."""

import os
import re
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

from testbed.sweeps.points import GiveUp, Work
from testbed.sweeps.progress import ATTEMPTS

PACKAGES = ("topologies", "workloads", "agents", "testbed", "analysis")
_DISTRIBUTION = "tdo-testbed"
_DRIVER_MEMORY_MB = 1_024  # this process only distributes texts
_LOCAL = re.compile(r"local(?:\[([\d*]+)\])?")


def carry_on_spark(
    master: str | None, jobs: int | None, work: Work, give_up: GiveUp, tasks: Sequence[str]
) -> Generator[tuple[str, str]]:
    """Carry out tasks on Spark, with a session for them; none is started without tasks."""
    if not tasks:
        return
    from analysis.spark.session import open_session

    chosen = choose_master(master, jobs)
    settings = {"spark.task.maxFailures": str(ATTEMPTS)}
    spark = open_session(chosen, f"tdo, {len(tasks)} tasks", _DRIVER_MEMORY_MB, settings)
    try:
        at_once = jobs or (spark.sparkContext.defaultParallelism if _is_local(chosen) else None)
        with closing(carry_in_session(spark, at_once, work, give_up, tasks)) as carried:
            yield from carried
    finally:
        spark.stop()


def carry_in_session(
    spark: Any, at_once: int | None, work: Work, give_up: GiveUp, tasks: Sequence[str]
) -> Generator[tuple[str, str]]:
    """Carry out tasks in a Spark session; yields each with its result."""
    from analysis.spark.tasks import carry, shipped_packages

    # Values in lists usually rise, and so do times of tasks. The longest tasks come
    # first, so that no core waits at the end.
    with (
        shipped_packages(spark, PACKAGES, _DISTRIBUTION),
        closing(carry(spark, work, tasks[::-1], at_once, _say)) as carried,
    ):
        for task, outcome in carried:
            yield task, outcome if isinstance(outcome, str) else give_up(task, outcome)


def choose_master(master: str | None, jobs: int | None) -> str:
    """The Spark master: this machine's cores, with retries, unless a cluster is named."""
    local = _LOCAL.fullmatch(master or "local[*]")
    if local is None:
        return str(master)
    cores = len(os.sched_getaffinity(0)) if local[1] == "*" else int(local[1] or 1)
    return f"local[{jobs or cores},{ATTEMPTS}]"


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _say(line: str) -> None:
    print(f"  {line}", flush=True)
