"""`tdo report` and `tdo open`: a run as one HTML file, with figures for print beside it."""

import argparse
import json
import webbrowser
from pathlib import Path
from typing import Any

from analysis.json_files import read_object
from testbed.errors import UsageError
from testbed.ownership import hand_over
from testbed.run.listing import list_runs
from topologies.errors import TestbedError

_VALID, _NOT_VALID = "valid", 3


def add_parser(commands: Any) -> None:
    """Add `report` to the commands."""
    parser = commands.add_parser("report", help="write report.html and the figures of a run")
    parser.add_argument("directory", type=Path, help="a run directory, complete or not")
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.set_defaults(run=_report)
    opening = commands.add_parser("open", help="open the report of a run in the browser")
    opening.add_argument(
        "directory", type=Path, nargs="?", help="a run directory; default: the newest run"
    )
    opening.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the results; default: results"
    )
    opening.set_defaults(run=_open)


def report_run(run: Path) -> Path:
    """Write the report of a run; returns where it is."""
    from analysis.errors import NotARunError
    from analysis.report import write_report

    try:
        return write_report(run)
    except NotARunError as error:
        raise UsageError(str(error)) from error
    finally:
        hand_over([run / "analysis"])


def _report(options: argparse.Namespace) -> int:
    report = report_run(options.directory)
    print(report)
    if options.json:
        print(json.dumps({"report": str(report), "figures": str(report.parent / "figures")}))
    verdict = read_object(options.directory / "verdict.json").get("verdict", _VALID)
    return 0 if verdict == _VALID else _NOT_VALID


def _open(options: argparse.Namespace) -> int:
    run = options.directory or _newest_run(options.out)
    report = run / "analysis" / "report.html"
    if not report.is_file():
        report = report_run(run)
    print(report)
    if not webbrowser.open(report.resolve().as_uri()):
        raise TestbedError(f"{report}: found no browser to open it with; copy it to a desktop")
    return 0


def _newest_run(results: Path) -> Path:
    runs = list_runs(results)
    if not runs:
        raise UsageError(f"{results}: expected runs, found none; `tdo run FILE` makes one")
    return Path(runs[0].path)
