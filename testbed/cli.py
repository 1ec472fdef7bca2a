"""The command `tdo`: one module in `testbed.commands` for each of its commands."""

import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version

from testbed.commands import (
    analyze,
    bench,
    clean,
    compare,
    doctor,
    init,
    listing,
    overlay,
    remote,
    report,
    reproduce,
    run,
    shell,
    status,
    topology,
)
from testbed.commands.parser import WRONG_USE, CommandParser
from testbed.errors import UsageError
from topologies.errors import TestbedError, TopologyError

FAILED = 1
_DESCRIPTION = "Measures what a publish/subscribe overlay costs the network under it."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (see the table in the README)."""
    options = make_parser().parse_args(arguments)
    for request_to_end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(request_to_end, _end)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output has ended, as head does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (TestbedError, OSError) as error:
        if options.debug:
            traceback.print_exc()
        print(f"tdo: {error}", file=sys.stderr)
        return WRONG_USE if isinstance(error, UsageError | TopologyError) else FAILED
    except KeyboardInterrupt:
        print("tdo: interrupted", file=sys.stderr)
        return FAILED
    return status


def _end(*_: object) -> None:
    """Exit on a signal in an orderly way, so that networks are removed."""
    raise SystemExit("tdo: ended by a signal")


def make_parser() -> CommandParser:
    """The parser of all commands."""
    parser = CommandParser(prog="tdo", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"tdo {version('tdo-testbed')}")
    parser.add_argument("--debug", action="store_true", help="print the traceback of an error")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    commands_in_order = (
        doctor,
        topology,
        overlay,
        listing,
        init,
        run,
        status,
        remote,
        analyze,
        report,
        compare,
    )
    for module in (*commands_in_order, shell, reproduce, clean, bench):
        module.add_parser(commands)
    return parser
