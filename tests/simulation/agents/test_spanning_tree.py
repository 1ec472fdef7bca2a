"""The spanning tree T_C: one leader and no loops at any time, also with crashes and partitions."""

from random import Random
from typing import Any

import networkx as nx
import pytest

from agents.routing.cores.pulse import Pulse
from tests.fixtures.static_overlay import Crowd, make_overlay, make_underlay, two_sides

PEERS = 30
NEVER: dict[str, Any] = {"first_selection_s": 1e6}


def crowd(seed: int, loss_percent: float = 0.0) -> Crowd:
    underlay = make_underlay(PEERS, seed, loss_percent)
    return Crowd(underlay, make_overlay(underlay, seed), seed, **NEVER)


def parents(crowd: Crowd) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(crowd.routing)
    for peer, routing in crowd.routing.items():
        if routing.tree.parent is not None:
            graph.add_edge(peer, routing.tree.parent)
    return graph


def check_spanning(crowd: Crowd, is_lossy: bool = False) -> None:
    """All peers follow the lowest address; parents and children agree, except for lost hellos."""
    lowest = min(crowd.routing)
    assert crowd.leaders() == {lowest}
    tree = parents(crowd)
    assert nx.is_tree(tree.to_undirected())
    assert [peer for peer in tree if tree.out_degree(peer) == 0] == [lowest]
    for peer, routing in crowd.routing.items():
        assert is_lossy or set(routing.tree.children()) == set(tree.predecessors(peer))
        assert all(crowd.graph.has_edge(peer, child) for child in routing.tree.children())


@pytest.mark.parametrize("loss_percent", [0.0, 5.0])
def test_all_peers_elect_one_leader_and_form_a_spanning_tree(loss_percent: float) -> None:
    for seed in range(6):
        check_spanning(crowd(seed, loss_percent).run(12), is_lossy=loss_percent > 0)


def test_a_period_costs_two_messages_for_each_link() -> None:
    one = crowd(1).run(10)
    before = one.sent["sent_TreeHello"]
    one.run(20)
    sent, a_period = one.sent["sent_TreeHello"] - before, 2 * one.graph.number_of_edges()
    assert 19 * a_period <= sent <= 21 * a_period  # Some may be in transit at either end.


def test_the_tree_has_minimum_depth() -> None:
    one = crowd(2).run(10)
    hops = nx.single_source_shortest_path_length(one.graph, min(one.routing))
    assert {peer: routing.tree.hops for peer, routing in one.routing.items()} == hops


def test_repeated_crashes_of_the_leader_are_survived() -> None:
    for seed in range(4):
        one = crowd(seed, 2.0).run(10)
        for round_ in range(3):
            one.kill(min(one.routing)).run(24 + 14 * round_)
            if not nx.is_connected(one.graph.subgraph(one.routing)):
                break
            check_spanning(one, is_lossy=True)


def test_only_the_leader_records_that_it_was_elected() -> None:
    one = crowd(3).run(10)
    first = min(one.routing)
    one.kill(first).run(25)
    elected = [values["leader"] for values in one.recorded("leader_elected")]
    assert elected == [first, min(one.routing)]


def test_parents_never_form_a_cycle() -> None:
    for seed in range(3):
        one, chance = crowd(seed, 5.0), Random(seed)
        for peer in chance.sample(sorted(one.host), 8):
            died_s = chance.uniform(4, 12)
            one.kill(peer, at_s=died_s)
            one.simulator.start_agent(int((died_s + chance.uniform(0.1, 6)) * 1e6), one.host[peer])
        for tenth in range(1, 250):
            one.run(tenth / 10)
            assert nx.is_directed_acyclic_graph(parents(one))
        check_spanning(one.run(35), is_lossy=True)


def test_two_leaders_become_one_when_a_partition_heals() -> None:
    underlay = two_sides(16)
    one = Crowd(underlay, make_overlay(underlay, 1, near=3, far=3), 1, **NEVER)
    one.simulator.set_link(8_000_000, "r1", "r2", up=False)
    one.simulator.set_link(25_000_000, "r1", "r2", up=True)
    check_spanning(one.run(8))
    sides = [{p for p, h in one.host.items() if int(h[1:]) % 2 == side} for side in (0, 1)]
    one.run(25)
    for side in sides:
        assert {one.routing[peer].tree.leader for peer in side} == {min(side)}
    check_spanning(one.run(40))


def test_old_messages_do_not_restore_a_dead_leader() -> None:
    pulse = Pulse(9)
    assert pulse.is_news(4, 10)
    pulse.adopt(0, 4, 10)
    assert not pulse.expire(100, 100)
    assert pulse.expire(101, 100)
    assert pulse.is_mine
    assert not pulse.is_news(4, 10)
    assert pulse.is_news(4, 11)
    assert not pulse.is_news(12, 99)


def test_a_peer_that_says_goodbye_is_removed_at_once() -> None:
    one = crowd(4).run(10)
    peer = max(one.routing)
    neighbour = min(one.graph[peer])
    one.simulator.stop_agent(10_000_000, one.host[peer])
    one.run(10.2)
    assert peer not in one.routing[neighbour].tree.up()
