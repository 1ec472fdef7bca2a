"""The part of `tdo run` for runs in the background."""

import argparse
import json
import sys

from testbed.commands.privileges import require_root
from testbed.detached.launch import Launch, launch
from testbed.sweeps.directory import SweepDirectory
from testbed.sweeps.file import Sweep


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of runs in the background."""
    parser.add_argument(
        "--detach", action="store_true", help="run in the background; tdo status prints its state"
    )
    parser.add_argument("--id", metavar="ID", help="id of a detached run; default: a new one")


def start(sweep: Sweep, options: argparse.Namespace) -> int:
    """Start a run or a sweep in the background, and print how to follow it."""
    backends = sorted({swept.experiment.backend for swept in sweep.experiments})
    if "emulation" in backends:
        require_root(f"run {options.file} --detach")
    directory = None if sweep.is_plain else SweepDirectory.of(sweep, options.out).path
    what = Launch(sweep.name, " and ".join(backends), options.out, options.id, directory)
    folder = launch(what, sys.argv[1:])
    status = folder.status()
    print(f"{sweep.name}: run {status.id} started in the background, process {status.pid}")
    print(f"  state    tdo status {status.id}{_results(options)}")
    print(f"  output   tail -f {folder.log}")
    print(f"  stop     {'sudo ' if 'emulation' in backends else ''}kill {status.pid}")
    if options.json:
        print(json.dumps(status.to_dict()))
    return 0


def _results(options: argparse.Namespace) -> str:
    return "" if str(options.out) == "results" else f" --out {options.out}"
