"""`tdo init`: a new experiment file with all keys explained."""

import argparse
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.experiment.template import template
from testbed.ownership import hand_over


def add_parser(commands: Any) -> None:
    """Add `init` to the commands."""
    parser = commands.add_parser("init", help="write a new experiment file with all keys explained")
    parser.add_argument("file", type=Path, help="the file to write, as in mine.toml")
    parser.set_defaults(run=_init)


def _init(options: argparse.Namespace) -> int:
    try:
        with options.file.open("x") as file:
            file.write(template())
    except FileExistsError as error:
        raise UsageError(f"{options.file}: exists already; choose another name") from error
    except OSError as error:
        raise UsageError(f"{options.file}: cannot be written: {error.strerror}") from error
    hand_over([options.file])
    print(f"{options.file}: run it with `tdo run {options.file}`")
    return 0
