"""Agents that do what a test tells them, and networks small enough to work out by hand."""

from collections.abc import Hashable, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
from msgspec import Struct

from agents.agent import Agent
from agents.codec import U32, message
from agents.protocol import Effect, Effects, PeerId, Protocol, Record, SetTimer, Surroundings
from agents.route import Route
from agents.runtime.packet_log import FILE_NAME, PacketLog
from agents.runtime.simulator import Simulator
from topologies.underlay import Channel, Host, Link, Router, Underlay

RUN = 7


@message(220)
class Word(Struct, frozen=True):
    number: U32


class Scripted(Protocol):
    """Carries out effects at given times, and records all it is told."""

    messages = (Word,)

    def on_start(self, now_us: int) -> Effects:
        del now_us
        script: Mapping[int, list[Effect]] = self.settings.get("script", {})
        return [Record("started"), *(SetTimer(("play", at_us), at_us) for at_us in script)]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        del now_us
        match name:
            case ("play", at_us):
                return list(self.settings["script"][at_us])
        return [Record("rang", {"name": str(name)})]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        del now_us
        return [Record("heard", {"from": sender, "number": message.number})]

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        del now_us
        hops = " ".join(f"{hop.address}/{hop.round_trips_us}" for hop in route.hops)
        return [Record("probed", {"is_reached": route.is_reached, "hops": hops, "route": route})]

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        del now_us
        return [Record("gave_up", {"to": to, "number": message.number})]


class Stage:
    """A simulator with scripted agents, and what they recorded."""

    def __init__(self, underlay: Underlay, packets: Path | None = None, seed: int = 1) -> None:
        self.records: list[tuple[int, str, str, dict[str, Any]]] = []
        self.underlay = underlay
        self.simulator = Simulator(
            underlay,
            seed=seed,
            notes=PacketLog(packets, underlay) if packets else None,
            record=lambda *row: self.records.append((*row[:3], dict(row[3]))),
        )
        self._packets = packets

    def address(self, name: str) -> int:
        return int(IPv4Address(self.underlay.address[name]))

    def cast(self, host: str, script: Mapping[int, list[Effect]] | None = None) -> None:
        """Start an agent at time 0."""

        def make() -> Agent:
            given = Surroundings(self.address(host), (), Random(host), {"script": script or {}})
            return Agent(self.address(host), RUN, Scripted(given))

        self.simulator.add_agent(host, make)
        self.simulator.start_agent(0, host)

    def run(self, until_us: int) -> "Stage":
        """Run to the end, and complete the packet log."""
        self.simulator.run(until_us)
        self.simulator.close()
        return self

    def heard(self, host: str) -> list[tuple[int, int]]:
        """When a host heard which number."""
        return [(row[0], row[3]["number"]) for row in self.recorded(host, "heard")]

    def recorded(self, host: str, what: str) -> list[tuple[int, str, str, dict[str, Any]]]:
        return [row for row in self.records if row[1:3] == (host, what)]

    def packets(self) -> list[dict[str, Any]]:
        """The rows of the packet log."""
        assert self._packets is not None
        rows: list[dict[str, Any]] = pq.read_table(self._packets / FILE_NAME).to_pylist()
        return rows


def line(*middle: Channel, routers: int = 3, anonymous: frozenset[str] = frozenset()) -> Underlay:
    """h1 - r1 - r2 - r3 - h2: last miles of 100 us, links of 1,000 us or as given."""
    names = [f"r{number}" for number in range(1, routers + 1)]
    channels = [*middle, *[Channel(1_000)] * routers]
    backbone = [
        Link(a, b, channel, channel)
        for a, b, channel in zip(names[:-1], names[1:], channels, strict=False)
    ]
    last_miles = [Link.symmetric("h1", "r1", 100), Link.symmetric("h2", names[-1], 100)]
    return Underlay(
        tuple(Router(name, anonymous=name in anonymous) for name in names),
        (*backbone, *last_miles),
        (Host("h1"), Host("h2")),
    )


def ring() -> Underlay:
    """h1 on r1, h2 on r3; 2,000 us over r2, 3,000 us over r4."""
    links = [
        Link.symmetric("r1", "r2", 1_000),
        Link.symmetric("r2", "r3", 1_000),
        Link.symmetric("r1", "r4", 1_500),
        Link.symmetric("r4", "r3", 1_500),
        Link.symmetric("h1", "r1", 100),
        Link.symmetric("h2", "r3", 100),
    ]
    return Underlay(
        tuple(Router(f"r{number}") for number in range(1, 5)),
        tuple(links),
        (Host("h1"), Host("h2")),
    )
