"""The examples in docs/writing-a-protocol.md and docs/probing.md run as they stand there."""

import re
import socket
from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from time import monotonic_ns
from typing import Any

import pytest

from agents.agent import Agent
from agents.probing.route_probe import RouteProbe
from agents.protocol import Protocol, Surroundings
from agents.runtime.held_clock import HeldClock
from agents.runtime.probe_sockets import Prober
from agents.runtime.simulator import Simulator
from agents.runtime.sockets import AgentSlot, Clock, SocketLoop
from agents.wire.codec import PORT
from testbed.emulation.network import EmulatedNetwork
from tests.fixtures.diamond import diamond

DOCS = Path(__file__).parents[3] / "docs"
END_US = 2_200_000


class Notes:
    """What the agents recorded: how often each host was told the time."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()

    def write(self, time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        assert what == "time_told"
        assert 0 < values["round_trip_us"] < time_us + 1
        self.told[host] += 1


@pytest.fixture(scope="module")
def example() -> type[Protocol]:
    """The protocol on the page."""
    protocol: type[Protocol] = run_code("writing-a-protocol.md")["ClockWatch"]
    return protocol


def run_code(page: str) -> dict[str, Any]:
    """Run the Python on a page; returns what it defined."""
    code = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert code
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile("\n".join(code), page, "exec"), names)
    return names


def make_agent(protocol: type[Protocol], me: str, contact: str) -> Agent:
    address = {name: int(IPv4Address(text)) for name, text in diamond().address.items()}
    settings = protocol.Settings(period_us=500_000)
    given = Surroundings(address[me], (address[contact],), Random(me), settings)
    return Agent(address[me], 1, protocol(given))


def test_it_runs_in_the_simulator(example: type[Protocol]) -> None:
    notes = Notes()
    with Simulator(diamond(), record=notes.write) as simulator:
        for host, contact in (("h1", "h2"), ("h2", "h1")):
            simulator.add_agent(host, lambda h=host, c=contact: make_agent(example, h, c))
            simulator.start_agent(0, host)
        simulator.run(END_US)
    assert notes.told == {"h1": 5, "h2": 5}


def test_it_runs_on_real_hosts(example: type[Protocol]) -> None:
    notes = Notes()
    with EmulatedNetwork(diamond()) as network:
        loop = SocketLoop(Clock(HeldClock(), monotonic_ns(), 1), notes.write)
        for host, contact in (("h1", "h2"), ("h2", "h1")):
            with network.inside(host):
                endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
                slot = AgentSlot(host, endpoint, Prober(RouteProbe))
            endpoint.bind((network.underlay.address[host], PORT))
            loop.add_slot(slot)
            loop.place_agent(slot, make_agent(example, host, contact))
        loop.run(END_US)
    # The two agents start a moment apart, so the first question may find nobody, and is repeated.
    assert set(notes.told) == {"h1", "h2"}
    assert all(4 <= count <= 5 for count in notes.told.values())


def test_a_map_is_drawn_from_probes() -> None:
    found = run_code("probing.md")
    apart, merged = found["scores"][False], found["scores"][True]
    assert merged.link_precision > apart.link_precision
    assert merged.router_recall > 0.9
    assert found["balanced"].is_reached and not found["balanced"].is_balanced
