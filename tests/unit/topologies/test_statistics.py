"""Statistics of underlays, on networks small enough to count by hand."""

import json

import networkx as nx
import numpy as np
import pytest

from topologies import routes
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.routes import Routes, delays_to
from topologies.statistics import (
    SAMPLED_ROUTERS,
    Distribution,
    describe,
    hop_matrix,
    mean_delay_us,
    sample_routers,
)
from topologies.underlay import Channel, Host, Link, Router, Underlay
from topologies.waxman import generate_waxman

# r1 - r2 - r3 - r4 in a row, and a slow link from r1 to r3; h1 is on r1.
ROW = Underlay(
    (Router("r1", role="transit"), Router("r2"), Router("r3", anonymous=True), Router("r4")),
    (
        Link.symmetric("r1", "r2", 10),
        Link.symmetric("r2", "r3", 20),
        Link.symmetric("r3", "r4", 30),
        Link.symmetric("r1", "r3", 1000),
        Link("h1", "r1", Channel(7), Channel(9)),
    ),
    (Host("h1"),),
)


def test_statistics_of_a_small_network_by_hand() -> None:
    found = describe(ROW)
    assert (found.routers, found.hosts, found.links, found.anonymous_routers) == (4, 1, 4, 1)
    assert found.routers_by_role == {"router": 3, "transit": 1}
    assert (found.degree_mean, found.degree_max) == (2.0, 3)
    # hops: r1-r2 1, r1-r3 1, r1-r4 2, r2-r3 1, r2-r4 2, r3-r4 1
    assert found.hops == Distribution(pytest.approx(8 / 6), 1, 1, 1, 2, 2, 2)
    # delays: r1-r2 10, r1-r3 30, r1-r4 60, r2-r3 20, r2-r4 50, r3-r4 30
    assert found.delay_us.mean == pytest.approx(200 / 6)
    assert (found.delay_us.p50, found.delay_us.max) == (30, 60)
    assert (found.last_mile_min_us, found.last_mile_max_us) == (7, 9)


def test_a_single_router_has_statistics() -> None:
    found = describe(Underlay((Router("r1"),), ()))
    assert (found.routers, found.links, found.degree_mean, found.degree_max) == (1, 0, 0.0, 0)
    assert found.hops == found.delay_us == Distribution(0, 0, 0, 0, 0, 0, 0)
    assert found.last_mile_min_us is found.last_mile_max_us is None


def test_hops_and_delays_agree_with_networkx() -> None:
    underlay = make_anonymous(attach_hosts(generate_waxman(300, seed=1), 20, seed=1), 0.1, seed=1)
    names = [router.name for router in underlay.routers]
    graph = nx.Graph((link.a, link.b) for link in underlay.router_links)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = np.array([[lengths[a][b] for b in names] for a in names])
    assert (hop_matrix(underlay, np.arange(300)) == expected).all()
    found = describe(underlay)
    between = expected[~np.eye(300, dtype=bool)]
    assert found.hops.mean == pytest.approx(between.mean())
    assert found.hops.p95 == np.percentile(between, 95)
    assert found.hops.max == nx.diameter(graph)
    assert found.delay_us.mean == pytest.approx(Routes(underlay).mean_delay_us())
    assert found.degree_max == max(degree for _, degree in graph.degree)
    assert found.anonymous_routers == 30


def test_statistics_are_plain_data() -> None:
    data = describe(ROW).to_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["hops"]["p75"] == 2
    assert data["routers_by_role"]["transit"] == 1


@pytest.fixture(scope="module")
def large() -> Underlay:
    return make_asymmetric(generate_waxman(2100, seed=2), 0.3, seed=2)


def test_delays_to_some_routers_are_those_of_all_routes() -> None:
    underlay = make_asymmetric(generate_waxman(300, seed=3), 0.4, seed=3)
    some = np.array([7, 299, 0])
    assert (delays_to(underlay, some) == Routes(underlay).delay_us[some]).all()
    routers = np.arange(300)
    assert (delays_to(underlay, routers) == Routes(underlay).delay_us).all()


def test_large_networks_are_described_by_routes_to_some_routers(large: Underlay) -> None:
    found = describe(large)
    assert (found.routers, found.destinations) == (2100, SAMPLED_ROUTERS)
    sampled = sample_routers(large)
    assert len(set(sampled.tolist())) == SAMPLED_ROUTERS
    assert (sampled.min(), sampled.max()) == (0, 2095)
    delays_us = Routes(large).delay_us
    between = delays_us[~np.eye(2100, dtype=bool)]
    assert found.delay_us.mean == pytest.approx(between.mean(), rel=0.01)
    assert found.delay_us.p95 == pytest.approx(np.percentile(between, 95), rel=0.01)
    assert found.delay_us.max <= between.max()
    hops = hop_matrix(large, np.arange(2100))
    assert found.hops.mean == pytest.approx(hops.sum() / (2100 * 2099), rel=0.01)


def test_the_work_for_a_large_network_is_linear_in_its_routers() -> None:
    counts = []
    for routers in (3000, 6000):
        names = [f"r{number}" for number in range(routers)]
        links = (Link.symmetric(names[i], names[i // 2], 10) for i in range(1, routers))
        underlay = Underlay(tuple(map(Router, names)), tuple(links))
        computed = routes._find_routes.cache_info().misses
        found = describe(attach_hosts(underlay, 10, seed=1))
        assert routes._find_routes.cache_info().misses == computed
        counts.append(found.destinations)
    assert counts == [SAMPLED_ROUTERS, SAMPLED_ROUTERS]


def test_last_miles_in_a_large_network_are_proportional_to_the_mean_delay(large: Underlay) -> None:
    mean_us = Routes(large).mean_delay_us()
    assert mean_delay_us(large) == pytest.approx(mean_us, rel=0.01)
    found = describe(attach_hosts(large, 200, seed=1))
    assert found.last_mile_min_us == pytest.approx(0.05 * mean_us, rel=0.05)
    assert found.last_mile_max_us == pytest.approx(0.10 * mean_us, rel=0.05)
