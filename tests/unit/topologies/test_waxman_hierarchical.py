"""Two-level Waxman networks: their levels, links between autonomous systems, errors."""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import networkx as nx
import pytest

from topologies.errors import TopologyError
from topologies.hierarchy import PAPER_HIERARCHY, Hierarchy, choose_systems
from topologies.underlay import Link, Underlay
from topologies.underlay_file import underlay_to_json
from topologies.waxman_hierarchical import generate_waxman_hierarchical

SMALL = Hierarchy(203, 10)


def system_of(underlay: Underlay) -> dict[str, str]:
    """The autonomous system of each router: AS3 of AS3.17."""
    return {router.name: router.label.partition(".")[0] for router in underlay.routers}


def split_links(underlay: Underlay) -> tuple[list[Link], list[Link]]:
    """The links inside autonomous systems, and those between them."""
    system = system_of(underlay)
    between = [link for link in underlay.links if system[link.a] != system[link.b]]
    return [link for link in underlay.links if system[link.a] == system[link.b]], between


def borders_with_degrees(underlay: Underlay) -> list[tuple[int, list[int]]]:
    """For each end of a link between systems: its degree and those of its system, just before."""
    inside, between = split_links(underlay)
    system = system_of(underlay)
    degrees = Counter(end for link in inside for end in (link.a, link.b))
    members = defaultdict(list)
    for router in underlay.routers:
        members[system[router.name]].append(router.name)
    found = []
    for link in between:
        for end in (link.a, link.b):
            found.append((degrees[end], [degrees[name] for name in members[system[end]]]))
        degrees.update((link.a, link.b))
    return found


def test_defaults_have_the_size_of_the_other_brite_network_of_the_paper() -> None:
    underlay = generate_waxman_hierarchical(seed=1)
    inside, between = split_links(underlay)
    assert (len(underlay.routers), len(inside), len(between)) == (1640, 3280, 62)
    assert PAPER_HIERARCHY.autonomous_systems == choose_systems(1640)
    assert underlay.source["generator"] == "waxman-hierarchical"
    assert underlay.source["autonomous_systems"] == 31
    assert underlay.source["edge_connection"] == "random"


def test_sizes_of_systems_differ_by_at_most_one_router() -> None:
    sizes = Counter(system_of(generate_waxman_hierarchical(SMALL, seed=1)).values())
    assert sizes == {f"AS{number}": 21 if number < 3 else 20 for number in range(10)}


def test_every_system_is_connected() -> None:
    underlay = generate_waxman_hierarchical(SMALL, seed=2)
    graph = nx.Graph((link.a, link.b) for link in split_links(underlay)[0])
    pieces = [
        {system_of(underlay)[name] for name in piece} for piece in nx.connected_components(graph)
    ]
    assert sorted(map(len, pieces)) == [1] * 10
    assert graph.number_of_edges() == 2 * 203


def test_neighbouring_systems_have_one_link() -> None:
    underlay = generate_waxman_hierarchical(SMALL, seed=3)
    system = system_of(underlay)
    pairs = Counter(frozenset((system[n.a], system[n.b])) for n in split_links(underlay)[1])
    assert set(pairs.values()) == {1}
    assert len(pairs) == 20
    assert nx.is_connected(nx.Graph(tuple(pair) for pair in pairs))


def test_random_border_routers_resemble_other_routers() -> None:
    hierarchy = Hierarchy(1500, 30)
    chosen, others = [], []
    for seed in range(5):
        for degree, all_degrees in borders_with_degrees(
            generate_waxman_hierarchical(hierarchy, seed=seed)
        ):
            chosen.append(degree)
            others.append(sum(all_degrees) / len(all_degrees))
    assert len(chosen) == 600
    assert sum(chosen) / 600 == pytest.approx(sum(others) / 600, abs=0.3)
    assert len(set(chosen)) > 5


@pytest.mark.parametrize(
    ("method", "least"),
    [("smallest-degree", 0), ("smallest-degree-non-leaf", 3), ("smallest-k-degree", 6)],
)
def test_border_routers_have_the_smallest_allowed_degree(method: str, least: int) -> None:
    hierarchy = replace(SMALL, edge_connection=method, border_degree=6)
    for seed in range(3):
        found = borders_with_degrees(generate_waxman_hierarchical(hierarchy, seed=seed))
        assert len(found) == 40
        for degree, all_degrees in found:
            assert degree == min(other for other in all_degrees if other >= least)


def test_without_a_router_of_the_requested_degree_the_largest_is_used() -> None:
    hierarchy = replace(SMALL, edge_connection="smallest-k-degree", border_degree=1000)
    for degree, all_degrees in borders_with_degrees(
        generate_waxman_hierarchical(hierarchy, seed=1)
    ):
        assert degree == max(all_degrees)


def test_delays_between_systems_are_lengths_divided_by_the_speed_of_light() -> None:
    underlay = generate_waxman_hierarchical(SMALL, seed=4)
    place = {router.name: (router.x, router.y) for router in underlay.routers}
    for link in underlay.links:
        length_km = math.dist(place[link.a], place[link.b])
        assert link.ab == link.ba
        assert link.ab.delay_us == pytest.approx(max(0.3, length_km) / 0.299792458, abs=0.5001)


def test_only_the_seed_changes_the_network() -> None:
    first = underlay_to_json(generate_waxman_hierarchical(SMALL, seed=1))
    assert underlay_to_json(generate_waxman_hierarchical(SMALL, seed=1)) == first
    assert underlay_to_json(generate_waxman_hierarchical(SMALL, seed=2)) != first


def test_derived_numbers_of_systems_have_the_proportion_of_brite_s_file() -> None:
    assert choose_systems(1500) == 30
    assert choose_systems(9) == choose_systems(1) == 3
    assert choose_systems(20, links_per_system=4) == 5
    for routers in range(9, 3000):
        assert sum(Hierarchy(routers, choose_systems(routers)).system_sizes) == routers


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"routers": 29}, "routers: expected 30 or more, for 10 autonomous systems .* found 29"),
        ({"autonomous_systems": 2}, "autonomous_systems: expected more .* links_per_system"),
        ({"links_per_system": 0}, "links_per_system: expected 1 or more, found 0"),
        ({"links_per_router": 0}, "links_per_router: expected 1 or more, found 0"),
        ({"border_degree": 0}, "border_degree: expected 1 or more, found 0"),
        ({"distance_scale": 0}, "distance_scale: expected above 0, found 0"),
        ({"edge_connection": "best"}, "edge_connection: expected one of random, .* found 'best'"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        Hierarchy(**{"routers": 100, "autonomous_systems": 10, **settings})


def test_bad_seeds_are_named() -> None:
    with pytest.raises(TopologyError, match="seed: expected a whole number, 0 or more, found -1"):
        generate_waxman_hierarchical(SMALL, seed=-1)
