"""Routes compared with NetworkX, and with all paths of small networks."""

from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.errors import TopologyError
from topologies.hosts import attach_hosts
from topologies.routes import NO_ROUTE, Routes
from topologies.underlay import Channel, Link, Router, Underlay
from topologies.waxman import generate_waxman

few = settings(max_examples=60, deadline=None)


@st.composite
def underlays(draw: st.DrawFn, routers: int, delays_us: st.SearchStrategy[int]) -> Underlay:
    """A connected network: a random tree and more links, with a delay for each direction."""
    count = draw(st.integers(2, routers))
    pairs = {(draw(st.integers(0, node - 1)), node) for node in range(1, count)}
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    pairs |= {(min(p), max(p)) for p in draw(st.lists(ends, max_size=2 * count)) if p[0] != p[1]}
    is_symmetric = draw(st.booleans())
    links = []
    for a, b in sorted(pairs):
        there = draw(delays_us)
        back = there if is_symmetric else draw(delays_us)
        links.append(Link(f"r{a}", f"r{b}", Channel(there), Channel(back)))
    return Underlay(tuple(Router(f"r{i}") for i in range(count)), tuple(links))


# With few different delays, many routes have equal delay; zero is allowed.
SMALL = underlays(7, st.integers(0, 2))
LARGE = underlays(25, st.sampled_from([1, 1, 2, 5, 1000, 1_000_000]))


def to_networkx(underlay: Underlay, down: frozenset[str] = frozenset()) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(router.name for router in underlay.routers)
    for link in underlay.router_links:
        if down.isdisjoint((link.name, link.a, link.b)):
            graph.add_edge(link.a, link.b, delay_us=link.ab.delay_us)
            graph.add_edge(link.b, link.a, delay_us=link.ba.delay_us)
    return graph


def delay_of(graph: nx.DiGraph, path: list[str]) -> int:
    return sum(graph.edges[hop]["delay_us"] for hop in pairwise(path))


def names(underlay: Underlay) -> list[str]:
    return [router.name for router in underlay.routers]


@few
@given(LARGE)
def test_delays_are_those_of_networkx(underlay: Underlay) -> None:
    routes, graph = Routes(underlay), to_networkx(underlay)
    for source, lengths in nx.all_pairs_dijkstra_path_length(graph, weight="delay_us"):
        for target in names(underlay):
            assert routes.path_delay_us(source, target) == lengths[target]


@few
@given(SMALL)
def test_routes_are_best_among_all_paths(underlay: Underlay) -> None:
    routes, graph = Routes(underlay), to_networkx(underlay)
    for source in names(underlay):
        for target in set(names(underlay)) - {source}:
            path = routes.path(source, target)
            ranks = [
                (delay_of(graph, p), len(p)) for p in nx.all_simple_paths(graph, source, target)
            ]
            assert (delay_of(graph, path), len(path)) == min(ranks)
            assert routes.path_delay_us(source, target) == min(ranks)[0]


@few
@given(LARGE)
def test_every_router_on_a_route_forwards_along_it(underlay: Underlay) -> None:
    routes, graph = Routes(underlay), to_networkx(underlay)
    source = underlay.routers[0].name
    for target in names(underlay):
        path = routes.path(source, target)
        assert (path[0], path[-1]) == (source, target)
        assert len(set(path)) == len(path)
        for position, router in enumerate(path):
            assert routes.path(router, target) == path[position:]
            rest_us = delay_of(graph, path[position:])
            assert routes.path_delay_us(router, target) == rest_us


@few
@given(LARGE, st.data())
def test_routes_avoid_failed_links_and_routers_in_any_order_of_failures(
    underlay: Underlay, data: st.DataObject
) -> None:
    nodes_and_links = [*names(underlay), *(link.name for link in underlay.links)]
    failed = data.draw(st.lists(st.sampled_from(nodes_and_links), max_size=4, unique=True))
    routes = Routes(underlay, set(failed))
    other = Routes(underlay, dict.fromkeys(reversed(failed)).keys())
    assert (routes.next_hop == other.next_hop).all()
    lengths = dict(
        nx.all_pairs_dijkstra_path_length(
            to_networkx(underlay, frozenset(failed)), weight="delay_us"
        )
    )
    for i, target in enumerate(names(underlay)):
        for j, source in enumerate(names(underlay)):
            assert routes.delay_us[i, j] == lengths[source].get(target, NO_ROUTE)
            if target in lengths[source]:
                links = {frozenset(hop) for hop in pairwise(routes.path(source, target))}
                down = {
                    frozenset((link.a, link.b)) for link in underlay.links if link.name in failed
                }
                assert links.isdisjoint(down)
            else:
                with pytest.raises(TopologyError, match=f"no route from {source} to {target}"):
                    routes.path(source, target)


def test_the_reverse_route_uses_the_same_links_if_delays_are_symmetric() -> None:
    # With equal delays, nearly every route has alternatives, and the fixed number of each link
    # decides; only equal sums of these numbers allow different routes in both directions.
    for seed in range(3):
        network = generate_waxman(60, seed=seed)
        equal = tuple(Link.symmetric(link.a, link.b, 1000) for link in network.links)
        ways = {}
        for label, links in (("own", network.links), ("equal", equal)):
            routes = Routes(Underlay(network.routers, links))
            pairs = [(a, b) for a in names(network) for b in names(network) if a < b]
            same = sum(routes.path(a, b) == routes.path(b, a)[::-1] for a, b in pairs)
            ways[label] = same / len(pairs)
        assert ways["own"] == 1
        assert ways["equal"] > 0.97


def test_last_miles_count_at_both_ends_of_a_route() -> None:
    underlay = attach_hosts(generate_waxman(30, seed=1), 12, seed=2)
    routes = Routes(underlay)
    for a in underlay.hosts:
        for b in underlay.hosts:
            path = routes.path(a.name, b.name)
            expected = 0
            if a != b:
                ends = underlay.access_router[a.name], underlay.access_router[b.name]
                assert path == [a.name, *routes.path(*ends), b.name]
                last_miles = underlay.last_mile[a.name].ab, underlay.last_mile[b.name].ba
                expected = routes.path_delay_us(*ends) + sum(c.delay_us for c in last_miles)
            assert routes.path_delay_us(a.name, b.name) == expected
