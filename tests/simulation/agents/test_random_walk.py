"""The discovery overlay by random walks: connected, within its limits, with true routes."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Any

import networkx as nx
import pytest

from agents.agent import Agent
from agents.kinds import make_agent
from agents.overlays.random_walk.messages import Connect, Join, NewParent, Walk
from agents.overlays.random_walk.overlay import RandomWalk
from agents.protocol import SetTimer
from agents.runtime.simulator import Simulator
from testbed.errors import ExperimentError
from testbed.experiment.file import experiment_from_dict
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from topologies.routes import Routes
from topologies.underlay import Host, Link, Router, Underlay

SECOND_US = 1_000_000


class Overlay:
    """Peers that start one after another on a simulated network."""

    def __init__(
        self,
        seed: int = 1,
        routers: int = 40,
        hosts: int = 24,
        loss_percent: float = 0,
        underlay: Underlay | None = None,
        topology: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        document = {
            "name": "walk",
            "seed": seed,
            "duration_s": 600,
            "start_over_s": hosts / 10,
            "topology": {"routers": routers, "hosts": hosts, **(topology or {})},
            "overlay": {"kind": "tdo-walk", "heartbeat_us": SECOND_US, **settings},
        }
        self.experiment = experiment_from_dict(document, "test")
        self.underlay = lossy(underlay or make_underlay(self.experiment), loss_percent)
        self.records: list[tuple[int, str, str, Mapping[str, Any]]] = []
        self.agents: dict[str, Agent] = {}
        self.lives: Counter[str] = Counter()
        self.simulator = Simulator(
            self.underlay, seed=seed, record=lambda *row: self.records.append(row)
        )
        self.specs = {c.host: c for c in assign_agents(self.experiment, self.underlay, None)}
        self.host_of = {c.address: c.host for c in self.specs.values()}
        for spec in self.specs.values():
            self.simulator.add_agent(spec.host, lambda c=spec: self._make(c))
            self.simulator.start_agent(spec.start_us, spec.host)

    def _make(self, spec: Any) -> Agent:
        self.lives[spec.host] += 1
        given = spec.surroundings(self.lives[spec.host], {})
        self.agents[spec.host] = make_agent(self.experiment.layers, 1, given)
        return self.agents[spec.host]

    def run(self, until_s: float) -> "Overlay":
        self.simulator.run(int(until_s * SECOND_US))
        return self

    def kill(self, at_s: float, *hosts: str) -> None:
        for host in hosts:
            self.simulator.kill_agent(int(at_s * SECOND_US), host)
            self.simulator.call_at(int(at_s * SECOND_US), lambda _, h=host: self.agents.pop(h))

    def protocol(self, host: str) -> RandomWalk:
        protocol = self.agents[host]._protocol
        assert isinstance(protocol, RandomWalk)
        return protocol

    def graph(self, near_only: bool = False) -> nx.DiGraph:
        """The neighbours of each running peer in the peer's view."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.agents)
        for host in self.agents:
            for peer, neighbour in self.protocol(host).neighbours.items():
                if neighbour.is_near or not near_only:
                    graph.add_edge(host, self.host_of[peer])
        return graph

    def assert_well(self) -> None:
        """Assert that the overlay is connected, links are known at both ends, and no dead peer is
        in it.
        """
        graph = self.graph()
        assert set(graph) == set(self.agents)
        assert all(graph.has_edge(b, a) for a, b in graph.edges)
        assert nx.is_strongly_connected(graph)

    def count(self, what: str) -> int:
        return sum(row[2] == what for row in self.records)

    def wrong_routes(self, what: str) -> int:
        """Recorded routes that differ from the true ones, apart from silent routers."""
        routes = Routes(self.underlay)
        name = {str(int(IPv4Address(at))): node for node, at in self.underlay.address.items()}
        wrong = 0
        for _, host, kind, values in self.records:
            if kind == what:
                found = ["" if hop == "0" else name[hop] for hop in values["routers"].split()]
                true = routes.path(host, self.host_of[values["peer"]])[1:-1]
                seen = [t if f else "" for t, f in zip(true, found, strict=False)]
                wrong += found != seen or len(found) != len(true)
        return wrong


def lossy(underlay: Underlay, percent: float) -> Underlay:
    """The underlay with a packet loss on every link between routers."""
    if not percent:
        return underlay
    links = tuple(
        replace(
            link,
            ab=replace(link.ab, loss_percent=percent),
            ba=replace(link.ba, loss_percent=percent),
        )
        if link.a not in underlay.last_mile
        else link
        for link in underlay.links
    )
    return replace(underlay, links=links)


def a_line_of_routers(count: int, hosts: Mapping[str, str]) -> Underlay:
    """Routers r1, r2, … in a row, and hosts by the router they are attached to."""
    routers = tuple(Router(f"r{n}") for n in range(1, count + 1))
    links = [Link.symmetric(f"r{n}", f"r{n + 1}", 5_000) for n in range(1, count)]
    links += [Link.symmetric(host, router, 1_000) for host, router in hosts.items()]
    return Underlay(routers, tuple(links), tuple(Host(host) for host in hosts))


@pytest.mark.parametrize("heuristic", ["mlink", "dworst", "dbest", "donly", "tarrand", "nearest"])
def test_the_overlay_is_connected_with_any_heuristic(heuristic: str) -> None:
    for seed in (1, 2, 3):
        overlay = Overlay(seed, heuristic=heuristic).run(40)
        overlay.assert_well()
        inferred = overlay.count("route_inferred")
        assert inferred == 0 if heuristic == "donly" else inferred >= len(overlay.agents)


def test_every_inferred_or_derived_route_is_true() -> None:
    for seed in (1, 2, 3):
        overlay = Overlay(seed, hosts=40).run(40)
        assert overlay.count("route_known") > overlay.count("route_inferred") > 0
        assert overlay.wrong_routes("route_inferred") == 0
        assert overlay.wrong_routes("route_known") == 0


def test_asymmetric_routes_are_inferred_from_both_ends() -> None:
    overlay = Overlay(topology={"asymmetry": 0.5}, reverse_routes=False).run(40)
    overlay.assert_well()
    assert overlay.wrong_routes("route_known") == 0
    reversing = Overlay(topology={"asymmetry": 0.5}).run(40)
    assert reversing.wrong_routes("route_known") > 0


def test_a_peer_on_the_route_is_inserted_between_two_others() -> None:
    """Case 2: h2 joins between h1 and h3. Case 1: h4 is forwarded beyond h3."""
    line = a_line_of_routers(4, {"h1": "r1", "h3": "r3", "h2": "r2", "h4": "r4"})
    overlay = Overlay(hosts=4, underlay=line, distant_links=0).run(30)
    near = overlay.graph(near_only=True).to_undirected()
    assert sorted(map(sorted, near.edges)) == [["h1", "h2"], ["h2", "h3"], ["h3", "h4"]]


def test_peers_on_one_router_join() -> None:
    one = a_line_of_routers(2, {"h1": "r1", "h2": "r1", "h3": "r1", "h4": "r2", "h5": "r2"})
    overlay = Overlay(hosts=5, underlay=one).run(30)
    overlay.assert_well()
    assert nx.is_strongly_connected(overlay.graph(near_only=True))


@pytest.mark.parametrize("limit", ["1", "2", "lg1", "lg2", "sq"])
def test_degree_limits_are_kept_and_the_overlay_becomes_stable(limit: str) -> None:
    for seed in (1, 2, 3):
        overlay = Overlay(seed, degree_limit=limit).run(300)
        overlay.assert_well()
        most = {"1": 1, "2": 2, "lg1": 5, "lg2": 10, "sq": 5}[limit]
        degrees = [d for _, d in overlay.graph(near_only=True).out_degree()]
        assert max(degrees) == most
        before = Counter(row[2] for row in overlay.records)
        assert Counter(row[2] for row in overlay.run(400).records) == before


def test_the_overlay_is_built_and_repaired_with_five_percent_loss_on_every_link() -> None:
    for seed in (1, 2, 3):
        overlay = Overlay(seed, loss_percent=5, missed_heartbeats=8).run(60)
        overlay.assert_well()
        assert overlay.wrong_routes("route_inferred") == 0
        # A router whose answers were all lost appears silent, and may be taken for another router.
        assert overlay.wrong_routes("route_known") <= overlay.count("route_known") / 50


def test_crashes_are_detected_and_the_others_stay_connected() -> None:
    for seed in range(5):
        overlay = Overlay(seed, hosts=40)
        dead = [f"h{n}" for n in range(1, 11)]  # including the first contacts of all peers
        overlay.kill(20, *dead)
        overlay.run(60).assert_well()
        assert overlay.count("neighbour_removed") > len(dead)


def test_a_peer_that_leaves_is_removed_at_once_and_rejoins_after_its_return() -> None:
    overlay = Overlay().run(20)
    overlay.simulator.stop_agent(20 * SECOND_US, "h5")
    overlay.agents.pop("h5")
    overlay.run(20.5)
    assert not any(overlay.graph().has_edge(host, "h5") for host in overlay.agents)
    overlay.simulator.start_agent(30 * SECOND_US, "h5")
    overlay.run(40).assert_well()
    assert overlay.protocol("h5").neighbours


def test_peers_that_crash_while_they_join_delay_no_other_peer() -> None:
    for seed in (1, 2, 3):
        overlay = Overlay(seed)
        for host in ("h10", "h11", "h12"):  # just after their first message
            overlay.kill(overlay.specs[host].start_us / SECOND_US + 0.15, host)
        overlay.run(90).assert_well()
        waiting = [overlay.protocol(host) for host in overlay.agents]
        assert not any(p._for_delay or p._for_route for p in waiting)


def test_a_walk_that_returns_to_its_origin_continues() -> None:
    overlay = Overlay().run(20)
    walker = overlay.protocol("h7")
    neighbour = next(iter(walker.neighbours))
    effects = walker.on_message(20 * SECOND_US, neighbour, Walk(walker.me, 1, 500, 3, 9))
    sent = [effect.message for effect in effects]
    assert [(walk.targets, walk.ttl) for walk in sent] == [(3, 8)]
    assert walker.on_message(20 * SECOND_US, neighbour, Walk(walker.me, 1, 500, 3, 1)) == []


def test_invalid_messages_have_no_effect() -> None:
    overlay = Overlay().run(20)
    peer, stranger = overlay.protocol("h7"), 12345
    before = dict(peer.neighbours)
    assert peer.on_message(0, stranger, Connect(peer.me, (1,), 0, ())) == []
    assert peer.on_message(0, stranger, Connect(stranger, (), 0, ())) == []
    assert peer.on_message(0, stranger, Walk(stranger, 1, 1, 1, 0)) == []
    assert dict(peer.neighbours) == before


def test_silent_routers_reduce_accuracy_but_not_connectivity() -> None:
    overlay = Overlay(hosts=40, topology={"anonymous_routers": 0.33}).run(40)
    overlay.assert_well()
    assert overlay.wrong_routes("route_inferred") == 0  # The discovered part is true.


def test_one_seed_gives_one_run() -> None:
    first, second, other = (Overlay(seed, loss_percent=2).run(30) for seed in (1, 1, 2))
    assert first.records == second.records
    assert first.records != other.records


def test_targets_by_global_knowledge_are_contacted_directly() -> None:
    overlay = Overlay(heuristic="farthest", targets=3)
    for spec in overlay.specs.values():
        assert len(set(spec.targets) - {spec.address}) == 3
    overlay.run(40)
    sent = Counter[str]()
    for agent in overlay.agents.values():
        sent.update(agent.figures)
    assert sent["sent_Join"] == 3 * len(overlay.agents)
    assert sent["sent_Walk"] == 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"heuristic": "best"}, "overlay.heuristic: expected one of dworst, .*; found 'best'"),
        ({"degree_limit": "0"}, "overlay.degree_limit: expected one of lg1, .*; found|found '0'"),
        ({"selectivity": 0.0}, "overlay.selectivity: expected above 0, at most 1, found 0.0"),
        ({"ttl": 0}, "overlay.ttl: expected 1 to 65535, found 0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        Overlay(**settings)


def test_a_join_causes_an_inference() -> None:
    overlay = Overlay().run(20)
    effects = overlay.protocol("h7").on_message(0, 12345, Join())
    assert [type(effect).__name__ for effect in effects] == ["ProbeRoute"]


def test_a_forwarded_peer_checks_later_that_it_has_joined() -> None:
    peer = Overlay().run(20).protocol("h7")
    effects = peer.on_message(0, next(iter(peer.neighbours)), NewParent(12345, (1, 2)))
    assert "join" in [effect.name for effect in effects if isinstance(effect, SetTimer)]


def test_a_link_with_different_states_at_its_ends_is_repaired() -> None:
    overlay = Overlay(distant_links=0).run(20)
    peer = overlay.protocol("h7")
    lost = [address for address, _ in peer.neighbours.near()]
    for address in lost:
        peer.neighbours[address].route, peer.neighbours[address].is_distant = None, True
    overlay.run(26)
    for address in lost:
        there = overlay.protocol(overlay.host_of[address]).neighbours.get(peer.me)
        here = peer.neighbours.get(address)
        assert (there is not None and there.is_near) == (here is not None and here.is_near)


def test_targets_that_start_late_are_contacted_again() -> None:
    overlay = Overlay(hosts=12, heuristic="nearest", targets=3)
    overlay.kill(overlay.specs["h5"].start_us / SECOND_US + 0.001, "h5")
    overlay.simulator.start_agent(100 * SECOND_US, "h5")
    overlay.run(200)
    asked = [c.address for c in overlay.specs.values() if overlay.specs["h5"].address in c.targets]
    inferred = {
        values["peer"]
        for _, host, what, values in overlay.records
        if host == "h5" and what == "route_inferred"
    }
    assert asked and set(asked) <= inferred
