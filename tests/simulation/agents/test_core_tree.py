"""The routing tree T is a tree of all peers, and equals that of a central computation.

This holds with packet loss, crashes, late peers and partitions.
"""

from random import Random
from typing import Any

import networkx as nx
import pytest

from agents.protocol import PeerId
from agents.routing.cores.core_tree import CoreTree
from agents.routing.cores.messages import BACKBONE_CHILD, CorePath, CoreSpt
from agents.routing.cores.routing import SpanningTreeRouting
from agents.routing.tree import Recalculate
from tests.fixtures.static_overlay import Crowd, make_overlay, make_underlay, two_sides
from tests.simulation.agents.test_core_selection import ALPHA_US, PSI, weighted, windows

PEERS = 26
STRATEGIES = ("spotent", "spath", "cneigh", "maxpath", "rand", "sim")


def crowd(seed: int, loss_percent: float = 0.0, **settings: Any) -> Crowd:
    underlay = make_underlay(PEERS, seed, loss_percent)
    settings.setdefault("strategy", STRATEGIES[seed % len(STRATEGIES)])
    return Crowd(underlay, make_overlay(underlay, seed), seed, **settings)


def expected_tree(graph: nx.Graph, cores: tuple[PeerId, ...]) -> nx.Graph:
    """T by a central computation; `agents.routing.cores.core_tree` has the rule."""
    to_root = nx.single_source_dijkstra_path(graph, cores[0])
    _, to_relay = nx.multi_source_dijkstra(graph, set(cores))
    backbone = {peer for core in cores for peer in to_root[core]}
    tree = nx.Graph()
    for peer in graph:
        path = to_root[peer] if peer in backbone else to_relay[peer]
        if len(path) > 1:
            tree.add_edge(peer, path[-2])
    return tree


def is_whole(crowd: Crowd) -> bool:
    return bool(nx.is_connected(crowd.graph.subgraph(crowd.listener)))


@pytest.mark.parametrize("loss_percent", [0.0, 2.0, 5.0])
def test_the_tree_is_that_of_a_central_computation(loss_percent: float) -> None:
    for seed in range(6):
        one = crowd(seed, loss_percent).run(18 + 2 * loss_percent)
        tree = one.check_tree()
        right = expected_tree(weighted(one.graph, {}), one.cores())
        assert {*map(frozenset, tree.edges)} == {*map(frozenset, right.edges)}


def test_the_tree_also_depends_on_interests() -> None:
    for seed in range(4):
        underlay = make_underlay(PEERS, seed, 2.0)
        graph = make_overlay(underlay, seed)
        held = windows(graph, seed)
        settings: dict[str, Any] = {"strategy": STRATEGIES[seed], "alpha_us": ALPHA_US, "psi": PSI}
        one = Crowd(underlay, graph, seed, windows=held, **settings).run(20)
        right = expected_tree(weighted(graph, held), one.cores())
        assert {*map(frozenset, one.check_tree().edges)} == {*map(frozenset, right.edges)}


def test_each_peer_records_its_relay_and_the_weight_of_its_path() -> None:
    one = crowd(1).run(18)
    graph, cores = weighted(one.graph, {}), one.cores()
    weight_us, paths = nx.multi_source_dijkstra(graph, set(cores))
    tree = one.check_tree()
    backbone = {peer for core in cores for peer in nx.shortest_path(tree, cores[0], core)}
    relays = {
        host: (values["core"], values["weight_us"])
        for _, host, what, values in one.records
        if what == "relay_chosen"
    }
    for peer in set(graph) - backbone:
        assert relays[one.host[peer]] == (paths[peer][0], weight_us[peer])


def test_records_of_links_add_up_to_the_tree() -> None:
    one = crowd(2, 5.0).run(18)
    one.kill(*Random(2).sample(sorted(one.listener), 3)).run(40)
    address = {host: peer for peer, host in one.host.items()}
    links = set()
    for _, host, what, values in one.records:
        if what == "tree_link_added":
            links.add((address[host], values["peer"]))
        elif what == "tree_link_removed":
            links.remove((address[host], values["peer"]))
    assert {link for link in links if link[0] in one.listener} == {*one.tree().edges}


@pytest.mark.parametrize("victims", ["leader", "root core", "two cores", "all cores", "peers"])
def test_the_tree_is_repaired_after_crashes(victims: str) -> None:
    checked = 0
    for seed in range(3):
        one = crowd(seed, (0.0, 2.0, 5.0)[seed % 3]).run(16)
        cores = one.cores()
        dying = {
            "leader": [min(one.listener)],
            "root core": cores[:1],
            "two cores": cores[:2],
            "all cores": cores,
            "peers": Random(seed).sample(sorted(one.listener), 5),
        }[victims]
        one.kill(*dying).run(16.1)
        if is_whole(one):
            one.run(60).check_tree()
            checked += 1
    assert checked >= 3


def test_if_the_root_core_crashes_the_next_core_replaces_it_without_a_selection() -> None:
    one = crowd(0).run(16)
    first, second = one.cores()[:2]
    one.kill(first).run(40).check_tree()
    assert is_whole(one)
    assert len(one.recorded("cores_selected")) == 1
    roots = {routing.versions.trees[one.current()].root_core for routing in one.routing.values()}
    assert roots == {second}


def test_late_peers_join_the_tree_in_use() -> None:
    for seed in range(6):
        chance = Random(seed)
        underlay = make_underlay(PEERS, seed, (0.0, 2.0, 5.0)[seed % 3])
        graph = make_overlay(underlay, seed)
        late = {p: int(chance.uniform(7, 25) * 1e6) for p in chance.sample(sorted(graph), 6)}
        one = Crowd(underlay, graph, seed, late=late, strategy=STRATEGIES[seed]).run(45)
        one.check_tree()
        assert len(one.recorded("cores_selected")) == 1


def test_after_churn_a_tree_remains() -> None:
    for seed in range(3, 7):
        one, chance = crowd(seed, (0.0, 2.0, 5.0)[seed % 3]).run(15), Random(seed)
        for peer in chance.sample(sorted(one.listener), 10):
            died_s = chance.uniform(15, 35)
            one.kill(peer, at_s=died_s)
            back_us = int((died_s + chance.choice([0.3, 3, 9])) * 1e6)
            one.simulator.start_agent(back_us, one.host[peer])
        one.run(70).check_tree()


def test_a_partition_has_a_tree_on_each_side_and_one_after_it_heals() -> None:
    for seed in range(3):
        underlay = two_sides(20)
        graph = make_overlay(underlay, seed, near=3, far=3)
        one = Crowd(underlay, graph, seed, strategy="spath", cores=2)
        one.simulator.set_link(16_000_000, "r1", "r2", up=False)
        one.simulator.set_link(60_000_000, "r1", "r2", up=True)
        one.run(16).check_tree()
        one.run(60)
        for number in (0, 1):
            side = {peer for peer, host in one.host.items() if int(host[1:]) % 2 == number}
            (version,) = {one.listener[peer].current for peer in side}
            found = one.tree(version).subgraph(side)
            assert nx.is_tree(found.to_undirected())
            assert all(found.has_edge(b, a) for a, b in found.edges)
        one.run(100).check_tree()
        assert one.leaders() == {min(one.routing)}


def test_a_new_version_is_built_while_the_old_one_is_used_and_then_dropped() -> None:
    one = crowd(3, 2.0, recalculate_s=12.0)
    seen: list[int] = []
    for second in range(10, 60):
        one.run(second)
        for listener in one.listener.values():
            if listener.current and listener.current not in seen:
                seen.append(listener.current)
                one.check_tree(listener.current)  # complete before any peer uses it
            assert not listener.current or not listener.trees[listener.current].is_dropped
    assert len(seen) >= 3
    assert seen == sorted(seen)
    for listener in one.listener.values():
        dropped = [version for version, tree in listener.trees.items() if tree.is_dropped]
        assert dropped == seen[: len(dropped)]
        assert len(dropped) >= len(seen) - 2
    assert {values["version"] for values in one.recorded("tree_dropped")} <= set(seen)


def test_several_requests_of_the_layer_above_cause_one_recalculation() -> None:
    one = crowd(4).run(15)
    first = one.current()
    for peer in sorted(one.listener):
        one.tell(peer, Recalculate(first))
    one.run(35).check_tree()
    assert one.current() > first
    assert len(one.recorded("cores_selected")) == 2
    one.tell(max(one.listener), Recalculate(first))
    one.run(45)
    assert len(one.recorded("cores_selected")) == 2


@pytest.mark.parametrize("heard_for_s", [0.0, 0.3])
def test_a_request_for_a_new_tree_survives_crashes_of_the_leader_and_forwarders(
    heard_for_s: float,
) -> None:
    checked = 0
    for seed in range(4):
        one = crowd(seed).run(15)
        first, (leader,), wishing = one.current(), one.leaders(), max(one.listener)
        one.tell(wishing, Recalculate(first))
        one.run(15 + heard_for_s)
        one.kill(*{leader, one.routing[wishing].tree.parent or leader}).run(15.5)
        if is_whole(one):
            checked += 1
            one.run(70).check_tree()
            assert one.current() > first
    assert checked >= 3


def test_a_request_for_a_new_tree_survives_the_restart_of_the_leader() -> None:
    for seed in range(4):
        one = crowd(seed).run(15)
        first, (leader,) = one.current(), one.leaders()
        one.tell(max(one.listener), Recalculate(first))
        one.simulator.stop_agent(15_200_000, one.host[leader])
        one.simulator.start_agent(15_700_000, one.host[leader])
        one.run(70).check_tree()
        assert one.current() > first


def test_a_family_is_recalculated_after_a_request_for_one_of_its_versions() -> None:
    one = crowd(4, core_paths="apsp").run(15)
    members = {values["version"] for values in one.recorded("tree_link_added")}
    assert len(members) > 1
    one.tell(min(one.listener), Recalculate(min(members)))
    one.run(35)
    assert len(one.recorded("cores_selected")) == 2


def test_the_baseline_mst_is_the_minimum_delay_spanning_tree() -> None:
    for seed in range(4):
        underlay = make_underlay(PEERS, seed)
        graph = make_overlay(underlay, seed)
        one = Crowd(underlay, graph, seed, routing=SpanningTreeRouting).run(16)
        right = nx.minimum_spanning_tree(graph, weight="delay_us")
        assert {*map(frozenset, one.check_tree().edges)} == {*map(frozenset, right.edges)}
        assert one.sent["sent_ParentList"] == PEERS - 1


def test_the_baseline_mst_is_repaired_like_other_trees() -> None:
    for seed in range(3):
        underlay = make_underlay(PEERS, seed, (0.0, 2.0, 5.0)[seed % 3])
        graph = make_overlay(underlay, seed)
        one = Crowd(underlay, graph, seed, routing=SpanningTreeRouting).run(28)
        one.check_tree()
        dying = {min(one.listener), *Random(seed).sample(sorted(one.listener), 4)}
        one.kill(*dying).run(28.1)
        if is_whole(one):
            one.run(70).check_tree()


def test_invalid_offers_are_ignored() -> None:
    tree = CoreTree(1, 5, (9, 8), 0, is_rooted=False)
    mine, foreign = CorePath(9, 3, (9, 1, 4)), CorePath(7, 3, (7, 4))
    astray = CorePath(9, 3, (9, 3))
    for number, path in enumerate((mine, foreign, astray, CorePath(9, 0, ())), 1):
        tree.take_offer(4, CoreSpt(5, number, path, path))
        tree.choose(0, lambda _: 10)
        assert tree.root is None and tree.relay is None
    tree.take_offer(4, CoreSpt(5, 9, CorePath(9, 0xFFFFFFFF, (9, 4)), None))
    tree.choose(0, lambda _: 10)
    assert tree.root is None
    tree.take_offer(4, CoreSpt(5, 8, CorePath(9, 3, (9, 4)), None))  # older than the last
    tree.choose(0, lambda _: 10)
    assert tree.root is None


def test_a_peer_on_the_path_of_a_core_uses_that_path() -> None:
    tree = CoreTree(1, 5, (9, 8), 0, is_rooted=False)
    tree.take_offer(4, CoreSpt(5, 1, CorePath(9, 30, (9, 4)), None))
    tree.take_offer(8, CoreSpt(5, 1, None, CorePath(8, 0, (8,))))
    tree.choose(0, lambda _: 10)
    assert tree.wanted is not None and tree.wanted.via == 8
    tree.set_child(8, BACKBONE_CHILD)
    assert tree.wanted is not None and tree.wanted.via == 4
    assert tree.role == BACKBONE_CHILD


def test_a_heavier_path_to_the_root_core_is_used_only_later() -> None:
    tree = CoreTree(1, 5, (9,), 0, is_rooted=False)
    tree.take_offer(4, CoreSpt(5, 1, CorePath(9, 30, (9, 4)), None))
    tree.take_offer(3, CoreSpt(5, 1, CorePath(9, 50, (9, 6, 3)), None))
    tree.choose(100, lambda _: 10, hold_us=50)
    assert tree.root is not None and tree.root.via == 4
    tree.lose(4)
    tree.choose(200, lambda _: 10, hold_us=50)
    assert tree.root is None and tree.is_holding(200)
    tree.take_offer(
        2, CoreSpt(5, 1, CorePath(9, 30, (9, 2)), None)
    )  # equal to that of the lost one
    tree.choose(210, lambda _: 10, hold_us=50)
    assert tree.root is not None and tree.root.via == 2
    tree.lose(2)
    tree.choose(220, lambda _: 10, hold_us=50)
    assert tree.root is None
    tree.choose(270, lambda _: 10, hold_us=50)
    assert tree.root is not None and tree.root.via == 3


@pytest.mark.parametrize("loss_percent", [0.0, 3.0])
def test_cores_can_be_joined_by_the_shortest_paths_between_all_pairs(loss_percent: float) -> None:
    for seed in range(2):
        one = crowd(seed, loss_percent, core_paths="apsp", recalculate_s=20.0).run(18)
        graph, cores = weighted(one.graph, {}), one.cores()
        _, paths = nx.multi_source_dijkstra(graph, set(cores))
        (family,) = {tree.family for x in one.listener.values() for tree in x.trees.values()}
        version_of = {}
        for at, core in enumerate(cores):
            version = version_of[core] = family - (len(cores) - 1 - at << 16)
            right = expected_tree(graph, (core, *cores[:at], *cores[at + 1 :]))
            found = one.check_tree(version)
            assert {*map(frozenset, found.edges)} == {*map(frozenset, right.edges)}
        for peer, listener in one.listener.items():
            assert listener.current == version_of[paths[peer][0]]
        one.kill(cores[0]).run(70)
        if is_whole(one):
            for version in {listener.current for listener in one.listener.values()}:
                one.check_tree(version)
                assert version > family
