"""`tdo status`: detached runs that are running or ended recently, and networks on this machine."""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.detached.state import find_run, find_runs
from testbed.emulation.ledger import read_ledgers

_LATELY = 10
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400

Run = Mapping[str, Any]


def add_parser(commands: Any) -> None:
    """Add `status` to the commands."""
    parser = commands.add_parser("status", help="print the state of detached runs")
    parser.add_argument(
        "id", nargs="?", metavar="RUN", help="id of a run, or the beginning of the id; default: all"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the results; default: results"
    )
    parser.add_argument(
        "--all", action="store_true", help="list all runs that ended, not only the last ten"
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    if options.id is not None:
        run = find_run(options.out, options.id).status().to_dict()
        print_run(run)
        if options.json:
            print(json.dumps(run))
        return 0
    runs = [folder.status() for folder in find_runs(options.out)]
    going_on = [run for run in runs if run.is_going_on]
    ended = [run for run in runs if not run.is_going_on]
    shown = [run.to_dict() for run in going_on + (ended if options.all else ended[:_LATELY])]
    known = {run.pid for run in going_on}
    networks = [
        {"id": ledger.run_id, "pid": ledger.owner, "command": ledger.command}
        for ledger in read_ledgers()
        if ledger.is_live and ledger.owner not in known
    ]
    print_status(shown, networks)
    if options.json:
        print(json.dumps({"runs": shown, "networks": networks}))
    return 0


def print_status(
    runs: Sequence[Run], networks: Sequence[Mapping[str, Any]], start: str = "tdo run FILE --detach"
) -> None:
    """Print a line for each run, and one for each network; `start` is the command for a new run."""
    if not runs and not networks:
        print(f"no runs; `{start}` starts one")
    widths = [
        max((len(cells[place]) for cells in map(_cells, runs)), default=0) for place in (0, 1, 2)
    ]
    for run in runs:
        cells = _cells(run)
        padded = [cell.ljust(width) for cell, width in zip(cells[:3], widths, strict=True)]
        print("  ".join((*padded, cells[3])))
    for network in networks:
        print(f"network {network['id']} of process {network['pid']} ({network['command']})")


def print_run(run: Run) -> None:
    """Print everything about one run."""
    lines = {
        "run": f"{run['id']} ({run['backend']})",
        "phase": run["phase"],
        "progress": run["progress"],
        "started": f"{run['started_at']}, {_duration(run['elapsed_s'])}",
        "process": run["pid"],
        "directory": run["directory"],
        "verdict": run["verdict"],
        "died": run["died"],
        "log": run["log"],
    }
    for title, value in lines.items():
        if value:
            print(f"{title:10} {value}")


def _cells(run: Run) -> tuple[str, str, str, str]:
    """The cells of a run's line: id, phase, time, and the most important information."""
    if run["phase"] == "finished":
        said = f"{run['verdict'] or 'verdict unknown'}, {run['directory']}"
    else:
        said = run["died"] or run["progress"]
    return run["id"], run["phase"], _duration(run["elapsed_s"]), str(said)


def _duration(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S:.0f} min {seconds % _MINUTE_S:.0f} s"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S:.0f} h {seconds % _HOUR_S // _MINUTE_S:.0f} min"
    return f"{seconds // _DAY_S:.0f} d {seconds % _DAY_S // _HOUR_S:.0f} h"
