"""`tdo analyze`: tables and metrics of runs, or of captures of any tool, with Spark."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import UsageError
from testbed.ownership import hand_over
from testbed.run.verdict import Verdict, judge_metrics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Metrics = Mapping[str, Any]

_NOT_VALID = 3
_MOST_NAMED = 3  # metrics with the same note
_TDO = (sys.executable, "-c", "import sys; from testbed.cli import main; sys.exit(main())")


def add_parser(commands: Any) -> None:
    """Add `analyze` to the commands."""
    parser = commands.add_parser(
        "analyze", help="compute tables and metrics of runs or captures with Spark"
    )
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="run directories, or captures (pcap, pcapng)",
    )
    parser.add_argument(
        "--master", metavar="URL", default="local[*]", help="Spark master; default: local[*]"
    )
    parser.add_argument("--again", action="store_true", help="rebuild existing tables")
    parser.add_argument(
        "--out", type=Path, help="folder of the tables of captures; default: beside the captures"
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from analysis.run_directory import is_run, open_run

    runs = [path for path in options.runs if is_run(path)]
    if runs and len(runs) < len(options.runs):
        other = next(path for path in options.runs if path not in runs)
        raise UsageError(f"{other}: expected a run directory like {runs[0]}, found none")
    for path in options.runs:
        if not path.exists() and not any(sign in str(path) for sign in "*?["):
            raise UsageError(f"{path}: expected a run directory or captures, found neither")
    if not runs:
        files = _find_captures(options.runs)
        options.out = options.out or _place_beside(options.runs, files)
    is_brief = bool(runs) and all(open_run(run).is_small for run in runs)
    found: dict[str, Metrics] = {}
    verdicts: list[Verdict | None] = []
    with _session(options.master, is_brief) as spark:
        for run in runs:
            found[str(run)], verdict = _analyze(spark, run, options.again)
            verdicts.append(verdict)
            _print_verdict(verdict)
        if not runs:
            found[str(options.runs[0])] = _analyze_captures(spark, options)
    if options.json:
        whole = next(iter(found.values())) if len(found) == 1 else {"runs": found}
        print(json.dumps(whole, sort_keys=True))
    is_doubtful = any(one and one.verdict != "valid" for one in verdicts)
    is_unreadable = any(metrics.get("unreadable") for metrics in found.values())
    return _NOT_VALID if is_doubtful or is_unreadable else 0


def _find_captures(places: Sequence[Path]) -> list[Path]:
    """The captures of the paths; raises before Spark starts if there is nothing to read."""
    from analysis.captures import find_captures, why_no_capture
    from analysis.errors import CaptureError

    try:
        files = find_captures(list(places))
    except CaptureError as error:
        raise UsageError(f"{error}; or give a run directory") from error
    problems = [why_no_capture(file) for file in files]
    if all(problems):
        raise UsageError(
            f"{files[0]}: expected a run directory or a capture (pcap or pcapng), found: "
            f"{problems[0]}"
        )
    return [Path(file) for file in files]


def _place_beside(places: Sequence[Path], files: Sequence[Path]) -> Path:
    """The default folder of tables: in the folder of the captures, or beside a single one."""
    if len(places) == 1 and places[0].is_dir():
        return places[0] / "analysis"
    if len(files) == 1:
        return files[0].with_name(f"{files[0].name}-analysis")
    folders = sorted({file.parent for file in files})
    if len(folders) > 1:
        raise UsageError(
            f"captures: expected files of one folder, found some in {folders[0]} and in "
            f"{folders[1]}; name the folder of their tables with --out"
        )
    return folders[0] / "analysis"


def analyze_fresh(run: Path) -> tuple[Metrics, Verdict | None]:
    """The metrics of a run that has just ended, and the verdict based on them."""
    from analysis.run_directory import open_run

    with _session("local[*]", open_run(run).is_small) as spark:
        return _analyze(spark, run, again=False)


def analyze_apart(run: Path) -> None:
    """Analyse and judge a run of a sweep in another process, which ends Spark, too."""
    from analysis.errors import AnalysisError

    done = subprocess.run(
        [*_TDO, "analyze", str(run)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, _NOT_VALID):
        words = done.stderr.strip().rpartition("\n")[2] or f"exit status {done.returncode}"
        raise AnalysisError(f"{run}: expected an analysis, found: {words.removeprefix('tdo: ')}")


@contextmanager
def _session(master: str, is_brief: bool) -> Iterator["SparkSession"]:
    """A Spark session; workers on other machines are sent our packages."""
    from analysis.spark.failures import clear_failures
    from analysis.spark.session import open_session
    from analysis.spark.tasks import shipped_packages

    start = time.perf_counter()
    with (
        clear_failures(master),
        open_session(master, "tdo analyze", is_brief=is_brief) as spark,
    ):
        _say(f"Spark started in {time.perf_counter() - start:.1f} s, master {master}")
        if master.startswith("local"):
            yield spark
            return
        with shipped_packages(spark, ("analysis", "topologies", "workloads"), "tdo-testbed"):
            yield spark


def _analyze(spark: "SparkSession", run: Path, again: bool) -> tuple[Metrics, Verdict | None]:
    from analysis.analyze import analyze_run

    print(f"{run}:", flush=True)
    start = time.perf_counter()
    metrics = analyze_run(spark, run, again, _say)
    verdict = judge_metrics(run, metrics)
    hand_over([run / "analysis", run / "verdict.json"])
    _print_summary(metrics, time.perf_counter() - start)
    return metrics, verdict


def _print_verdict(verdict: Verdict | None) -> None:
    if verdict is not None:
        print(f"  verdict: {verdict.verdict}")
        for reason in verdict.reasons:
            print(f"    {reason}")


def _analyze_captures(spark: "SparkSession", options: argparse.Namespace) -> Metrics:
    from analysis.analyze_captures import analyze_captures

    out: Path = options.out
    start = time.perf_counter()
    metrics = analyze_captures(spark, options.runs, out, options.again)
    hand_over([out])
    _print_summary(metrics, time.perf_counter() - start)
    print(f"  tables in {out / 'tables'}")
    return metrics


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _print_summary(metrics: Mapping[str, Any], seconds: float) -> None:
    from analysis.metrics.checks import NOT_APPLICABLE, label_of, state
    from analysis.metrics.table import summary_lines

    for words, value in summary_lines(metrics):
        print(f"  {words:34} {value}")
    for name, check in metrics.get("checks", {}).items():
        found = f": {check['found']:,} of {check['expected']:,}"
        found = "" if state(check) == NOT_APPLICABLE else found
        print(f"  {f'Check: {label_of(name)}':34} {state(check)}{found}")
    for reason, count in metrics.get("capture_errors", {}).items():
        print(f"  not readable: {reason}, {count:,} times")
    for line in note_lines(metrics.get("notes", {})):
        print(f"  {line}")
    print(f"  analysed in {seconds:.1f} s")


def note_lines(notes: Mapping[str, str]) -> Iterator[str]:
    """The notes on metrics, a line for each text: many metrics have the same."""
    from analysis.report.explanations import explain

    names_of: dict[str, list[str]] = {}
    for name, note in sorted(notes.items()):
        names_of.setdefault(note, []).append(name)
    for note, names in names_of.items():
        rest = len(names) - _MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        words = ", ".join(explain(name).label for name in names[:_MOST_NAMED])
        yield f"{words}{more}: {note}"
