"""Route probing in the simulator finds the true routes."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from agents.probing.route import Route
from agents.protocol import ProbeRoute
from tests.fixtures.scripted import Stage, line, ring
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.routes import Routes
from topologies.underlay import Channel, Underlay
from topologies.waxman import generate_waxman


def probe(stage: Stage, source: str, *targets: int, at_us: int = 0) -> list[Route]:
    stage.cast(source, {at_us: [ProbeRoute(target) for target in targets]})
    stage.run(60_000_000)
    return [row[3]["route"] for row in stage.recorded(source, "probed")]


def expected_hops(routes: Routes, stage: Stage, source: str, target: str) -> list[Any]:
    """Address and round trip of every hop; both are None for a silent router."""
    silent = {router.name for router in stage.underlay.routers if router.anonymous}
    path = routes.path(source, target)
    hops: list[Any] = []
    link_delay_us = {}
    for link in stage.underlay.links:
        link_delay_us[link.a, link.b] = link.ab.delay_us
        link_delay_us[link.b, link.a] = link.ba.delay_us
    there_us = 0
    for before, node in pairwise(path):
        there_us += link_delay_us[before, node]
        back_us = routes.path_delay_us(node, source)
        hops.append((None, ()) if node in silent else (stage.address(node), (there_us + back_us,)))
    return hops


def check_all(underlay: Underlay) -> None:
    names = [host.name for host in underlay.hosts]
    routes = Routes(underlay)
    for source in names[:3]:
        stage = Stage(underlay)
        found = probe(stage, source, *(stage.address(name) for name in names if name != source))
        assert len(found) == len(names) - 1
        for route in found:
            target = stage.underlay.name_at[_text(route.target)]
            hops = [(hop.address, hop.round_trips_us) for hop in route.hops]
            assert hops == expected_hops(routes, stage, source, target)
            assert route.is_reached


def _text(address: int) -> str:
    return ".".join(str(byte) for byte in address.to_bytes(4))


def test_a_probed_route_and_its_round_trips_are_true() -> None:
    underlay = attach_hosts(generate_waxman(60, seed=2), 12, seed=2)
    check_all(underlay)
    check_all(make_asymmetric(underlay, 0.8, seed=2))


def test_anonymous_routers_stay_silent() -> None:
    underlay = attach_hosts(generate_waxman(60, seed=2), 12, seed=2)
    check_all(make_anonymous(underlay, 0.3, seed=2))


def test_a_route_to_an_unused_address_ends_at_the_last_router() -> None:
    stage = Stage(line())
    (route,) = probe(stage, "h1", stage.address("h2") + 1)
    assert [hop.address for hop in route.hops] == [stage.address(f"r{n}") for n in (1, 2, 3)]
    assert not route.is_reached


def test_behind_a_silent_last_router_there_is_no_answer() -> None:
    stage = Stage(line(anonymous=frozenset({"r3"})))
    (route,) = probe(stage, "h1", stage.address("h2") + 1)
    assert [hop.address for hop in route.hops] == [stage.address("r1"), stage.address("r2")]
    assert not route.is_reached


def test_a_router_can_be_probed_too() -> None:
    stage = Stage(line())
    (route,) = probe(stage, "h1", stage.address("r3"))
    assert [hop.address for hop in route.hops] == [stage.address(f"r{n}") for n in (1, 2, 3)]
    assert route.is_reached


def test_lost_probes_are_repeated() -> None:
    whole = 0
    for seed in range(40):
        stage = Stage(line(Channel(1_000, loss_percent=20)), seed=seed)
        (route,) = probe(stage, "h1", stage.address("h2"))
        true = tuple(stage.address(f"r{n}") for n in (1, 2, 3))
        assert all(
            seen in (None, router) for seen, router in zip(route.routers, true, strict=False)
        )
        whole += route.is_reached and route.routers == true
    assert whole >= 35  # one try for each hop gives 14 complete routes, two give 30


def test_a_route_probed_after_a_cut_is_the_detour() -> None:
    stage = Stage(ring())
    stage.simulator.set_link(500, "r1", "r2", up=False)
    (route,) = probe(stage, "h1", stage.address("h2"), at_us=1_000)
    assert route.routers == tuple(stage.address(name) for name in ("r1", "r4", "r3"))


def test_probes_and_answers_are_packets_on_links(tmp_path: Path) -> None:
    stage = Stage(line(), tmp_path)
    probe(stage, "h1", stage.address("h2"))
    rows = stage.packets()
    assert {row["kind"] for row in rows} == {None}
    assert {(row["protocol"], row["size_bytes"]) for row in rows} == {("udp", 36), ("icmp", 64)}
    first = [row["ttl"] for row in rows if row["link"] == "h1-r1" and row["time_us"] == 0]
    second = [row["ttl"] for row in rows if row["link"] == "r1-r2" and row["time_us"] == 100]
    assert 1 in first
    assert second == [ttl - 1 for ttl in first if ttl > 1]
    answers = [row for row in rows if row["source"] == stage.address("r2")]
    assert [(row["link"], row["direction"], row["time_us"], row["ttl"]) for row in answers] == [
        ("r1-r2", "ba", 1_100, 64),
        ("h1-r1", "ba", 2_100, 63),
    ]


def test_a_killed_prober_reports_nothing() -> None:
    stage = Stage(line())
    stage.simulator.kill_agent(1_000, "h1")
    assert probe(stage, "h1", stage.address("h2")) == []
