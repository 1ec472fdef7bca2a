"""Peers with neighbours that never change, to try a routing layer on, and what it told them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from ipaddress import IPv4Address
from itertools import pairwise
from random import Random
from typing import Any

import networkx as nx

from agents.agent import Agent
from agents.core_routing import CoreRouting
from agents.protocol import Announce, Effects, Neighbours, PeerId, Protocol, Surroundings
from agents.routing import CurrentTree, Tree
from agents.runtime.simulator import Simulator
from agents.similarity import EventWindow
from agents.stack import Stack
from topologies.hosts import attach_hosts
from topologies.routes import Routes
from topologies.underlay import Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

RUN = 3
FAST = {
    "period_us": 500_000, "first_selection_s": 5.0, "settle_s": 5.0, "grace_s": 4.0, "cores": 4,
    "alpha_us": 0, "missed_hellos": 4,
}  # fmt: skip


class StaticOverlay(Protocol):
    """Announces the neighbours it was given, as soon as it starts."""

    def on_start(self, now_us: int) -> Effects:
        return [Announce(Neighbours(self.settings["delays_us"]))]


class Listener(Protocol):
    """The layer above: tells its interests, and keeps what it is told about trees."""

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self.trees: dict[int, Tree] = {}
        self.current = 0
        self.orders: list[Any] = []

    def on_start(self, now_us: int) -> Effects:
        window = self.settings.get("window")
        return [Announce(window)] if window is not None else []

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        if isinstance(content, Tree):
            assert content.version not in self.trees or not self.trees[content.version].is_dropped
            assert not (content.is_dropped and content.links)
            self.trees[content.version] = content
        elif isinstance(content, CurrentTree):
            assert not self.trees[content.version].is_dropped
            self.current = content.version
        return []


@cache
def make_underlay(peers: int, seed: int, loss_percent: float = 0.0) -> Underlay:
    """A Waxman network with peers on it; each last mile loses some packets, both ways."""
    underlay = attach_hosts(generate_waxman(max(20, peers // 2), seed=seed), peers, seed=seed)
    if not loss_percent:
        return underlay
    hosts = {host.name for host in underlay.hosts}
    links = [
        replace(
            link,
            ab=replace(link.ab, loss_percent=loss_percent / 2),
            ba=replace(link.ba, loss_percent=loss_percent / 2),
        )
        if link.a in hosts
        else link
        for link in underlay.links
    ]
    return replace(underlay, links=tuple(links))


def make_overlay(underlay: Underlay, seed: int, near: int = 3, far: int = 1) -> nx.Graph:
    """A connected graph of addresses: some nearest neighbours each and some random ones."""
    routes = Routes(underlay)
    delays_us = routes.host_delays_us()
    address = [int(IPv4Address(underlay.address[host.name])) for host in underlay.hosts]
    chance, graph = Random(seed), nx.Graph()
    count = len(address)
    for a in range(count):
        nearest = sorted((b for b in range(count) if b != a), key=lambda b: (delays_us[a, b], b))
        for b in [*nearest[:near], *chance.sample(nearest, min(far, count - 1))]:
            # A little chance on top makes shortest paths unique.
            delay_us = int(delays_us[a, b]) + chance.randrange(3_000)
            graph.add_edge(address[a], address[b], delay_us=delay_us)
    pieces = [min(piece) for piece in nx.connected_components(graph)]
    for a, b in pairwise(pieces):
        delay_us = int(delays_us[address.index(a), address.index(b)])
        graph.add_edge(a, b, delay_us=delay_us)
    return graph


def two_sides(peers: int) -> Underlay:
    """Two stars of hosts around the routers r1 and r2, with one link between them."""
    links = [Link.symmetric("r1", "r2", 5_000)]
    for number in range(1, peers + 1):
        links.append(Link.symmetric(f"h{number}", f"r{1 + number % 2}", 300 + 10 * number))
    hosts = tuple(Host(f"h{number}") for number in range(1, peers + 1))
    return Underlay((Router("r1"), Router("r2")), tuple(links), hosts)


class Crowd:
    """Peers on a static overlay, each with the routing layer and a listener on top."""

    def __init__(
        self,
        underlay: Underlay,
        graph: nx.Graph,
        seed: int,
        windows: Mapping[PeerId, EventWindow] | None = None,
        late: Mapping[PeerId, int] | None = None,
        routing: type[Protocol] = CoreRouting,
        **settings: Any,
    ) -> None:
        """Start all peers within a second, but those in `late` at the times given there."""
        self.records: list[tuple[int, str, str, dict[str, Any]]] = []
        self.simulator = Simulator(underlay, seed=seed, record=self._record)
        self.graph = graph
        self.host = {int(IPv4Address(underlay.address[h.name])): h.name for h in underlay.hosts}
        self.routing: dict[PeerId, Any] = {}
        self.listener: dict[PeerId, Listener] = {}
        self.agents: dict[PeerId, Agent] = {}
        self._seed, self._windows, self._kind = seed, windows or {}, routing
        self._settings = {**FAST, **settings}
        self._lives: Counter[PeerId] = Counter()
        chance = Random(seed)
        for peer in sorted(self.host):
            self.simulator.add_agent(self.host[peer], partial(self._make, peer))
            start_us = chance.randrange(1_000_000)
            self.simulator.start_agent((late or {}).get(peer, start_us), self.host[peer])

    def _make(self, peer: PeerId) -> Agent:
        self._lives[peer] += 1
        dice = Random(f"{self._seed}/{peer}/{self._lives[peer]}")
        given = Surroundings(peer, (), dice)
        delays = {other: data["delay_us"] for other, data in self.graph[peer].items()}
        overlay = StaticOverlay(replace(given, settings={"delays_us": delays}))
        self.routing[peer] = self._kind(replace(given, settings=self._settings))
        settings = {"window": self._windows.get(peer)}
        self.listener[peer] = Listener(replace(given, settings=settings))
        stack = Stack([overlay, self.routing[peer], self.listener[peer]])
        self.agents[peer] = Agent(peer, RUN, stack)
        return self.agents[peer]

    def _record(self, time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        self.records.append((time_us, host, what, dict(values)))

    def run(self, until_s: float) -> "Crowd":
        self.simulator.run(int(until_s * 1e6))
        return self

    def kill(self, *peers: PeerId, at_s: float | None = None) -> "Crowd":
        """Let peers vanish without a word, now or later."""
        at_us = self.simulator.now_us if at_s is None else int(at_s * 1e6)
        for peer in peers:
            self.simulator.kill_agent(at_us, self.host[peer])
            self.simulator.call_at(at_us, partial(self._bury, peer))
        return self

    def _bury(self, peer: PeerId, now_us: int) -> None:
        for by_peer in (self.routing, self.listener, self.agents):
            by_peer.pop(peer, None)

    def tell(self, peer: PeerId, content: Any) -> None:
        """Have the layer above announce something, as if on its own."""
        stack = self.agents[peer]._protocol
        assert isinstance(stack, Stack)
        effects = stack._announce(self.simulator.now_us, 2, content)
        seat = self.simulator._seat(self.host[peer])
        actions = self.agents[peer]._carry_out(self.simulator.now_us, effects)
        self.simulator._carry_out(self.simulator.now_us, seat, actions)

    @property
    def sent(self) -> Counter[str]:
        """Messages of all living agents by kind."""
        total: Counter[str] = Counter()
        for agent in self.agents.values():
            total.update(agent.figures)
        return total

    def recorded(self, what: str) -> list[dict[str, Any]]:
        return [values for _, _, said, values in self.records if said == what]

    def leaders(self) -> set[PeerId]:
        return {routing.tree.leader for routing in self.routing.values()}

    def cores(self) -> tuple[int, ...]:
        """The cores of the last selection."""
        last = self.recorded("cores_selected")[-1]
        return tuple(map(int, last["cores"].split()))

    def current(self) -> int:
        """The version that all peers use."""
        (version,) = {listener.current for listener in self.listener.values()}
        return version

    def tree(self, version: int | None = None) -> nx.DiGraph:
        """The links of a version as announced by each of their ends."""
        wanted = self.current() if version is None else version
        graph = nx.DiGraph()
        graph.add_nodes_from(self.listener)
        for peer, listener in self.listener.items():
            if wanted in listener.trees:
                graph.add_edges_from((peer, other) for other in listener.trees[wanted].links)
        return graph

    def check_tree(self, version: int | None = None) -> nx.Graph:
        """Assert that the links of a version are symmetric and make a tree over all who live."""
        found = self.tree(version)
        one_sided = [(a, b) for a, b in found.edges if not found.has_edge(b, a)]
        assert not one_sided, f"one-sided: {one_sided[:3]} of {len(one_sided)}"
        tree = found.to_undirected()
        assert set(tree) == set(self.listener), "links to the dead"
        assert nx.is_tree(tree), f"{len(tree)} peers, {tree.number_of_edges()} links"
        return tree
