"""Properties that every generated underlay has, whatever its parameters and seed."""

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.domain_sizes import DomainSizes, choose_domain_sizes
from topologies.hierarchy import EDGE_CONNECTIONS, Hierarchy, choose_systems
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Underlay
from topologies.underlay_file import underlay_from_json, underlay_to_json
from topologies.waxman import generate_waxman
from topologies.waxman_hierarchical import generate_waxman_hierarchical

SEEDS = st.integers(0, 2**63)
SHARES = st.floats(0, 1)
few = settings(max_examples=40, deadline=None)


def check_simple_and_connected(underlay: Underlay) -> None:
    graph = nx.Graph((link.a, link.b) for link in underlay.router_links)
    assert graph.number_of_edges() == len(underlay.router_links)
    assert nx.number_of_selfloops(graph) == 0
    assert set(graph) == {router.name for router in underlay.routers}
    assert nx.is_connected(graph)
    assert all(c.delay_us >= 1 for link in underlay.links for c in (link.ab, link.ba))


def check_round_trip(underlay: Underlay) -> None:
    text = underlay_to_json(underlay)
    again = underlay_from_json(text, "the text")
    assert again == underlay
    assert underlay_to_json(again) == text


@few
@given(st.integers(1, 5), st.integers(20, 150), SEEDS, st.floats(0.01, 2))
def test_waxman(links_per_router: int, routers: int, seed: int, distance_scale: float) -> None:
    first, second = (
        generate_waxman(routers, links_per_router, seed=seed, distance_scale=distance_scale)
        for _ in range(2)
    )
    assert len(first.routers) == routers
    assert links_per_router * (routers - links_per_router) <= len(first.links)
    assert len(first.links) <= links_per_router * routers
    check_simple_and_connected(first)
    check_round_trip(first)
    assert underlay_to_json(first) == underlay_to_json(second)


@few
@given(st.integers(20, 150), SEEDS)
def test_waxman_has_exactly_two_links_for_each_router(routers: int, seed: int) -> None:
    assert len(generate_waxman(routers, seed=seed).links) == 2 * routers


@few
@given(st.integers(9, 200), st.sampled_from(EDGE_CONNECTIONS), st.integers(1, 9), SEEDS)
def test_waxman_hierarchical(routers: int, edge_connection: str, degree: int, seed: int) -> None:
    systems = choose_systems(routers)
    hierarchy = Hierarchy(routers, systems, edge_connection=edge_connection, border_degree=degree)
    first, second = (generate_waxman_hierarchical(hierarchy, seed=seed) for _ in range(2))
    assert len(first.routers) == len({router.label for router in first.routers}) == routers
    check_simple_and_connected(first)
    check_round_trip(first)
    assert underlay_to_json(first) == underlay_to_json(second)


@few
@given(
    st.builds(
        DomainSizes,
        transit_domains=st.integers(1, 4),
        routers_per_transit_domain=st.integers(1, 4),
        stub_domains_per_transit_router=st.integers(1, 3),
        routers_per_stub_domain=st.integers(1, 8),
    ),
    SEEDS,
    st.floats(0.3, 1),
)
def test_transit_stub(sizes: DomainSizes, seed: int, probability: float) -> None:
    first, second = (
        generate_transit_stub(sizes, seed=seed, stub_link_probability=probability) for _ in range(2)
    )
    assert len(first.routers) == sizes.routers
    assert sum(router.role == "transit" for router in first.routers) == sizes.transit_routers
    assert len({router.label for router in first.routers}) == sizes.routers
    check_simple_and_connected(first)
    check_round_trip(first)
    assert underlay_to_json(first) == underlay_to_json(second)


@few
@given(st.integers(4, 400), SEEDS)
def test_transit_stub_of_any_size(routers: int, seed: int) -> None:
    underlay = generate_transit_stub(choose_domain_sizes(routers), seed=seed)
    assert len(underlay.routers) == routers
    assert {router.role for router in underlay.routers} == {"transit", "stub"}
    check_simple_and_connected(underlay)


@few
@given(st.integers(1, 60), SHARES, st.floats(0, 0.99), SEEDS)
def test_added_hosts_and_properties(hosts: int, share: float, spread: float, seed: int) -> None:
    network = generate_waxman(20, seed=3)

    def build() -> Underlay:
        return make_asymmetric(
            make_anonymous(attach_hosts(network, hosts, seed), share, seed), spread, seed
        )

    underlay = build()
    assert len(underlay.hosts) == hosts
    assert abs(sum(router.anonymous for router in underlay.routers) - share * 20) <= 0.5
    check_simple_and_connected(underlay)
    check_round_trip(underlay)
    assert underlay_to_json(build()) == underlay_to_json(underlay)
