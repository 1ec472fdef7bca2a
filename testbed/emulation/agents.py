"""The processes that run agents on an emulated network, and their control."""

import json
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents.agent_spec import AgentSpec
from testbed.emulation.network import EmulatedNetwork
from testbed.errors import EmulationError
from testbed.experiment.file import Experiment

_HEAD_START_NS = 300_000_000
_PATIENCE_S = 60.0


@dataclass
class _Group:
    """The agents of one process; the name of the log has the number of its starts."""

    specs: Sequence[AgentSpec]
    process: subprocess.Popen[str] | None = None
    lives: int = 0


class AgentProcesses:
    """All agents of an experiment on a network, with their start, kill, restart and end."""

    def __init__(
        self,
        network: EmulatedNetwork,
        experiment: Experiment,
        specs: list[AgentSpec],
        folder: Path,
    ) -> None:
        self._network = network
        self._experiment = experiment
        self._folder = folder
        size = experiment.agents_per_process
        self._groups = [_Group(specs[i : i + size]) for i in range(0, len(specs), size)]
        self._group_of = {c.host: group for group in self._groups for c in group.specs}
        self._origin_ns = 0

    @property
    def processes(self) -> list[int]:
        """The ids of the processes that run."""
        return [group.process.pid for group in self._groups if group.process is not None]

    def start(self) -> None:
        """Start all processes and wait until their sockets are open."""
        for group in self._groups:
            self._spawn(group)
        for group in self._groups:
            self._expect(group)

    def go(self) -> int:
        """Start the run; returns its start time on the clock of the network."""
        self._origin_ns = self._network.clock.now_ns() + _HEAD_START_NS
        for group in self._groups:
            self._tell(group, {"origin_ns": self._origin_ns})
        return self._origin_ns

    def kill(self, host: str) -> None:
        """Kill an agent: its process, if it has its own."""
        group = self._group(host)
        if len(group.specs) > 1:
            self._tell(group, {"kill": host})
        elif group.process is not None:
            group.process.kill()
            group.process.communicate()
            group.process = None

    def leave(self, host: str) -> None:
        """Stop an agent; a process of its own continues without it."""
        group = self._group(host)
        if group.process is not None:  # it did not run before
            self._tell(group, {"stop": host})

    def restart(self, host: str) -> None:
        """Restart an agent that was killed."""
        group = self._group(host)
        if len(group.specs) > 1:
            self._tell(group, {"restart": host})
            return
        self.kill(host)
        self._spawn(group, start_at_once=True)
        self._expect(group)
        self._tell(group, {"origin_ns": self._origin_ns})

    def check(self) -> None:
        """Raise if a process has ended that should still run."""
        for group in self._groups:
            if group.process is not None and group.process.poll() not in (None, 0):
                self._expect(group, at_end=True)

    def finish(self) -> list[dict[str, Any]]:
        """Wait for all processes to end; returns their measurements."""
        return [self._expect(group, at_end=True) for group in self._groups if group.process]

    def stop(self) -> None:
        """End all processes that still run."""
        for group in self._groups:
            if group.process is not None:
                group.process.kill()
                group.process.communicate()
                group.process = None

    def _group(self, host: str) -> _Group:
        if host not in self._group_of:
            raise EmulationError(f"agent {host}: expected a host of this network")
        return self._group_of[host]

    def _spawn(self, group: _Group, start_at_once: bool = False) -> None:
        group.lives += 1
        name = f"{group.specs[0].host}-{group.lives}"
        with (self._folder / f"{name}.stderr").open("w") as errors:
            group.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "testbed.emulation.agent_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=self._network.ledger.environment,
                start_new_session=True,
            )
        self._tell(group, self._setting(group, name, start_at_once))

    def _setting(self, group: _Group, name: str, start_at_once: bool) -> dict[str, Any]:
        specs = []
        for spec in group.specs:
            plain = asdict(spec) | ({"start_us": 0} if start_at_once else {})
            specs.append((plain, self._network.namespace_path(spec.host)))
        return {
            "run_id": int(self._network.ledger.run_id, 16),
            "clock": self._network.link_layer.clock_path,
            "time_scale": self._experiment.time_scale,
            "duration_us": int(self._experiment.duration_s * 1e6),
            "layers": self._experiment.layers,
            "first_life": group.lives,
            "log": str(self._folder / f"{name}.jsonl"),
            "specs": specs,
        }

    def _tell(self, group: _Group, message: dict[str, Any]) -> None:
        if group.process is None or group.process.stdin is None:
            raise EmulationError(
                f"agents of {group.specs[0].host}: expected a running process, found it killed"
            )
        try:
            group.process.stdin.write(json.dumps(message) + "\n")
            group.process.stdin.flush()
        except BrokenPipeError:
            self._expect(group, at_end=True)  # raises with the last line of its log

    def _expect(self, group: _Group, at_end: bool = False) -> dict[str, Any]:
        """The next answer of a process; raises with the last line of its log if it has ended."""
        process = group.process
        if process is None or process.stdout is None:
            raise EmulationError(f"agents of {group.specs[0].host}: expected them to run")
        poller = select.poll()  # the descriptor may be too large a number for select
        poller.register(process.stdout, select.POLLIN)
        if not poller.poll(_PATIENCE_S * 1000):
            raise EmulationError(
                f"agents of {group.specs[0].host}: expected an answer within "
                f"{_PATIENCE_S:.0f} s, found none"
            )
        line = process.stdout.readline()
        if line and not at_end:
            return dict(json.loads(line))
        status = process.wait()
        group.process = None
        if status != 0 or not line:  # a negative status is the signal that ended it
            log = self._folder / f"{group.specs[0].host}-{group.lives}.stderr"
            words = log.read_text().strip().rpartition("\n")[2]
            raise EmulationError(
                f"agents of {group.specs[0].host}: exited {status}: {words} (see {log})"
            )
        return dict(json.loads(line))
