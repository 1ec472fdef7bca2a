"""The overlay over time: compared with brute force on random records; OPT of events under churn."""

from collections.abc import Sequence
from ipaddress import IPv4Address
from itertools import permutations
from pathlib import Path
from random import Random

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from analysis.agent_lives import AgentLives, read_lives
from analysis.agent_records import AgentRecord, AgentRecords
from analysis.metrics.file import measure_run
from analysis.overlay import fold_overlay
from analysis.overlay_history import fold_history
from analysis.tables.host_paths import HostPaths
from analysis.unicast import Unicast
from tests.fixtures.overlay_runs import Recorder
from topologies.hosts import attach_hosts
from topologies.underlay import Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

END_US = 1_000


def random_records(underlay: Underlay, chance: Random) -> tuple[AgentRecords, AgentLives]:
    """Random links, agents that leave, are killed and restart, and events."""
    hosts = [host.name for host in underlay.hosts]
    address = {host: int(IPv4Address(underlay.address[host])) for host in hosts}
    rows = [AgentRecord(0, host, "agent_started", {}) for host in hosts]
    rows.append(AgentRecord(END_US // 4, hosts[0], "event_published", {"event_id": 1}))
    planned, running = [], set(hosts)
    for time_us in sorted(chance.choices(range(1, END_US), k=400)):
        host, peer = chance.sample(hosts, 2)
        values = {"peer": address[peer]}
        match chance.choices(("add", "both", "remove", "leave", "kill", "start"),
                             (30, 40, 20, 1, 1, 6))[0]:  # fmt: skip
            case "both" if {host, peer} <= running:
                rows.append(AgentRecord(time_us, host, "neighbour_added", values))
                back = {"peer": address[host]}
                rows.append(AgentRecord(time_us, peer, "neighbour_added", back))
            case "add" if host in running:
                rows.append(AgentRecord(time_us, host, "neighbour_added", values))
            case "remove" if host in running:
                rows.append(AgentRecord(time_us, host, "neighbour_removed", values))
            case "leave" if host in running:
                rows.append(AgentRecord(time_us, host, "agent_left", {}))
                running.discard(host)
            case "kill" if host in running:
                planned.append((time_us, host))
                running.discard(host)
            case "start" if host not in running:
                rows.append(AgentRecord(time_us, host, "agent_started", {}))
                running.add(host)
    rows += [AgentRecord(END_US, host, "agent_ended", {"sent": 1}) for host in sorted(running)]
    records = AgentRecords.of(rows)
    return records, read_lives(records, planned)


def brute_force(
    underlay: Underlay, records: AgentRecords, lives: AgentLives, at_us: int, is_directed: bool
) -> nx.Graph | nx.DiGraph:
    """The overlay at a time, from all records until then."""
    name_at = {int(IPv4Address(at)): name for at, name in underlay.name_at.items()}
    views: dict[str, set[str]] = {}
    begun_us: dict[str, int] = {}
    for row in records.rows("agent_started", "neighbour_added", "neighbour_removed"):
        if row.time_us > at_us:
            break
        if row.what == "agent_started":
            views[row.host], begun_us[row.host] = set(), row.time_us
        elif row.what == "neighbour_added":
            views[row.host].add(name_at[row.values["peer"]])
        else:
            views[row.host].discard(name_at[row.values["peer"]])
    # An agent that started at the time of its end has restarted.
    ended = {host for host, end_us in lives.ends if begun_us[host] < end_us <= at_us}
    graph = nx.DiGraph() if is_directed else nx.Graph()
    graph.add_nodes_from(views)
    for a, b in permutations(views.keys() - ended, 2):
        if b in views[a] and (is_directed or a in views[b]):
            graph.add_edge(a, b)
    return graph


@pytest.mark.parametrize("is_directed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_shortest_paths_are_over_the_overlay_at_the_time(seed: int, is_directed: bool) -> None:
    chance = Random(seed)
    underlay = attach_hosts(generate_waxman(12, seed=seed), 7, seed=seed)
    records, lives = random_records(underlay, chance)
    hosts = [host.name for host in underlay.hosts]
    unicast = Unicast(underlay, hosts)
    history = fold_history(underlay, records, lives, is_directed)
    assert history is not None and len(history.changes) > 20
    overlay = fold_overlay(underlay, records, lives, is_directed=is_directed)
    paths = HostPaths(unicast, overlay, history)
    times = [0, END_US, *(c.time_us for c in chance.sample(history.changes, 15)),
             *chance.choices(range(END_US), k=15)]  # fmt: skip
    pairs = list(permutations(hosts, 2))
    asked = pd.DataFrame([(*pair, at_us) for at_us in times for pair in pairs])
    together = paths.shortest_us(asked[0], asked[1], asked[2])
    expected: list[int | None] = []
    for at_us in times:
        graph = brute_force(underlay, records, lives, at_us, is_directed)
        for a, b in graph.edges:
            graph.edges[a, b]["us"] = unicast.delay_us[unicast.number[a], unicast.number[b]]
        lengths = dict(nx.all_pairs_dijkstra_path_length(graph, weight="us"))
        expected += [lengths[a].get(b) for a, b in pairs]
    assert [None if pd.isna(one) else int(one) for one in together] == expected
    (_, links), = history.steps(np.array([END_US]))  # fmt: skip
    assert links == overlay.links


def test_an_overlay_that_is_complete_before_the_first_event_has_no_history() -> None:
    underlay = attach_hosts(generate_waxman(5, seed=1), 2, seed=1)
    a, b = (host.name for host in underlay.hosts)
    address = {host: int(IPv4Address(underlay.address[host])) for host in (a, b)}
    rows = [
        AgentRecord(1, a, "neighbour_added", {"peer": address[b]}),
        AgentRecord(1, b, "neighbour_added", {"peer": address[a]}),
        AgentRecord(5, a, "event_published", {"event_id": 1}),
        *(AgentRecord(9, host, "agent_ended", {"sent": 1}) for host in (a, b)),
    ]

    def has_history(*more: AgentRecord, planned: Sequence[tuple[int, str]] = ()) -> bool:
        records = AgentRecords.of([*rows, *more])
        return fold_history(underlay, records, read_lives(records, planned)) is not None

    removed = AgentRecord(5, a, "neighbour_removed", {"peer": address[b]})
    assert not has_history()
    assert not has_history(removed._replace(time_us=4))
    assert has_history(removed)
    assert has_history(planned=[(7, b)])


@pytest.fixture
def triangle() -> Recorder:
    """Hosts h1, h2, h3, each 1 us from its router; routers are 10, 20 and 25 us apart."""
    links = (
        Link.symmetric("r1", "r2", 10),
        Link.symmetric("r2", "r3", 20),
        Link.symmetric("r1", "r3", 25),
        *(Link.symmetric(f"h{n}", f"r{n}", 1) for n in (1, 2, 3)),
    )
    routers = tuple(Router(f"r{n}") for n in (1, 2, 3))
    return Recorder(Underlay(routers, links, tuple(Host(f"h{n}") for n in (1, 2, 3))))


def test_opt_of_an_event_uses_the_overlay_at_its_time(triangle: Recorder, tmp_path: Path) -> None:
    """Event 1 can only go over h2; event 2 could use the link that was added meanwhile."""
    triangle.start()
    triangle.join("h1", "h2")
    triangle.join("h2", "h3")
    triangle.add("h1", "h3", time_us=1_500_000)
    triangle.add("h3", "h1", time_us=1_600_000)
    for event in (1, 2):
        at_us = event * 1_000_000
        triangle.record("h1", "event_published", at_us, event_id=event)
        for hop, (sender, host) in enumerate((("h1", "h2"), ("h2", "h3")), start=1):
            copy = {"event_id": event, "from": triangle.address(sender), "hop_count": hop}
            triangle.record(host, "event_received", at_us + 30 * hop, **copy)
        triangle.record("h3", "delivered", at_us + 60, **copy)
    triangle.end(sent=2)
    found = measure_run(triangle.write(tmp_path / "run"))
    over_h2, direct = 12 + 22, 27
    assert found["routing_cost"] == 2 * over_h2 / 1e6
    assert found["routing_cost_opt"] == (over_h2 + direct) / 1e6
    assert found["routing_efficiency"] == 2 * over_h2 / (over_h2 + direct)
