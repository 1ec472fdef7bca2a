"""Core selection: peers agree on the cores that a central computation selects."""

from collections import Counter
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy.sparse.csgraph import dijkstra

from agents.protocol import PeerId
from agents.routing.cores.messages import PeerLinks
from agents.routing.cores.routing import CoreRouting, SpanningTreeRouting
from agents.routing.cores.strategies import Link, most_voted, vote
from agents.routing.cores.votes import SelectionRound, split_links
from agents.routing.cores.weighted_graph import WeightedGraph, paths_through
from agents.routing.similarity import EventWindow, dissimilarity_us, similarity
from agents.wire.codec import MAX_DATAGRAM_BYTES, Datagram, decode, encode
from testbed.errors import ExperimentError
from testbed.experiment.settings import read_settings
from tests.fixtures.static_overlay import Crowd, make_overlay, make_underlay

ALPHA_US, PSI = 15_000, 64


def windows(graph: nx.Graph, seed: int) -> dict[PeerId, EventWindow]:
    """Histories of three kinds of peers, and some of their own."""
    chance = Random(seed)
    kinds = [chance.getrandbits(PSI) for _ in range(3)]
    found = {}
    for peer in sorted(graph):
        bits = chance.choice(kinds) ^ (chance.getrandbits(PSI) & chance.getrandbits(PSI))
        found[peer] = EventWindow(500, (bits | 1).to_bytes(PSI // 8))
    return found


def weighted(graph: nx.Graph, held: dict[PeerId, EventWindow]) -> nx.Graph:
    """The overlay with the weights that its links should have."""
    result = graph.copy()
    for a, b, data in result.edges(data=True):
        apart_us = dissimilarity_us(held[a], held[b], PSI, ALPHA_US) if held else 0
        data["weight"] = data["delay_us"] + apart_us
    return result


def potential(graph: nx.Graph, peer: PeerId) -> float:
    """The formula of section 5.1.2, in seconds."""
    weights = [data["weight"] / 1e6 for data in graph[peer].values()]
    worst = max(data["delay_us"] / 1e6 for data in graph[peer].values())
    return float(len(weights) + len(weights) / sum(weights) + 1 / worst)


def scores(strategy: str, graph: nx.Graph, held: dict[PeerId, EventWindow]) -> dict[PeerId, float]:
    """The score of each peer by a central computation."""
    if strategy == "spath":
        lengths = dict(nx.all_pairs_dijkstra_path_length(graph))
        return {peer: -sum(lengths[peer].values()) for peer in graph}
    if strategy == "maxpath":
        found: dict[PeerId, float] = nx.betweenness_centrality(graph, weight="weight")
        return found
    if strategy == "cneigh":
        votes: Counter[PeerId] = Counter(
            min(graph[peer], key=lambda other: (graph[peer][other]["weight"], other))
            for peer in graph
        )
        return dict(votes)
    if strategy == "spotent":
        return {peer: potential(graph, peer) for peer in graph}
    alike = {
        peer: [similarity(held[peer], held[other], PSI) for other in graph[peer]] for peer in graph
    }
    return {peer: sum(each) / len(each) for peer, each in alike.items()}


@pytest.mark.parametrize("strategy", ["spath", "maxpath", "cneigh", "spotent"])
def test_the_cores_are_those_of_a_central_computation(strategy: str) -> None:
    for seed in range(4):
        underlay = make_underlay(30, seed)
        graph = make_overlay(underlay, seed)
        crowd = Crowd(underlay, graph, seed, strategy=strategy, cores=8).run(9)
        best = most_voted(scores(strategy, weighted(graph, {}), {}), 8)
        assert list(crowd.cores()) == best
        assert len(crowd.recorded("cores_selected")) == 1


@pytest.mark.parametrize("strategy", ["spath", "maxpath", "cneigh", "spotent", "sim"])
def test_weights_with_interests_follow_the_formula(strategy: str) -> None:
    for seed in range(3):
        underlay = make_underlay(30, seed)
        graph = make_overlay(underlay, seed)
        held = windows(graph, seed)
        settings: dict[str, Any] = {
            "strategy": strategy,
            "alpha_us": ALPHA_US,
            "psi": PSI,
            "cores": 8,
        }
        crowd = Crowd(underlay, graph, seed, windows=held, **settings).run(12)
        found = scores(strategy, weighted(graph, held), held)
        if strategy == "sim":  # sums are rounded in a different order
            chosen = [found[core] for core in crowd.cores()]
            assert chosen == pytest.approx(sorted(found.values(), reverse=True)[:8], abs=1e-3)
        else:
            assert list(crowd.cores()) == most_voted(found, 8)


@pytest.mark.parametrize("nothing", [EventWindow(0, b""), EventWindow(500, b""), None])
def test_sim_does_not_select_peers_without_events(nothing: EventWindow | None) -> None:
    underlay = make_underlay(30, 1)
    graph = make_overlay(underlay, 1)
    held = windows(graph, 1)
    silent = sorted(graph)[:12]  # the lowest addresses, which win ties
    told = {**held, **dict.fromkeys(silent, nothing)}
    given = {peer: window for peer, window in told.items() if window is not None}
    crowd = Crowd(
        underlay, graph, 1, windows=given, strategy="sim", alpha_us=ALPHA_US, psi=PSI, cores=5
    ).run(12)
    assert not {*crowd.cores()} & {*silent}


def test_sim_uses_the_sum_or_the_mean_of_similarities() -> None:
    links = {1: Link(5, 5, 0.5), 2: Link(5, 0, 0.0), 3: Link(5, 5, 0.1)}
    assert vote("sim", 7, links, "mean", Random(1)) == (7, pytest.approx(0.2))
    assert vote("sim", 7, links, "sum", Random(1)) == (7, pytest.approx(0.6))


def test_the_sum_of_similarities_prefers_peers_with_many_neighbours() -> None:
    underlay = make_underlay(30, 2)
    graph = make_overlay(underlay, 2)
    held = windows(graph, 2)
    settings: dict[str, Any] = {"strategy": "sim", "alpha_us": ALPHA_US, "psi": PSI, "cores": 5}
    crowd = Crowd(underlay, graph, 2, windows=held, sim_score="sum", **settings).run(12)
    sums = {
        peer: sum(similarity(held[peer], held[other], PSI) for other in graph[peer])
        for peer in graph
    }
    chosen = [sums[core] for core in crowd.cores()]
    assert chosen == pytest.approx(sorted(sums.values(), reverse=True)[:5])


def test_both_ends_of_a_link_use_the_same_weight() -> None:
    underlay = make_underlay(30, 5, 5.0)
    graph = make_overlay(underlay, 5)
    held = windows(graph, 5)
    crowd = Crowd(underlay, graph, 5, windows=held, alpha_us=ALPHA_US, psi=PSI).run(20)
    version, right = crowd.current(), weighted(graph, held)
    for a, b in graph.edges:
        for one, other in ((a, b), (b, a)):
            link = crowd.routing[one].weights.link(version, other)
            assert link.weight_us == right[a][b]["weight"]


def test_a_link_to_a_peer_without_events_has_maximum_dissimilarity() -> None:
    underlay = make_underlay(30, 5)
    graph = make_overlay(underlay, 5)
    silent = sorted(graph)[:6]
    held = {**windows(graph, 5), **dict.fromkeys(silent, EventWindow(0, b""))}
    crowd = Crowd(underlay, graph, 5, windows=held, alpha_us=ALPHA_US, psi=PSI).run(20)
    for one in silent:
        for other in graph[one]:
            link = crowd.routing[one].weights.link(crowd.current(), other)
            assert link.dissimilarity_us == (0 if other in silent else ALPHA_US)


def test_random_cores_differ_between_seeds_and_include_all_peers() -> None:
    chosen: Counter[PeerId] = Counter()
    for seed in range(8):
        underlay = make_underlay(20, 1)
        crowd = Crowd(underlay, make_overlay(underlay, 1), seed, strategy="rand", cores=5).run(8)
        assert len(set(crowd.cores())) == 5
        chosen.update(crowd.cores())
    assert len(chosen) > 12 and max(chosen.values()) < 8


def test_any_strategy_costs_one_ballot_and_one_call_for_each_tree_link() -> None:
    underlay = make_underlay(40, 2)
    graph = make_overlay(underlay, 2)
    sent = Crowd(underlay, graph, 2, strategy="spotent").run(9).sent
    assert sent["sent_SelectionCall"] == sent["sent_Ballot"] == sent["sent_CoreList"] == 39
    sent = Crowd(underlay, graph, 2, strategy="spath").run(9).sent
    assert sent["sent_SelectionCall"] == sent["sent_CoreList"] == 39
    assert sent["sent_LinkReport"] >= 39


def test_many_links_are_sent_in_parts_that_fit_in_datagrams() -> None:
    chance = Random(1)
    weights_us = {peer: chance.randrange(1, 10**6) for peer in range(1_000, 1_700)}
    below = SelectionRound(1, 5, ())
    below.add_links(split_links(900, weights_us))
    for peer in range(1_000, 1_300):
        below.add_links(split_links(peer, {1_500 + n: 7 for n in range(peer % 40)}))
    above = SelectionRound(1, None, [900])
    reports = below.reports()
    chance.shuffle(reports)
    for report in (*reports[:3], *reports):  # Some arrive twice.
        datagram = encode(Datagram(report, 0, 1, 1, 2, 3, 4))
        assert len(datagram) <= MAX_DATAGRAM_BYTES
        above.on_links(900, decode(datagram).content)
    above.add_links([])
    assert above.is_complete
    assert sorted(above.links, key=repr) == sorted(below.links, key=repr)


def test_the_number_of_paths_through_a_peer_equals_networkx() -> None:
    for seed in range(5):
        chance = Random(seed)
        graph = nx.connected_watts_strogatz_graph(40, 4, 0.3, seed=seed)
        for _, _, data in graph.edges(data=True):
            data["weight"] = chance.random() + 0.1
        matrix = nx.to_scipy_sparse_array(graph, weight="weight", dtype=float)
        found = paths_through(*dijkstra(matrix, directed=False, return_predecessors=True))
        right = nx.betweenness_centrality(graph, weight="weight", normalized=False)
        assert found.tolist() == pytest.approx([2 * right[n] for n in range(40)])


def test_a_partitioned_overlay_has_its_cores_in_the_larger_part() -> None:
    links = [PeerLinks(n, (n + 1,), (10,)) for n in range(5)] + [PeerLinks(50, (51,), (1,))]
    graph = WeightedGraph(links)
    assert graph.select("spath", 1) in ([2], [3])
    assert np.isfinite(graph.matrix.toarray()).all()


def test_a_peer_without_neighbours_votes_for_itself() -> None:
    for strategy in ("cneigh", "spotent", "sim"):
        assert vote(strategy, 7, {}, "mean", Random(1)) == (7, 0.0)
    assert vote("cneigh", 7, {3: Link(5, 5), 2: Link(10, 0)}, "mean", Random(1)) == (2, 1.0)


@pytest.mark.parametrize("strategy", ["spotent", "spath"])
def test_a_selection_survives_crashes_of_selected_peers(strategy: str) -> None:
    for seed in range(4):
        underlay = make_underlay(40, seed, 2.0)
        graph = make_overlay(underlay, seed)
        crowd = Crowd(underlay, graph, seed, strategy=strategy).run(4.5)
        step = 4.5
        while not any(r.selection._round is not None for r in crowd.routing.values()):
            step += 0.001
            crowd.run(step)
        inner = [p for p, r in crowd.routing.items() if r.tree.children() and not r.tree.is_leader]
        crowd.kill(*Random(seed).sample(sorted(inner), 2)).run(60)
        if nx.is_connected(graph.subgraph(crowd.routing)):
            crowd.check_tree()


@pytest.mark.parametrize("strategy", ["spotent", "maxpath"])
def test_a_leader_that_crashes_while_votes_are_counted_is_replaced(strategy: str) -> None:
    for seed in range(4):
        underlay = make_underlay(40, seed, 2.0)
        graph = make_overlay(underlay, seed)
        crowd = Crowd(underlay, graph, seed, strategy=strategy).run(4.5)
        leader, step = min(crowd.host), 4.5
        while crowd.routing[leader].selection._round is None:
            step += 0.001
            crowd.run(step)
        assert not crowd.recorded("cores_selected")
        crowd.kill(leader).run(60)
        if nx.is_connected(graph.subgraph(crowd.routing)):
            assert crowd.leaders() == {min(crowd.routing)}
            crowd.check_tree()


def test_one_seed_gives_the_same_records_twice() -> None:
    runs = []
    for _ in range(2):
        underlay = make_underlay(25, 3, 3.0)
        crowd = Crowd(underlay, make_overlay(underlay, 3), 3, strategy="rand", recalculate_s=9.0)
        runs.append((crowd.run(30).records, crowd.sent))
    assert runs[0] == runs[1]


@pytest.mark.parametrize(
    ("wrong", "found"),
    [
        ({"strategy": "best"}, "strategy: expected one of cneigh, spotent"),
        ({"core_paths": "mesh"}, "core_paths: expected one of tree, apsp"),
        ({"cores": 0}, "cores: expected 1 to 200, found 0"),
        ({"settle_s": -1.0}, "settle_s: expected 0 or more"),
    ],
)
def test_invalid_settings_are_refused(wrong: dict[str, Any], found: str) -> None:
    for routing in (CoreRouting, SpanningTreeRouting):
        read_settings(routing.Settings, "routing.", {})
    with pytest.raises(ExperimentError, match=f"routing.{found}"):
        read_settings(CoreRouting.Settings, "routing.", wrong)
