"""Gossip agents driven by SimPy, with networks as in SimPy's documentation, and with callbacks.

As in SimPy's documentation, a host is a process that waits on a `Store`, its mailbox, and a timer
is a process that waits with `timeout`. Three variants carry packets, from the most to the least
detailed:

- "nodes": routers are processes with mailboxes, too, and a cable is a process that waits for the
  link's delay and puts the packet into the next mailbox (the "event latency" example of SimPy's
  documentation). Every link could have a rate or go down, as in our simulator.
- "links": a packet is one process that waits for each link of its route in turn, with the link's
  current delay. A link's delay could change while packets are on the way, as in our simulator.
- "ways": a packet is one process that waits once, for the delay of its whole route. It has no
  links.

"callbacks" uses SimPy's event queue as a scheduler, without processes and mailboxes: a packet and a
timer are each a `timeout` with a function to call. It is by far the fastest variant, and as little
detailed as "ways".

Routes are computed before the measurement, for our simulator as well.
"""

from collections.abc import Generator, Hashable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

import simpy

from agents.agent import Actions, Agent
from agents.protocol import SetTimer
from agents.wire.codec import Datagram
from topologies.routes import Routes

Style = Literal["nodes", "links", "ways", "callbacks"]
_Process = Generator[simpy.Event, Any, None]
_Packet = tuple[Datagram, list["SimpyCable"], int]


@dataclass(slots=True)
class SimpyCable:
    """A link in one direction with a variable delay, and the mailbox at its end."""

    delay_us: int
    mailbox: simpy.Store


class SimpyHost:
    """An agent with its mailbox, its timers, and its paths to others."""

    def __init__(self, env: simpy.Environment, name: str, agent: Agent) -> None:
        self.name = name
        self.agent = agent
        self.mailbox = simpy.Store(env)
        self.timers: dict[Hashable, int] = {}
        self.ways: dict[int, list[SimpyCable]] = {}


class SimpySimulation:
    """Agents on the hosts of an underlay, run by SimPy."""

    def __init__(
        self,
        routes: Routes,
        agents: Mapping[str, Agent],
        contacts: Mapping[str, tuple[int, ...]],
        style: Style,
    ) -> None:
        self.messages = 0
        self._env = simpy.Environment()
        self._style = style
        hosts = [SimpyHost(self._env, name, agent) for name, agent in agents.items()]
        self._host_at = {host.agent.address: host for host in hosts}
        self._find_ways(routes, contacts)
        for host in hosts:
            self._env.process(self._live(host))

    def run(self, until_us: int) -> None:
        """Process everything that is due before a time."""
        self._env.run(until_us)

    def _find_ways(self, routes: Routes, contacts: Mapping[str, tuple[int, ...]]) -> None:
        mailboxes = {host.name: host.mailbox for host in self._host_at.values()}
        for router in routes.underlay.routers:
            mailboxes[router.name] = simpy.Store(self._env)
            self._env.process(self._route(mailboxes[router.name]))
        cables = {
            link: SimpyCable(delay_us, mailboxes[link[1]])
            for link, delay_us in _link_delays(routes).items()
        }
        for a in self._host_at.values():
            for b in (self._host_at[address] for address in contacts[a.name]):
                for source, target in ((a, b), (b, a)):
                    path = routes.path(source.name, target.name)
                    way = [cables[link] for link in pairwise(path)]
                    if self._style == "ways":
                        way = [SimpyCable(sum(cable.delay_us for cable in way), target.mailbox)]
                    source.ways[target.agent.address] = way

    def _live(self, host: SimpyHost) -> _Process:
        self._carry_out(host, host.agent.start(int(self._env.now)))
        while True:
            datagram, _, _ = yield host.mailbox.get()
            self.messages += 1
            now_us = int(self._env.now)
            self._carry_out(host, host.agent.on_datagram(now_us, datagram))

    def _route(self, mailbox: simpy.Store) -> _Process:
        while True:
            self._env.process(self._cable((yield mailbox.get())))

    def _cable(self, packet: _Packet) -> _Process:
        datagram, way, step = packet
        yield self._env.timeout(way[step].delay_us)
        way[step].mailbox.put((datagram, way, step + 1))

    def _cross_links(self, packet: _Packet) -> _Process:
        way = packet[1]
        for cable in way:
            yield self._env.timeout(cable.delay_us)
        way[-1].mailbox.put(packet)

    def _carry_out(self, host: SimpyHost, actions: Actions) -> None:
        carry = self._cable if self._style == "nodes" else self._cross_links
        for action in actions:
            if isinstance(action, Datagram):
                way = host.ways[action.receiver]
                self._env.process(carry((action, way, 0)))
            elif isinstance(action, SetTimer):
                number = host.timers[action.name] = host.timers.get(action.name, 0) + 1
                self._env.process(self._wait(host, action.name, action.delay_us, number))

    def _wait(self, host: SimpyHost, name: Hashable, delay_us: int, number: int) -> _Process:
        """Wait until a timer expires, then handle it."""
        yield self._env.timeout(delay_us)
        if host.timers[name] == number:
            self._carry_out(host, host.agent.on_timer(int(self._env.now), name))


@dataclass(slots=True)
class ScheduledHost:
    """An agent with its timers, and the delays of its paths to others."""

    agent: Agent
    timers: dict[Hashable, int] = field(default_factory=dict)
    delays_us: dict[int, int] = field(default_factory=dict)


class SimpyScheduler:
    """Agents on hosts, driven by callbacks in SimPy's event queue."""

    def __init__(
        self,
        routes: Routes,
        agents: Mapping[str, Agent],
        contacts: Mapping[str, tuple[int, ...]],
    ) -> None:
        self.messages = 0
        self._env = simpy.Environment()
        self._host_at = {agent.address: ScheduledHost(agent) for agent in agents.values()}
        names = {agent.address: name for name, agent in agents.items()}
        for name, peers in contacts.items():
            here = self._host_at[agents[name].address]
            for peer in peers:
                there = self._host_at[peer]
                here.delays_us[peer] = routes.path_delay_us(name, names[peer])
                there.delays_us[here.agent.address] = routes.path_delay_us(names[peer], name)
        for host in self._host_at.values():
            self._env.timeout(0, host).callbacks.append(self._start)

    def run(self, until_us: int) -> None:
        """Process everything that is due before a time."""
        self._env.run(until_us)

    def _start(self, event: simpy.Event) -> None:
        host: Any = event.value
        self._carry_out(host, host.agent.start(int(self._env.now)))

    def _deliver(self, event: simpy.Event) -> None:
        datagram: Any = event.value
        host = self._host_at[datagram.receiver]
        self.messages += 1
        self._carry_out(host, host.agent.on_datagram(int(self._env.now), datagram))

    def _ring(self, event: simpy.Event) -> None:
        timer: Any = event.value
        host, name, number = timer
        if host.timers[name] == number:
            self._carry_out(host, host.agent.on_timer(int(self._env.now), name))

    def _carry_out(self, host: ScheduledHost, actions: Actions) -> None:
        for action in actions:
            if isinstance(action, Datagram):
                delay_us = host.delays_us[action.receiver]
                self._env.timeout(delay_us, action).callbacks.append(self._deliver)
            elif isinstance(action, SetTimer):
                number = host.timers[action.name] = host.timers.get(action.name, 0) + 1
                timer = (host, action.name, number)
                self._env.timeout(action.delay_us, timer).callbacks.append(self._ring)


def _link_delays(routes: Routes) -> dict[tuple[str, str], int]:
    delays_us = {}
    for link in routes.underlay.links:
        delays_us[link.a, link.b] = link.ab.delay_us
        delays_us[link.b, link.a] = link.ba.delay_us
    return delays_us
