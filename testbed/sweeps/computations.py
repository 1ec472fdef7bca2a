"""Runs computations of claims: missing points are computed, existing ones are read."""

import functools
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from testbed.ownership import hand_over
from testbed.run.directory import Origin
from testbed.sweeps.computation_directory import ComputationDirectory
from testbed.sweeps.file import describe_values
from testbed.sweeps.points import PointCarrier, compute_point, give_up_point, write_point_task
from testbed.sweeps.progress import Progress
from testbed.sweeps.rows import Row, locked, write_table

if TYPE_CHECKING:
    from analysis.claims import Computation, Point


def play_computation(
    computation: "Computation",
    results: Path,
    carrier: PointCarrier,
    say: Callable[[str], None],
    is_needed: Callable[["Point"], bool] = lambda _: True,
) -> tuple[list[Row], Path]:
    """Compute the missing points of those needed; returns a row for each point, and the folder.

    Each point is written when it is finished. If the command is interrupted, the table has the
    finished points.
    """
    directory = ComputationDirectory.of(computation, results)
    parents = (directory.path.parents[1], directory.path.parent)
    new = [path for path in parents if not path.exists()]
    with locked(directory.path, "computation"):
        origin = Origin.here()
        directory.prepare(computation, origin)
        needed = [name for name, point in directory.names.items() if is_needed(point)]
        rows = {name: row for name in needed if (row := directory.read(name)) is not None}
        pending = [name for name in needed if name not in rows]
        say(f"{len(needed)} points, {len(rows)} of them done before, {len(pending)} to do")
        progress = Progress(len(needed), len(rows), say)
        work = functools.partial(compute_point, function=computation.function)
        tasks = {_write_task(directory, name): name for name in pending}
        try:
            with closing(carrier(work, give_up_point, list(tasks))) as carried:
                for task, text in carried:
                    name = tasks[task]
                    rows[name] = directory.keep(name, json.loads(text), origin)
                    progress.tell(_label(directory, directory.names[name]), rows[name])
        finally:
            in_order = [rows[name] for name in needed if name in rows]
            write_table(directory.path, "points", computation.keys, in_order)
            hand_over([*new, directory.path, directory.points])
    return in_order, directory.path


def _write_task(directory: ComputationDirectory, name: str) -> str:
    point = directory.names[name]
    return write_point_task(name, point.values, point.seed)


def _label(directory: ComputationDirectory, point: "Point") -> str:
    return describe_values({**directory.settings(point), "seed": point.seed})
