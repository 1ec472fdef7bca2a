"""`tdo doctor`: checks of this machine."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from testbed.doctor import Finding, can_emulate, examine


def add_parser(commands: Any) -> None:
    """Add `doctor` to the commands."""
    parser = commands.add_parser(
        "doctor", help="check what this machine can do, and print a command to fix each problem"
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    findings = examine()
    for finding in findings:
        print(_line(finding))
    good = can_emulate(findings)
    print("\nEmulated runs are possible." if good else "\nEmulated runs are not possible yet.")
    if options.json:
        print(json.dumps({"can_emulate": good, "findings": [asdict(f) for f in findings]}))
    return 0 if good else 1


def _line(finding: Finding) -> str:
    mark = "ok  " if finding.is_good else "FAIL" if finding.is_needed else "note"
    remedy = f"  ->  {finding.remedy}" if finding.remedy else ""
    return f"{mark}  {finding.name:20} {finding.found}{remedy}"
