"""The options that name an experiment file and change its keys."""

import argparse
from pathlib import Path
from typing import Any

from testbed.experiment.file import BACKENDS, parse_change


def add_arguments(parser: argparse.ArgumentParser, file_help: str) -> None:
    """Add the file, and what changes its keys."""
    parser.add_argument("file", type=Path, help=file_help)
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        help="backend of the run; emulation requires root; default: that of the file",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="seed of all random choices; default: that of the file",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="changes",
        help="change a key of the file, as in topology.hosts=20; may be repeated; default: none",
    )


def wanted_changes(options: argparse.Namespace) -> dict[str, Any]:
    """The keys to change, with their values."""
    changes = dict(parse_change(text) for text in options.changes)
    given = {key: getattr(options, key) for key in ("backend", "seed")}
    return changes | {key: value for key, value in given.items() if value is not None}
