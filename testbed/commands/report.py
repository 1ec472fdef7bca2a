"""`tdo report`: a run as one HTML file, with figures for print beside it."""

import argparse
import json
from pathlib import Path
from typing import Any

from analysis.json_files import read_object
from testbed.errors import UsageError
from testbed.ownership import hand_over

_VALID, _NOT_VALID = "valid", 3


def add_parser(commands: Any) -> None:
    """Add `report` to the commands."""
    parser = commands.add_parser("report", help="write report.html and the figures of a run")
    parser.add_argument("directory", type=Path, help="a run directory, complete or not")
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.set_defaults(run=_report)


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
