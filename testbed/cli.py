"""The command `tdo`: one module in `testbed.commands` for each of its commands."""

import argparse
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
from testbed.errors import UsageError
from topologies.errors import TestbedError, TopologyError

FAILED, WRONG_USE = 1, 2
_DESCRIPTION = (
    "What a publish/subscribe overlay costs the network under it, measured on a real one."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status (see the table in the README)."""
    options = _parser().parse_args(arguments)
    for request_to_end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(request_to_end, _end)
    try:
        status: int = options.run(options)
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
    """Leave in good order when asked to end, so that networks are taken down."""
    raise SystemExit("tdo: ended by a signal")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tdo", description=_DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"tdo {version('tdo-testbed')}")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    commands_in_order = (
        doctor,
        topology,
        overlay,
        listing,
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
