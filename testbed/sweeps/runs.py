"""The runs of a sweep, in this process or as tasks on other machines.

A task is a JSON text, and so is the row that it returns. It can be repeated safely: an existing
run is kept, and of two that run at once the first to finish counts.
"""

import json
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from testbed.errors import UsageError
from testbed.experiment.file import Experiment, experiment_from_dict
from testbed.ownership import hand_over
from testbed.run.directory import Origin
from testbed.run.lifecycle import run_at
from testbed.run.verdict import is_judged, judge_metrics
from testbed.sweeps.directory import (
    SweepDirectory,
    check_shared,
    name_run,
    read_metrics,
    read_row,
)
from testbed.sweeps.file import Sweep, SweptExperiment, describe_values
from testbed.sweeps.progress import ATTEMPTS, Progress
from testbed.sweeps.rows import Row, count_commits, failed_row, write_table
from topologies.errors import TopologyError

Measure = Callable[[Path], object]  # adds the metrics of a run
Say = Callable[[str], None]
# Takes tasks and yields each with its row, in any order; closed early, it cancels the rest.
Carrier = Callable[[Sequence[str]], Generator[tuple[str, str]]]


def play_sweep(
    sweep: Sweep,
    directory: SweepDirectory,
    carriers: Mapping[str, Carrier],
    is_measured: bool,
    say: Callable[[str], None],
    is_needed: Callable[[SweptExperiment], bool] = lambda _: True,
    elsewhere: Mapping[str, Path] = MappingProxyType({}),
) -> list[Row]:
    """Do the missing runs with the carrier of their backend; returns a row for each run.

    Runs that are not needed are not done, and have a row only if they exist. Runs of other sweeps
    (`elsewhere`, by digest) are copied from there.
    In any case, the table has the complete runs at the end.
    """
    parents = (directory.path.parents[1], directory.path.parent)
    new = [path for path in parents if not path.exists()]
    with directory.locked():
        origin = Origin.here()
        directory.prepare(sweep, origin)
        needed = [swept for swept in sweep.experiments if is_needed(swept)]
        for swept in needed:
            if swept.digest in elsewhere and not directory.run_of(swept).exists():
                directory.adopt(swept, elsewhere[swept.digest])
        rows = _find_done(sweep, directory, is_measured)
        pending = [swept for swept in needed if name_run(swept) not in rows]
        say(f"{len(sweep.experiments)} runs, {len(rows)} of them done before, {len(pending)} to do")
        if rows:
            commits = count_commits(rows.values()).items()
            before = ", ".join(f"{count} of commit {commit}" for commit, count in commits)
            say(f"done before: {before}; this is commit {origin.commit or 'unknown'}")
        progress = Progress(len(rows) + len(pending), len(rows), say)
        try:
            for backend, carrier in carriers.items():
                chosen = [swept for swept in pending if swept.experiment.backend == backend]
                tasks = {write_task(swept, directory, origin): swept for swept in chosen}
                with closing(carrier(list(tasks))) as carried:
                    for task, text in carried:
                        row = rows[name_run(tasks[task])] = json.loads(text)
                        progress.tell(_label(tasks[task]), row)
            directory.remove_partial_runs()
        finally:
            names = [name_run(swept) for swept in sweep.experiments]
            in_order = [rows[name] for name in names if name in rows]
            write_table(directory.path, "runs", sweep.keys, in_order)
            hand_over([*new, directory.path])
    return in_order


def _find_done(sweep: Sweep, directory: SweepDirectory, is_measured: bool) -> dict[str, Row]:
    """The rows of runs that earlier commands completed."""
    rows = {}
    for swept in sweep.experiments:
        run = directory.run_of(swept)
        if run.exists() and (not is_measured or _is_measured(run)):
            rows[run.name] = read_row(run, swept.values, swept.experiment.seed)
    return rows


def _label(swept: SweptExperiment) -> str:
    return describe_values({**swept.values, "seed": swept.experiment.seed})


def write_task(swept: SweptExperiment, directory: SweepDirectory, origin: Origin) -> str:
    """The task of a run, with what a worker needs beside the sweep's folder."""
    return json.dumps(
        {
            "folder": str(directory.path),
            "run": name_run(swept),
            "values": dict(swept.values),
            "experiment": swept.experiment.to_dict(),
            "command": origin.command,
            "commit": origin.commit,
        }
    )


def perform_task(task: str, measure: Measure | None, say: Say = lambda _line: None) -> str:
    """Do a run unless it is done, measure it unless it is measured, and return its row.

    A run that cannot succeed has a row with the error. Any other failure is recorded in the folder
    and raised, so that the carrier can repeat the task.
    """
    given = json.loads(task)
    folder, run, values = Path(given["folder"]), given["run"], given["values"]
    check_shared(folder)
    experiment = experiment_from_dict(given["experiment"], run)
    origin = Origin(tuple(given["command"]), given["commit"])
    try:
        _complete(folder / "runs" / run, experiment, origin, measure, say)
    except (UsageError, TopologyError) as error:  # another attempt would fail as well
        _note_failure(folder, run)
        return json.dumps(failed_row(values, experiment.seed, str(error)))
    except Exception:
        _note_failure(folder, run)
        raise
    (folder / "failures" / f"{run}.txt").unlink(missing_ok=True)
    return json.dumps(read_row(folder / "runs" / run, values, experiment.seed))


def perform_here(
    tasks: Sequence[str], measure: Measure | None, say: Say = lambda _line: None
) -> Generator[tuple[str, str]]:
    """Do runs one after another in this process; yields each task with its row."""
    for task in tasks:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                yield task, perform_task(task, measure, say)
                break
            except Exception as error:
                if attempt == ATTEMPTS:
                    yield task, give_up(task, error)


def give_up(task: str, error: Exception) -> str:
    """The row of a task that failed too often, with the task's own error if it has one."""
    given = json.loads(task)
    try:
        text = Path(given["folder"], "failures", f"{given['run']}.txt").read_text()
    except OSError:
        text = str(error)
    lines = text.strip().splitlines() or [type(error).__name__]
    return json.dumps(failed_row(given["values"], given["experiment"]["seed"], lines[-1]))


def _complete(
    run: Path, experiment: Experiment, origin: Origin, measure: Measure | None, say: Say
) -> None:
    say(f"{run.name}:")
    if not run.exists():
        text = (run.parents[1] / "experiment.toml").read_text()
        run_at(run, experiment, text, origin, lambda line: say(f"  {line}"))
    if measure is not None and not _is_measured(run):
        say("  analysing")
        measure(run)
        judge_metrics(run, read_metrics(run) or {})
        hand_over([run / "analysis", run / "verdict.json"])


def _is_measured(run: Path) -> bool:
    """Whether a run is measured, and judged with its metrics."""
    return read_metrics(run) is not None and is_judged(run)


def _note_failure(folder: Path, run: str) -> None:
    failures = folder / "failures"
    failures.mkdir(exist_ok=True)
    (failures / f"{run}.txt").write_text(traceback.format_exc())
