"""OPT: a shortest-path tree for each publisher, equal at all peers, also under churn."""

import networkx as nx

from agents.routing.shortest_paths.routing import ShortestPathRouting
from tests.fixtures.static_overlay import Crowd, make_overlay, make_underlay
from tests.fixtures.whole_runs import WholeRun

QUICK = {"kind": "opt", "period_us": 500_000, "first_trees_s": 10.0}


def assert_shortest(crowd: Crowd, graph: nx.Graph) -> None:
    """The tree of each running peer has its shortest paths; that of a dead peer has all peers."""
    for root in crowd.graph:
        tree = crowd.check_tree(root)
        if root not in graph:
            continue
        paths = nx.single_source_dijkstra_path(graph, root, weight="delay_us")
        right = {frozenset(path[-2:]) for path in paths.values() if len(path) > 1}
        assert {*map(frozenset, tree.edges)} == right


def test_all_peers_agree_on_the_shortest_paths_from_each_peer() -> None:
    for seed, loss_percent in ((1, 0.0), (2, 3.0)):
        underlay = make_underlay(24, seed, loss_percent)
        graph = make_overlay(underlay, seed)
        crowd = Crowd(underlay, graph, seed, routing=ShortestPathRouting, first_trees_s=3.0)
        assert_shortest(crowd.run(15), graph)
        assert {peer: listener.current for peer, listener in crowd.listener.items()} == {
            peer: peer for peer in graph
        }
        assert {t.family for x in crowd.listener.values() for t in x.trees.values()} == {1}
        dead = max(graph, key=lambda peer: (not is_cut(graph, peer), graph.degree(peer)))
        crowd.kill(dead).run(30)
        running = graph.copy()
        running.remove_node(dead)
        assert_shortest(crowd, running)
        crowd.simulator.start_agent(30_000_000, crowd.host[dead])
        assert_shortest(crowd.run(45), graph)


def is_cut(graph: nx.Graph, peer: int) -> bool:
    """Whether the others are disconnected without a peer."""
    rest = graph.copy()
    rest.remove_node(peer)
    return not nx.is_connected(rest)


def test_events_take_the_shortest_paths_over_the_overlay() -> None:
    run = WholeRun(24, 120, seed=1, **QUICK).run()
    delivery = run.delivery()
    assert delivery.steady.expected > 120
    assert delivery.steady.is_exact and delivery.unasked == ()
    assert run.sent["sent_Offer"] == 0
    graph = final_overlay(run)
    address_of = {spec.host: spec.address for spec in run.specs}
    came_from = {
        (row[3]["event_id"], address_of[row[1]]): row[3]["from"]
        for row in run.recorded("event_received")
    }
    publisher = {r[3]["event_id"]: address_of[r[1]] for r in run.recorded("event_published")}
    checked = 0
    for _, host, _, values in run.recorded("delivered"):
        event_id = values["event_id"]
        path = [address_of[host]]
        while path[-1] != publisher[event_id]:
            path.append(came_from[event_id, path[-1]])
        right_us = nx.dijkstra_path_length(graph, path[-1], path[0], weight="delay_us")
        assert nx.path_weight(graph, path, "delay_us") == right_us
        checked += len(path) > 2
    assert checked > 20


def final_overlay(run: WholeRun) -> nx.Graph:
    """The links that both ends hold, with the mean of their measured delays."""
    delays_us = {
        (agent.address, peer): delay_us
        for agent in run.running.agents.values()
        for peer, delay_us in agent._protocol._layers[0].neighbours.delays_us().items()
    }
    graph = nx.Graph()
    for (a, b), delay_us in delays_us.items():
        if (b, a) in delays_us:
            graph.add_edge(a, b, delay_us=(delay_us + delays_us[b, a]) // 2)
    return graph


def test_with_loss_and_churn_no_event_is_lost_or_repeated() -> None:
    run = WholeRun(16, 100, seed=2, loss_percent=2.0, **QUICK)
    run.kill(21.5, "h3", "h5")
    run.restart(24, "h5")
    delivery = run.run().delivery()
    assert delivery.steady.expected > 100
    assert delivery.steady.is_exact and delivery.unasked == ()
    assert delivery.unsteady.duplicates == {}
    assert run.sent["sent_Offer"] > 0
