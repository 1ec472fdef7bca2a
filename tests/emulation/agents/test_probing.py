"""Routes on real networks: our prober, Scapy's packets and Debian's traceroute find the truth."""

import re
import socket
import threading
from collections.abc import Iterable
from ipaddress import IPv4Address
from pathlib import Path
from subprocess import Popen

import pytest

from agents.probing.inference import InferenceScore, infer_underlay, score, truth_on_routes
from agents.probing.multipath_probe import MultipathProbe
from agents.probing.probe import ProbeSettings
from agents.probing.route import Route
from agents.probing.route_probe import RouteProbe
from agents.runtime.probe_sockets import Prober, monotonic_us, probe_routes, run_probers
from agents.runtime.scapy_prober import scapy_routes
from testbed.emulation.network import EmulatedNetwork
from tests.fixtures.diamond import diamond
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.underlay import Channel, Underlay
from topologies.waxman import generate_waxman

Pair = tuple[str, str]
Seen = dict[Pair, list[str]]

FLOWS, SAMPLES = 24, 8  # enough that not all flows or all samples take the same side by chance


def some_network(seed: int) -> Underlay:
    return attach_hosts(generate_waxman(10, seed=seed), 5, seed=seed)


def host_pairs(network: EmulatedNetwork) -> list[Pair]:
    names = [host.name for host in network.hosts]
    return [(a, b) for a in names for b in names if a != b]


def address(network: EmulatedNetwork, node: str) -> int:
    return int(IPv4Address(network.underlay.address[node]))


def names(network: EmulatedNetwork, route: Route) -> list[str]:
    """The hops of a route, with * for silent hops."""
    hops = [str(IPv4Address(hop.address)) if hop.address else "*" for hop in route.hops]
    return [network.underlay.name_at.get(hop, hop) for hop in hops]


def true_routes(network: EmulatedNetwork) -> Seen:
    silent = {router.name for router in network.underlay.routers if router.anonymous}
    return {
        (a, b): ["*" if node in silent else node for node in network.routes.path(a, b)[1:]]
        for a, b in host_pairs(network)
    }


def probe_all(network: EmulatedNetwork) -> dict[Pair, Route]:
    """The routes between all hosts, with one prober on each; all probe at the same time."""
    probers = {}
    for host in network.hosts:
        with network.inside(host.name):
            probers[host.name] = Prober(RouteProbe)
    for a, b in host_pairs(network):
        probers[a].probe(monotonic_us(), address(network, b))
    found = run_probers(list(probers.values()))
    for prober in probers.values():
        prober.close()
    return {
        (a, network.underlay.name_at[str(IPv4Address(route.target))]): route
        for a, routes in zip(probers, found, strict=True)
        for route in routes
    }


def scapy_all(network: EmulatedNetwork) -> Seen:
    """The routes between all hosts, probed with Scapy."""
    seen = {}
    for host in network.hosts:
        targets = [b for a, b in host_pairs(network) if a == host.name]
        with network.inside(host.name):
            routes = scapy_routes(
                [address(network, b) for b in targets], max_ttl=12, rounds=2, timeout_s=0.5
            )
        for target, route in zip(targets, routes, strict=True):
            seen[host.name, target] = names(network, route)
    return seen


def traceroute_all(network: EmulatedNetwork) -> Seen:
    """The routes between all hosts by Debian's traceroute, all pairs at once."""
    running: dict[Pair, Popen[str]] = {
        (a, b): network[a].popen(
            ["traceroute", "-n", "-q", "2", "-w", "3", network.underlay.address[b]], text=True
        )
        for a, b in host_pairs(network)
    }
    return {pair: parse(network, one.communicate()[0]) for pair, one in running.items()}


def parse(network: EmulatedNetwork, shown: str) -> list[str]:
    hops = re.findall(r"^ *\d+  (\S+)", shown, re.MULTILINE)
    return [network.underlay.name_at.get(hop, hop) for hop in hops]


def seen_by_us(network: EmulatedNetwork, found: dict[Pair, Route]) -> Seen:
    return {pair: names(network, route) for pair, route in found.items()}


def observed(network: EmulatedNetwork, found: dict[Pair, Route]) -> Iterable[tuple[int, Route]]:
    return [(address(network, a), route) for (a, _), route in found.items()]


def test_all_probers_find_the_true_routes() -> None:
    with EmulatedNetwork(make_asymmetric(some_network(1), 0.5, seed=1)) as network:
        true = true_routes(network)
        found = probe_all(network)
        assert seen_by_us(network, found) == true
        assert scapy_all(network) == true
        assert traceroute_all(network) == true
        for (a, b), route in found.items():
            routes = network.routes
            intended_us = routes.path_delay_us(a, b) + routes.path_delay_us(b, a)
            assert route.is_reached
            assert route.hops[-1].round_trips_us[0] >= intended_us * 0.99
        inferred = infer_underlay(observed(network, found))
        truth = truth_on_routes(network.routes, found)
        assert score(inferred, truth) == InferenceScore(1.0, 1.0, 1.0, 1.0)


def test_all_probers_find_the_same_silent_routers() -> None:
    with EmulatedNetwork(make_anonymous(some_network(2), 0.4, seed=2)) as network:
        true = true_routes(network)
        assert sum(hops.count("*") for hops in true.values()) > 5
        found = probe_all(network)
        assert seen_by_us(network, found) == true
        assert scapy_all(network) == true
        assert traceroute_all(network) == true
        truth = truth_on_routes(network.routes, found)
        apart = score(infer_underlay(observed(network, found)), truth)
        merged = score(infer_underlay(observed(network, found), merge_silent=True), truth)
        assert merged.link_precision > apart.link_precision


def test_an_answer_that_is_one_round_late_is_recognised() -> None:
    with EmulatedNetwork(diamond(h2_r4=Channel(400_000))) as network, network.inside("h1"):
        target = address(network, "h2")
        (route,) = scapy_routes([target], max_ttl=8, rounds=2, timeout_s=0.6)
        assert names(network, route) == ["r1", "r2", "r4", "h2"]
        assert route.hops[-1].round_trips_us[0] >= 800_000


@pytest.mark.parametrize("nobody", ["10.0.4.77", "10.77.1.1"])
def test_a_route_to_an_unused_address(network: EmulatedNetwork, nobody: str) -> None:
    with network.inside("h1"):
        ours = probe_routes([nobody])[0]
    # One probe at a time: the kernel reports an unreachable host five times at once.
    shown = network["h1"].cmd(f"traceroute -n -N 1 -q 1 -w 1 {nobody}")
    assert "!N" in shown
    assert names(network, ours) == parse(network, shown)
    assert not ours.is_reached


def test_a_disconnected_host_gets_empty_routes(network: EmulatedNetwork) -> None:
    network.set_link("h1", "r1", up=False)
    quick = ProbeSettings(first_timeout_us=20_000, min_timeout_us=20_000)
    with network.inside("h1"):
        targets = [network.underlay.address["h2"], "10.77.1.1", "255.255.255.255"]
        for route in probe_routes(targets, quick):
            assert (route.hops, route.is_reached) == ((), False)
    network.set_link("h1", "r1", up=True)
    with network.inside("h1"):
        assert probe_routes(targets[:1])[0].is_reached


def test_probing_ends_while_a_link_fails_and_recovers(network: EmulatedNetwork) -> None:
    with network.inside("h1"):
        prober = Prober(RouteProbe, ProbeSettings(samples=20, max_outstanding=4))
    targets = [address(network, node) for node in ("h2", "h3", "r2", "r3", "r4")]
    for target in targets:
        prober.probe(monotonic_us(), target)
    found: list[Route] = []
    probing = threading.Thread(target=lambda: found.extend(run_probers([prober])[0]))
    probing.start()
    for up in (False, True, False, True):
        network.set_link("r2", "r4", up=up)
    probing.join(timeout=20)
    assert prober.is_idle
    assert {route.target for route in found} == set(targets)
    prober.probe(monotonic_us(), targets[0])
    assert names(network, run_probers([prober])[0][0]) == ["r1", "r2", "r4", "h2"]
    prober.close()


def test_several_samples_and_foreign_datagrams(network: EmulatedNetwork) -> None:
    with network.inside("h1"):
        prober = Prober(RouteProbe, ProbeSettings(samples=4), source_port=5_555)
    with network.inside("r1"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        for _ in range(100):
            stranger.sendto(b"hello", (network.underlay.address["h1"], 5_555))
    prober.probe(monotonic_us(), address(network, "h2"))
    (route,) = run_probers([prober])[0]
    prober.close()
    assert names(network, route) == ["r1", "r2", "r4", "h2"]
    assert [len(hop.round_trips_us) for hop in route.hops] == [4, 4, 4, 4]
    assert route.last_mile_us is not None and route.last_mile_us >= 500


def test_balancing_by_flow_is_found_and_one_flow_keeps_one_route(
    network: EmulatedNetwork,
) -> None:
    target = network.underlay.address["h2"]
    balance_by_ports(network, "r1", target, ("r2", "r3"))
    with network.inside("h1"):
        with Prober(MultipathProbe, ProbeSettings(confidence=0.999_999)) as prober:
            prober.probe(monotonic_us(), address(network, "h2"))
            (found,) = run_probers([prober])[0]
        routes = [
            probe_routes([target], ProbeSettings(flow=flow, samples=SAMPLES))[0]
            for flow in range(FLOWS)
        ]
    nodes = {node: address(network, node) for node in network}
    assert found.is_balanced and found.is_reached
    assert found.next_hops(0, None) == {nodes["r1"]}
    assert found.next_hops(1, nodes["r1"]) == {nodes["r2"], nodes["r3"]}
    assert found.next_hops(2, nodes["r2"]) == {nodes["r4"]}
    assert found.next_hops(2, nodes["r3"]) == {nodes["r4"]}
    assert found.next_hops(3, nodes["r4"]) == {nodes["h2"]}
    upper, lower = ("r1", "r2", "r4", "h2"), ("r1", "r3", "r4", "h2")
    # The prober keeps no round trip of a second router at a hop, so all are of one.
    assert all(len(hop.round_trips_us) == SAMPLES for route in routes for hop in route.hops)
    assert {tuple(names(network, route)) for route in routes} == {upper, lower}


def balance_by_ports(
    network: EmulatedNetwork, router: str, target: str, next_hops: tuple[str, str]
) -> None:
    """Let a router spread flows to a target over two next hops."""
    with network.inside(router):
        Path("/proc/sys/net/ipv4/fib_multipath_hash_policy").write_text("1")
    ways = " ".join(f"nexthop dev {router}-{next_hop}" for next_hop in next_hops)
    assert network[router].cmd(f"ip route add {target}/32 {ways}") == ""
