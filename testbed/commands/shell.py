"""`tdo shell`: build a network and open Mininet's prompt."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mininet.cli import CLI
from mininet.log import lg, output

from testbed.commands.privileges import require_root
from testbed.emulation.capture import Capture
from testbed.emulation.network import EmulatedNetwork, Phase
from testbed.errors import UsageError
from testbed.experiment.file import load_experiment
from testbed.ownership import hand_over
from testbed.run.underlay import make_underlay
from topologies.errors import TestbedError
from topologies.importers import load_topology
from topologies.underlay import Underlay

_HINT = """
Try `h1 ping h2`, `h1 traceroute -n h2`, `route h1 h2`, `r1 ip route`, `link r1 r2 down`, `help`.
`exit` ends the prompt and removes the network.
"""


def add_parser(commands: Any) -> None:
    """Add `shell` to the commands."""
    parser = commands.add_parser(
        "shell", help="build a network and open Mininet's prompt; requires root"
    )
    parser.add_argument(
        "file", type=Path, help="an experiment, or a topology file that `topology import` reads"
    )
    parser.add_argument(
        "-c",
        dest="commands",
        action="append",
        metavar="COMMAND",
        help="run a command and exit; may be repeated; default: the prompt",
    )
    parser.add_argument(
        "--links",
        choices=("netem", "delay-line"),
        help="implementation of links; default: netem where the kernel has it",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of random losses on links; default: 0"
    )
    parser.add_argument(
        "--capture",
        type=Path,
        metavar="FOLDER",
        help="write every packet to this new folder; default: no capture",
    )
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    require_root(f"shell {options.file}")
    underlay = _load(options.file)
    commands = options.commands
    if commands is None and not sys.stdin.isatty():
        commands = sys.stdin.read().splitlines()
    print(f"{len(underlay.routers):,} routers, {len(underlay.hosts):,} hosts", flush=True)
    network = EmulatedNetwork(
        underlay, links=options.links, seed=options.seed, on_phase=_print_phase
    )
    for handler in lg.handlers:
        handler.setStream(sys.stdout)  # Mininet would write to standard error
    with network, _capturing(network, options.capture):
        print(_HINT if commands is None else "", flush=True)
        Prompt(network, commands)
    return 0


@contextmanager
def _capturing(network: EmulatedNetwork, folder: Path | None) -> Iterator[None]:
    """Capture into a folder, if one is given, and print the number of packets afterwards."""
    if folder is None:
        yield
        return
    with Capture(network, folder) as capture:
        yield
        figures = capture.finish()
    hand_over([folder])
    print(f"{figures['packets']:,} packets in {folder}, {figures['dropped']:,} dropped")


def _load(path: Path) -> Underlay:
    """The underlay of an experiment file, or in a topology file."""
    if path.suffix == ".toml":
        return make_underlay(load_experiment(path))
    return load_topology(path)


class Prompt(CLI):  # type: ignore[misc]  # Mininet has no types
    """Mininet's prompt with the command `route` for true routes."""

    def __init__(self, network: EmulatedNetwork, commands: list[str] | None) -> None:
        """Run the commands, or read them from the prompt if there are none."""
        self._commands = commands
        if commands is None:
            super().__init__(network)
            return
        # Mininet forwards its input to the running command, so there must be none.
        reading, writing = os.pipe()
        with os.fdopen(reading) as silent_input, os.fdopen(writing, "w"):
            super().__init__(network, stdin=silent_input)

    def run(self) -> None:
        """Run the commands, or those typed at the prompt."""
        if self._commands is None:
            super().run()
            return
        for command in self._commands:
            print(f"{self.prompt}{command}", flush=True)
            if self.onecmd(self.precmd(command)):
                return

    def onecmd(self, line: str) -> bool:
        """Run one command; an error is printed, and the prompt continues."""
        try:
            return bool(super().onecmd(line))
        except TestbedError as error:
            output(f"{error}\n")
        except Exception as error:  # a mistake at the prompt must not remove the network
            output(f"{line}: {type(error).__name__}: {error}\n")
        return False

    def do_route(self, line: str) -> None:
        """Show the true route between two nodes: route h1 h9"""
        nodes = line.split()
        if len(nodes) != 2:
            raise UsageError(f"route: expected two nodes, as in `route h1 h9`, found {line!r}")
        address = self.mn.underlay.address
        output("".join(f"{node:8} {address[node]}\n" for node in self.mn.routes.path(*nodes)))
        output(f"one way {self.mn.routes.path_delay_us(*nodes) / 1000:.3f} ms\n")


def _print_phase(phase: Phase) -> None:
    print(f"  {phase.name:22} {phase.duration_s:7.2f} s {phase.used_mb:7.0f} MB", flush=True)
