"""`tdo clean`: removes leftovers of networks whose processes ended, and nothing else."""

import argparse
from typing import Any

from testbed.commands.privileges import require_root
from testbed.emulation.ledger import clean


def add_parser(commands: Any) -> None:
    """Add `clean` to the commands."""
    parser = commands.add_parser(
        "clean", help="remove what killed runs left behind, and nothing else; requires root"
    )
    parser.set_defaults(run=_run)


def _run(_options: argparse.Namespace) -> int:
    require_root("clean")
    removed, kept = clean()
    for thing in removed:
        print(f"removed {thing}")
    for thing in kept:
        print(f"left alone, still running: {thing}")
    if not removed:
        print("nothing to remove")
    return 0
