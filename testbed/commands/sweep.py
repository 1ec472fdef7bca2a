"""The part of `tdo run` for sweeps: parallel runs, a table and figures at the end."""

import argparse
import functools
import json
import shlex
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.json_files import read_object
from analysis.numbers import read_number
from testbed.commands.analyze import analyze_apart
from testbed.commands.carriers import carry_in_session, carry_on_spark
from testbed.commands.privileges import require_root
from testbed.errors import ExperimentError
from testbed.ownership import hand_over
from testbed.sweeps.directory import SweepDirectory
from testbed.sweeps.file import VARIANT, Sweep
from testbed.sweeps.rows import FAILED, Row
from testbed.sweeps.runs import (
    Carrier,
    Measure,
    give_up,
    perform_here,
    perform_task,
    play_sweep,
)

if TYPE_CHECKING:
    from analysis.figures.sweep import Figure

_MEASURED = {"figures.messages": "messages", "wall_s": "time, s"}  # columns that are not metrics
_SHOWN_METRICS = ("discovered_links", "inferences", "rdp.mean", "stress_ratio", "figures.messages")
_MOST_SHOWN = 60


def run_sweep(sweep: Sweep, options: argparse.Namespace) -> int:
    """Run a sweep, print its table and draw its figures; returns the exit status."""
    backends = {swept.experiment.backend for swept in sweep.experiments}
    if "emulation" in backends:
        require_root(f"run {options.file}")
    print(f"{sweep.name}: sweep, {' and '.join(sorted(backends))}", flush=True)
    measure = None if options.no_report else load_measure()
    directory = SweepDirectory.of(sweep, options.out)
    carriers = make_carriers(options, measure)
    rows = play_sweep(sweep, directory, carriers, measure is not None, _say)
    print()
    print_table(sweep.keys, rows)
    for line in repeat_lines(directory.path, rows, options.file, sweep.keys):
        print(line)
    print(f"\n{directory.path}/runs.csv has all runs")
    drawn = [] if options.no_report else draw_figures(sweep, rows, directory)
    verdicts = Counter(row["verdict"] for row in rows)
    if options.json:
        outcome = {"path": str(directory.path), "runs": len(rows), "verdicts": dict(verdicts)}
        print(json.dumps(outcome | {"failed": verdicts[FAILED], "figures": drawn}))
    return 1 if verdicts[FAILED] else 0 if set(verdicts) <= {"valid"} else 3


def make_carriers(options: argparse.Namespace, measure: Measure | None) -> dict[str, Carrier]:
    """The functions that run experiments of each backend; `measure` is for simulated ones.

    The verdict on an emulated run requires an analysis of its packets, as after `tdo run`.
    """
    analyze = None if measure is None else analyze_apart
    work = functools.partial(perform_task, measure=measure)
    return {
        "simulation": functools.partial(
            carry_on_spark, options.master, options.jobs, work, give_up
        ),
        "emulation": lambda tasks: perform_here(tasks, analyze, _say),
    }


def load_measure() -> Measure:
    """The function that measures a run; only commands that need it wait for its imports."""
    from analysis.metrics.file import measure_run

    return measure_run


def carry_runs(spark: Any, at_once: int | None, measure: Measure | None) -> Carrier:
    """A function that does runs in a Spark session."""
    work = functools.partial(perform_task, measure=measure)
    return functools.partial(carry_in_session, spark, at_once, work, give_up)


def print_table(keys: Sequence[str], rows: Sequence[Row]) -> None:
    """Print a line for each run; of very many runs, only those that are not valid."""
    shown = [row for row in rows if row["verdict"] != "valid"] if len(rows) > _MOST_SHOWN else rows
    metrics = [name for name in _SHOWN_METRICS if any(row.get(name) is not None for row in rows)]
    columns = list(dict.fromkeys((*keys, "seed", "verdict", "wall_s", *metrics)))
    lines = [[_title(column, columns) for column in columns]]
    lines += [[_cell(column, row.get(column)) for column in columns] for row in shown]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    for line in lines if shown else []:
        print("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)))
    counted = Counter(row["verdict"] for row in rows)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counted.items())))


def repeat_lines(
    folder: Path, rows: Sequence[Row], file: str | Path, keys: Sequence[str]
) -> list[str]:
    """For each run that is not valid, its seed, the first reason, and how to repeat it."""
    lines = []
    for row in rows:
        if row["verdict"] != "valid":
            run = folder / row["path"] if row["path"] else None
            reasons = read_object(run / "verdict.json").get("reasons") if run else [row["error"]]
            reason = (reasons or ["reason not recorded"])[0]
            command = f"tdo rerun {run}" if run else _run_again(row, file, keys)
            lines.append(
                f"{row['verdict']}, seed {row['seed']}: {reason}: repeat it with {command}"
            )
    return lines


def _run_again(row: Row, file: str | Path, keys: Sequence[str]) -> str:
    """The command for a run that has no directory, because it failed."""
    chosen = {key: row[key] for key in ("seed", *keys) if key != VARIANT}
    changes = (shlex.quote(f"{key}={json.dumps(value)}") for key, value in chosen.items())
    return " ".join(("tdo run", str(file), *(f"--set {change}" for change in changes)))


def _title(column: str, columns: Sequence[str]) -> str:
    from analysis.metrics.names import name_number

    if column in _SHOWN_METRICS:
        words, unit = name_number(column)
        return f"{words}, %" if unit == "share" else _MEASURED.get(column, words)
    short = column.rpartition(".")[2]
    is_clear = sum(other.rpartition(".")[2] == short for other in columns) == 1
    return _MEASURED.get(column, short if is_clear else column)


def _cell(column: str, value: Any) -> str:
    from analysis.metrics.names import name_number

    if value is None:
        return "-"
    if column in _SHOWN_METRICS:
        return read_number(100 * value if name_number(column).unit == "share" else value)
    return read_number(value) if isinstance(value, float) else str(value)


def draw_figures(sweep: Sweep, rows: Sequence[Row], directory: SweepDirectory) -> list[str]:
    """Draw the figures of the file; returns their files."""
    if not sweep.figures:
        return []
    from analysis.figures.sweep import Figure

    keys = [key for key in sweep.keys if key not in ("seed", VARIANT)]
    figures = [Figure(**{**given, "lines": tuple(given["lines"])}) for given in sweep.figures]
    return draw(figures, keys, rows, directory.path)


def draw(
    figures: Sequence["Figure"], keys: Sequence[str], rows: Sequence[Row], path: Path
) -> list[str]:
    """Draw figures of rows below a folder; returns their files."""
    from analysis.figures.sweep import FigureError, draw_figure, read_series

    folder = path / "figures"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    drawn: list[str] = []
    for number, figure in enumerate(figures):
        try:
            if figure.series:
                steps = read_series(figure.series, rows, path)
                files, notes = draw_figure(figure, steps, (*keys, figure.x), folder)
            else:
                files, notes = draw_figure(figure, rows, keys, folder)
        except FigureError as error:
            raise ExperimentError(f"figure[{number}].{error}") from error
        finally:
            hand_over([folder])
        drawn += [str(file) for file in files]
        for line in (*(f"figure {figure.name}: {note}" for note in notes), *map(str, files[:1])):
            print(line)
    return drawn


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that only sweeps use."""
    parser.add_argument(
        "--master",
        metavar="URL",
        help="Spark master for the simulated runs of a sweep; default: this machine's cores. On a "
        "cluster, --out must be a folder that all machines share, and workers need this Python "
        "(or PYSPARK_PYTHON) with the testbed's dependencies",
    )
    parser.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="runs of a sweep at the same time; default: number of cores",
    )


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {text!r}")
    return int(text)
