"""A built network behaves as its underlay states, measured by Debian's tools."""

import os
import re
import signal
import socket
import threading
import time
from dataclasses import replace

import pytest
from scapy.layers.inet import IP, UDP

from testbed.emulation.network import EmulatedNetwork
from testbed.errors import EmulationError
from tests.fixtures.diamond import diamond
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.underlay import Channel, Underlay
from topologies.waxman import generate_waxman


def traceroute(network: EmulatedNetwork, source: str, target: str) -> list[str]:
    """The names of the nodes on Debian's traceroute, with * for those that do not answer."""
    address = network.underlay.address[target]
    shown = network[source].cmd(f"traceroute -n -q 1 -w 1 {address}")
    seen = re.findall(r"^ *\d+  (\S+)", shown, re.MULTILINE)
    return [network.underlay.name_at.get(hop, hop) for hop in seen]


def round_trips_ms(network: EmulatedNetwork, source: str, target: str, count: int) -> list[float]:
    """The round-trip times of Debian's ping."""
    address = network.underlay.address[target]
    shown = network[source].cmd(f"ping -n -i 0.05 -c {count} -W 1 {address}")
    return [float(time) for time in re.findall(r"time=([\d.]+)", shown)]


def some_network(seed: int) -> Underlay:
    return attach_hosts(generate_waxman(10, seed=seed), 5, seed=seed)


def test_traceroute_shows_the_true_route_between_all_hosts() -> None:
    with EmulatedNetwork(make_asymmetric(some_network(1), 0.5, seed=1)) as network:
        hosts = [host.name for host in network.hosts]
        for source in hosts:
            for target in set(hosts) - {source}:
                true_route = network.routes.path(source, target)[1:]
                assert traceroute(network, source, target) == true_route


def test_exactly_the_anonymous_routers_are_silent() -> None:
    with EmulatedNetwork(make_anonymous(some_network(2), 0.3, seed=2)) as network:
        silent = {router.name for router in network.underlay.routers if router.anonymous}
        assert len(silent) == 3
        for target in ("h2", "h3", "h4", "h5"):
            true_route = network.routes.path("h1", target)[1:]
            expected = ["*" if node in silent else node for node in true_route]
            assert traceroute(network, "h1", target) == expected


def test_a_packet_equal_to_a_dropped_one_has_the_full_delay() -> None:
    underlay = diamond(h1_r1=Channel(100_000))
    silent, *others = underlay.routers  # so that no other packets interfere
    underlay = replace(underlay, routers=(replace(silent, anonymous=True), *others))
    with (
        EmulatedNetwork(underlay, links="delay-line") as network,
        network.inside("h1"),
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as receiver,
    ):
        source, target = (underlay.address[host] for host in ("h1", "h2"))
        for ttl in (1, 64):  # The first packet ends at r1.
            time.sleep(0.4)
            packet = IP(src=source, dst=target, ttl=ttl, id=7) / UDP(dport=33434)
            start_s = time.monotonic()
            sender.sendto(bytes(packet), (target, 0))
        receiver.settimeout(5)
        receiver.recv(2_048)
        assert time.monotonic() - start_s >= 0.2114  # there and back


def test_no_packet_is_early_and_none_is_lost(network: EmulatedNetwork) -> None:
    for source, target in (("h1", "h2"), ("h2", "h3"), ("h3", "h1")):
        routes = network.routes
        intended_us = routes.path_delay_us(source, target) + routes.path_delay_us(target, source)
        measured = round_trips_ms(network, source, target, 10)
        assert len(measured) == 10
        # ping prints three digits.
        assert min(measured) >= intended_us / 1000 * 0.995


def test_every_node_reaches_every_other(network: EmulatedNetwork) -> None:
    for source in network:
        for target in set(network) - {source}:
            assert round_trips_ms(network, source, target, 1), f"{source} to {target}"


def test_an_unused_address_is_unreachable(network: EmulatedNetwork) -> None:
    assert "100% packet loss" in network["h1"].cmd("ping -n -c 1 -W 1 10.0.4.77")
    assert "100% packet loss" in network["h1"].cmd("ping -n -c 1 -W 1 10.77.1.1")


def test_routes_follow_a_link_that_fails_and_recovers(network: EmulatedNetwork) -> None:
    upper, lower = ["r1", "r2", "r4", "h2"], ["r1", "r3", "r4", "h2"]
    assert traceroute(network, "h1", "h2") == upper
    network.set_link("r2", "r4", up=False)
    assert traceroute(network, "h1", "h2") == lower
    network.set_link("r4", "r2", up=True)
    assert traceroute(network, "h1", "h2") == upper


def test_routes_follow_a_router_that_fails_and_recovers(network: EmulatedNetwork) -> None:
    network.set_router("r3", up=False)
    assert round_trips_ms(network, "h1", "h3", 1) == []
    assert traceroute(network, "h1", "h2") == ["r1", "r2", "r4", "h2"]
    network.set_router("r3", up=True)
    assert traceroute(network, "h1", "h3") == ["r1", "r3", "h3"]
    assert traceroute(network, "h3", "h2") == ["r3", "r4", "h2"]


def test_a_host_is_unreachable_while_its_last_mile_is_cut(network: EmulatedNetwork) -> None:
    network.set_link("h1", "r1", up=False)
    assert round_trips_ms(network, "h2", "h1", 1) == []
    network.set_link("h1", "r1", up=True)
    assert len(round_trips_ms(network, "h2", "h1", 1)) == 1


def test_a_partitioned_network_reports_it_and_recovers(network: EmulatedNetwork) -> None:
    network.set_link("r2", "r4", up=False)
    network.set_link("r3", "r4", up=False)
    assert round_trips_ms(network, "h1", "h2", 1) == []
    assert len(round_trips_ms(network, "h1", "h3", 1)) == 1
    network.set_link("r3", "r4", up=True)
    network.set_link("r2", "r4", up=True)
    assert traceroute(network, "h1", "h2") == ["r1", "r2", "r4", "h2"]


def test_routes_follow_a_changed_delay(network: EmulatedNetwork) -> None:
    network.set_delay("r1", "r2", 20_000)
    assert traceroute(network, "h1", "h2") == ["r1", "r3", "r4", "h2"]
    assert min(round_trips_ms(network, "h1", "r2", 3)) >= 2 * (500 + 4_000 + 5_000 + 3_000) / 1000
    network.set_delay("r1", "r2", 2_000)
    assert traceroute(network, "h1", "h2") == ["r1", "r2", "r4", "h2"]


def test_changes_of_unknown_links_and_nodes_are_refused(network: EmulatedNetwork) -> None:
    with pytest.raises(EmulationError, match="link r1-r4"):
        network.set_link("r1", "r4", up=False)
    with pytest.raises(EmulationError, match="router h1"):
        network.set_router("h1", up=False)


def test_a_link_loses_the_configured_share_of_packets() -> None:
    with EmulatedNetwork(diamond(h1_r1=Channel(500, loss_percent=50.0)), seed=4) as network:
        answered = len(round_trips_ms(network, "h1", "r1", 60))
        counts = network.counts()
        assert 0 < answered < 60
        # Each ping crosses twice: the request or the reply may be lost.
        assert counts["lost"] == 60 - answered
        assert counts["overflowed"] == 0
        if network.link_layer.kind == "delay-line":
            assert counts["refused"] == 0


def test_a_full_queue_drops_packets_and_a_slow_link_spaces_them() -> None:
    slow = Channel(500, rate_mbit=1.0, queue_packets=10)
    with EmulatedNetwork(diamond(h1_r1=slow)) as network:
        receiver, received = open_receiver(network, "h2")
        with network.inside("h1"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            started_s = time.monotonic()
            for _ in range(50):
                sender.sendto(bytes(972), (network.underlay.address["h2"], 5000))
        receiver.join()
        # One is being sent and ten are queued; at most a few more leave while the burst arrives.
        assert 11 <= len(received) <= 15
        assert network.counts()["overflowed"] == 50 - len(received)
        # 1,000 bytes at 1 Mbit/s take 8 ms, one after the other.
        assert received[-1] - started_s >= len(received) * 0.008


def test_packets_in_transit_do_not_occupy_the_queue() -> None:
    # A packet of 128 bytes is sent within 1 ms, so packets that are 2 ms apart do not wait,
    # and all have been sent before the first arrives.
    long = Channel(150_000, rate_mbit=1.0, queue_packets=10)
    with EmulatedNetwork(diamond(h1_r1=long)) as network:
        receiver, received = open_receiver(network, "h2")
        with network.inside("h1"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(40):
                sender.sendto(bytes(100), (network.underlay.address["h2"], 5000))
                time.sleep(0.002)
        receiver.join()
        assert len(received) == 40
        assert network.counts()["overflowed"] == 0


def test_packets_of_a_burst_are_not_late() -> None:
    """The clock of the network pauses until the line has read all packets of a burst."""
    with EmulatedNetwork(some_network(3), links="delay-line") as network:
        names = [host.name for host in network.hosts]
        senders = []
        for name in names:
            with network.inside(name):
                senders.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        (line,) = network.link_layer.processes
        os.kill(line, signal.SIGSTOP)  # so that the whole burst waits in the devices
        for sender, name in zip(senders * 200, [*names[1:], names[0]] * 200, strict=True):
            sender.sendto(bytes(64), (network.underlay.address[name], 5000))
        os.kill(line, signal.SIGCONT)
        time.sleep(1.0)
        for sender in senders:
            sender.close()
        counts = network.counts()
        assert counts["forwarded"] > 5 * 200
        assert counts["late"] < 0.01 * counts["forwarded"]


def test_each_link_counts_its_packets_in_each_direction(network: EmulatedNetwork) -> None:
    assert len(round_trips_ms(network, "h1", "h2", 3)) == 3
    counts = network.counts()
    crossed = {name for name, ways in counts["by_link"].items() if ways == [3, 3]}
    assert crossed == {"h1-r1", "r1-r2", "r2-r4", "h2-r4"}
    assert counts["forwarded"] == 24


def test_links_carry_nothing_while_no_host_sends(network: EmulatedNetwork) -> None:
    time.sleep(1.0)
    network.set_link("r2", "r4", up=False)
    network.set_link("r2", "r4", up=True)
    time.sleep(1.0)
    assert network.counts()["forwarded"] == 0


def test_packets_are_complete_when_they_enter_a_link(network: EmulatedNetwork) -> None:
    capture = network["r1"].popen(["tcpdump", "-i", "r1-r2", "-c", "3", "-nvv", "udp"], text=True)
    assert "listening on" in capture.stderr.readline()
    with network.inside("h1"), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(3):
            sender.sendto(bytes(100), (network.underlay.address["h2"], 5000))
    shown, _ = capture.communicate(timeout=10)
    assert shown.count("[udp sum ok]") == 3


def open_receiver(network: EmulatedNetwork, host: str) -> tuple[threading.Thread, list[float]]:
    """A thread that records the arrival of packets on port 5000, until no more arrive."""
    with network.inside(host):
        endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    endpoint.bind((network.underlay.address[host], 5000))
    endpoint.settimeout(1.0)
    times: list[float] = []

    def receive() -> None:
        try:
            while endpoint.recv(2_048):
                times.append(time.monotonic())
        except TimeoutError:
            endpoint.close()

    thread = threading.Thread(target=receive)
    thread.start()
    return thread, times


def test_a_stream_arrives_unchanged(network: EmulatedNetwork) -> None:
    sent = bytes(range(256)) * 4_000
    with network.inside("h2"):
        server = socket.create_server((network.underlay.address["h2"], 5001))
    with network.inside("h1"):
        client = socket.socket()

    def send() -> None:
        client.connect(server.getsockname())
        client.sendall(sent)
        client.close()

    sender = threading.Thread(target=send)
    sender.start()
    connection, _ = server.accept()
    received = b"".join(iter(lambda: connection.recv(65_536), b""))
    sender.join()
    connection.close()
    server.close()
    assert received == sent
    # At least as many segments as an MTU of 1,500 requires.
    assert network.counts()["by_link"]["h1-r1"][0] >= len(sent) / 1460


def test_two_networks_are_separate() -> None:
    slow = replace(diamond(), links=tuple(diamond(h1_r1=Channel(30_000)).links))
    with EmulatedNetwork(diamond()) as first, EmulatedNetwork(slow) as second:
        assert first.ledger.run_id != second.ledger.run_id
        before = second.counts()["forwarded"]
        assert len(round_trips_ms(first, "h1", "h2", 5)) == 5
        assert second.counts()["forwarded"] == before
        assert min(round_trips_ms(second, "h1", "h2", 2)) >= 60


def test_the_kernel_has_the_computed_routes(network: EmulatedNetwork) -> None:
    for router in network.underlay.routers:
        for host in network.underlay.hosts:
            shown = network[router.name].cmd("ip route get", network.underlay.address[host.name])
            next_hop = network.routes.path(router.name, host.name)[1]
            assert f"dev {router.name}-{next_hop} " in shown
