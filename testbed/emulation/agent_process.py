"""A process that runs the agents of some hosts.

It reads one JSON object from standard input, opens a socket in each host's namespace as root,
gives up its privileges, answers `{"ready": true}`, and waits for `{"origin_ns": …}`, the start
of the run on the clock of its network. Then it serves until the run is over, obeys
lines such as `{"kill": host}`, `{"stop": host}` and `{"restart": host}` meanwhile, and answers with
its figures.
"""

import gc
import json
import os
import socket
import sys
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import msgspec

from agents.agent_spec import AgentSpec
from agents.kinds import find_protocol, make_agent
from agents.probing.route_probe import RouteProbe
from agents.records import RecordLog
from agents.runtime.held_clock import HeldClock
from agents.runtime.probe_sockets import Prober
from agents.runtime.sockets import AgentSlot, Clock, SocketLoop
from agents.wire.codec import PORT
from testbed.emulation.capacity import raise_descriptor_limit
from testbed.emulation.namespaces import entered
from testbed.emulation.privileges import AGENTS_FIRST, become_nobody, hurry

_BUFFER_BYTES = 1 << 20
_SO_RCVBUFFORCE = 33


class AgentProcess:
    """The agents of some hosts, from opening the sockets to the last record."""

    def __init__(self, setting: dict[str, Any], log: RecordLog) -> None:
        self._setting = setting
        specs = [(msgspec.convert(plain, AgentSpec), space) for plain, space in setting["specs"]]
        self._specs = {spec.host: spec for spec, _ in specs}
        self._shared: dict[str, Any] = {}
        self._log = log
        for section, settings in setting["layers"].items():
            find_protocol(section, settings["kind"])  # imported now, while no timer waits
        self._held = HeldClock(setting["clock"])
        self._slots = {spec.host: self._open_slot(spec, at) for spec, at in specs}
        self._planned = set(self._specs)
        self._lives = dict.fromkeys(self._specs, setting["first_life"])

    def run(self) -> dict[str, Any]:
        """Serve until the end of the run; returns measurements."""
        origin_ns = json.loads(_read_line())["origin_ns"]
        clock = Clock(self._held, origin_ns, self._setting["time_scale"])
        loop = SocketLoop(clock, self._log.write)
        loop.add_reader(0, partial(self._obey, loop))
        for host, slot in self._slots.items():
            loop.add_slot(slot)
            start_us = self._specs[host].start_us
            loop.call_at(start_us, partial(self._start_as_planned, loop, host))
        end_us = self._setting["duration_us"]
        loop.run(end_us)
        loop.close()
        for host, slot in self._slots.items():
            if slot.agent is not None:
                self._log.write(end_us, host, "agent_ended", slot.agent.figures)
        return {
            "lag": loop.timer_lag.to_values(),
            "datagram_lag": loop.datagram_lag.to_values(),
            "cpu_s": process_time(),
        }

    def _open_slot(self, spec: AgentSpec, namespace_path: str) -> AgentSlot:
        """The sockets of a host, opened inside its namespace."""
        address = socket.inet_ntoa(spec.address.to_bytes(4, "big"))
        namespace = os.open(namespace_path, os.O_RDONLY)
        with entered(namespace):
            endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
            endpoint.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
            endpoint.bind((address, PORT))
            scale = self._setting["time_scale"]
            prober = Prober(RouteProbe, time_scale=scale, held=self._held)
        os.close(namespace)
        return AgentSlot(spec.host, endpoint, prober)

    def _start_as_planned(self, loop: SocketLoop, host: str, _now_us: int) -> None:
        if host in self._planned:
            self._start(loop, host)

    def _start(self, loop: SocketLoop, host: str) -> None:
        self._planned.discard(host)
        loop.remove_agent(self._slots[host])
        given = self._specs[host].surroundings(self._lives[host], self._shared)
        agent = make_agent(self._setting["layers"], self._setting["run_id"], given)
        self._lives[host] += 1
        loop.place_agent(self._slots[host], agent)

    def _obey(self, loop: SocketLoop) -> None:
        """Carry out a command; the end of standard input ends the process."""
        line = _read_line()
        if not line:
            sys.exit("the testbed has ended")
        command = json.loads(line)
        if "kill" in command:
            self._planned.discard(command["kill"])
            loop.remove_agent(self._slots[command["kill"]])
        if "stop" in command:
            self._planned.discard(command["stop"])
            loop.stop_agent(self._slots[command["stop"]])
        if "restart" in command:
            self._start(loop, command["restart"])


def _read_line() -> bytes:
    """The next line of standard input and no more, so that polling sees the following ones."""
    with open(0, "rb", buffering=0, closefd=False) as unbuffered:
        return unbuffered.readline()


def main() -> None:
    """Run the agents described on standard input."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # output of a protocol goes to its log
    setting = json.loads(_read_line())
    raise_descriptor_limit()
    with Path(setting["log"]).open("w", buffering=1) as file:
        process = AgentProcess(setting, RecordLog(file))
        gc.disable()  # it would pause all agents at once, and free almost nothing
        hurry(AGENTS_FIRST)
        become_nobody()
        answers.write(json.dumps({"ready": True}) + "\n")
        answers.write(json.dumps(process.run()) + "\n")


if __name__ == "__main__":
    main()
