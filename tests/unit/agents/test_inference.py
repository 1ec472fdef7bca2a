"""The inferred underlay: its graph, the merging of silent routers, and its score."""

from collections.abc import Sequence
from itertools import pairwise

import pytest

from agents.probing.inference import (
    InferenceScore,
    Truth,
    infer_underlay,
    score,
    truth_of_underlay,
    truth_on_routes,
)
from agents.probing.route import Hop, Route
from topologies.hosts import attach_hosts, make_anonymous
from topologies.routes import Routes
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

PERFECT = InferenceScore(1.0, 1.0, 1.0, 1.0)


def route(*nodes: int | None, step_us: int = 1_000) -> tuple[int, Route]:
    """A route from the first node to the last, one hop for each."""
    source, *rest = nodes
    assert source is not None
    hops = tuple(
        Hop(node, () if node is None else (at * step_us,)) for at, node in enumerate(rest, start=1)
    )
    return source, Route(nodes[-1] or 0, hops, is_reached=True)


def truth(*paths: Sequence[int]) -> Truth:
    links = {frozenset(link) for path in paths for link in pairwise(path)}
    routers = {node for path in paths for node in path[1:-1]}
    return Truth(
        frozenset(routers), frozenset(links), {(path[0], path[-1]): tuple(path) for path in paths}
    )


def probed(underlay: Underlay) -> tuple[list[tuple[int, Route]], list[tuple[str, str]], Routes]:
    """The routes that perfect probing finds between all hosts of an underlay."""
    routes = Routes(underlay)
    names = [host.name for host in underlay.hosts]
    pairs = [(a, b) for a in names for b in names if a != b]
    silent = {router.name for router in underlay.routers if router.anonymous}
    paths = truth_on_routes(routes, pairs).paths
    seen = []
    for (source, target), (a, b) in zip(paths, pairs, strict=True):
        hops = []
        for address, name in zip(paths[source, target][1:], routes.path(a, b)[1:], strict=True):
            trip_us = routes.path_delay_us(a, name) + routes.path_delay_us(name, a)
            hops.append(Hop(None) if name in silent else Hop(address, (trip_us,)))
        seen.append((source, Route(target, tuple(hops), is_reached=True)))
    return seen, pairs, routes


def test_a_graph_has_the_routers_and_links_of_its_routes() -> None:
    graph = infer_underlay([route(100, 1, 2, 101), route(100, 1, 3, 102)])
    assert graph.routers == {1, 2, 3}
    assert graph.links == {
        frozenset(link) for link in [(100, 1), (1, 2), (2, 101), (1, 3), (3, 102)]
    }


def test_without_silent_routers_exactly_the_underlay_is_found() -> None:
    seen, pairs, routes = probed(attach_hosts(generate_waxman(30, seed=3), 10, seed=3))
    on_routes = truth_on_routes(routes, pairs)
    assert score(infer_underlay(seen), on_routes) == PERFECT
    assert score(infer_underlay(seen, merge_silent=True), on_routes) == PERFECT
    everything = score(infer_underlay(seen), truth_of_underlay(routes.underlay, routes, pairs))
    assert everything.link_precision == everything.router_precision == 1.0
    assert everything.link_recall < 1.0 and everything.router_recall < 1.0


def test_without_merging_a_silent_router_appears_once_for_each_direction() -> None:
    seen = [route(100, 1, None, 3, 101), route(101, 3, None, 1, 100)]
    real = truth((100, 1, 2, 3, 101), (101, 3, 2, 1, 100))
    apart = score(infer_underlay(seen), real)
    assert apart == InferenceScore(3 / 4, 1.0, 4 / 6, 1.0)
    assert score(infer_underlay(seen, merge_silent=True), real) == PERFECT


def test_consecutive_silent_routers_keep_their_order_in_both_directions() -> None:
    seen = [route(100, 1, None, None, 4, 101), route(101, 4, None, None, 1, 100)]
    real = truth((100, 1, 2, 3, 4, 101), (101, 4, 3, 2, 1, 100))
    merged = infer_underlay(seen, merge_silent=True)
    assert len(merged.sightings) == 2
    assert score(merged, real) == PERFECT


def test_silent_routers_at_different_distances_stay_separate() -> None:
    near, far = route(100, 1, None, 3, 101), route(102, 1, None, 3, 103, step_us=9_000)
    assert len(infer_underlay([near, far], merge_silent=True).sightings) == 2
    close = route(102, 1, None, 3, 103, step_us=1_040)
    assert len(infer_underlay([near, close], merge_silent=True).sightings) == 1


def test_silent_routers_between_different_neighbours_stay_separate() -> None:
    seen = [route(100, 1, None, 3, 101), route(100, 1, None, 4, 102)]
    assert len(infer_underlay(seen, merge_silent=True).sightings) == 2


def test_a_wrong_merge_reduces_precision_and_recall() -> None:
    seen = [route(100, 1, None, 3, 101), route(102, 1, None, 3, 103)]
    real = truth((100, 1, 2, 3, 101), (102, 1, 9, 3, 103))
    merged = score(infer_underlay(seen, merge_silent=True), real)
    assert merged.router_recall == 3 / 4
    assert merged.link_recall == 6 / 8
    assert merged.link_precision == 1.0


def test_a_route_that_ends_before_its_target_adds_its_hops() -> None:
    hops = (Hop(1, (1_000,)), Hop(None), Hop(3, (3_000,)))
    graph = infer_underlay([(100, Route(999, hops, is_reached=False))])
    assert {1, 3} < graph.routers and 999 not in graph.routers
    assert len(graph.links) == 3


def test_an_empty_result_has_full_precision_and_no_recall() -> None:
    assert score(infer_underlay([]), truth((100, 1, 101))) == InferenceScore(1.0, 0.0, 1.0, 0.0)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_merging_improves_the_score_of_the_inferred_underlay(share: float) -> None:
    underlay = attach_hosts(generate_waxman(40, seed=5), 12, seed=5)
    seen, pairs, routes = probed(make_anonymous(underlay, share, seed=5))
    on_routes = truth_on_routes(routes, pairs)
    apart = score(infer_underlay(seen), on_routes)
    merged = score(infer_underlay(seen, merge_silent=True), on_routes)
    assert merged.link_precision > apart.link_precision
    assert merged.router_precision > apart.router_precision
    assert merged.link_recall > 0.5


def test_the_order_of_routes_does_not_matter() -> None:
    underlay = attach_hosts(generate_waxman(20, seed=7), 6, seed=7)
    seen, pairs, routes = probed(make_anonymous(underlay, 0.4, seed=7))
    on_routes = truth_on_routes(routes, pairs)
    forwards = score(infer_underlay(seen, merge_silent=True), on_routes)
    backwards = score(infer_underlay(seen[::-1], merge_silent=True), on_routes)
    assert forwards == backwards
