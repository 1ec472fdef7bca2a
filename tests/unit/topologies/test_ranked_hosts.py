"""The nearest and the farthest hosts, compared with an order of all pairs."""

import numpy as np
import pytest

from topologies.hosts import attach_hosts, make_asymmetric
from topologies.ranked_hosts import farthest_hosts, nearest_hosts
from topologies.routes import Routes
from topologies.underlay import Host, Link, Router, Underlay
from topologies.waxman import generate_waxman


def all_pairs(routes: Routes, count: int, sign: int) -> list[list[int]]:
    """The ranked hosts from the delays between all pairs of hosts."""
    keys = sign * routes.host_delays_us()
    np.fill_diagonal(keys, np.iinfo(np.int64).max)
    order: list[list[int]] = np.argsort(keys, kind="stable")[:, :count].tolist()
    return order


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 3, 39])
def test_hosts_are_ranked_as_by_the_delays_of_all_pairs(seed: int, count: int) -> None:
    underlay = attach_hosts(generate_waxman(12, seed=seed), 40, seed=seed)
    routes = Routes(make_asymmetric(underlay, 0.5, seed) if seed % 2 else underlay)
    assert nearest_hosts(routes, count) == all_pairs(routes, count, 1)
    assert farthest_hosts(routes, count) == all_pairs(routes, count, -1)


def test_with_equal_delays_the_first_host_is_ranked_first() -> None:
    names = ["h1", "h2", "h3", "h4"]
    links = tuple(Link.symmetric(name, "r1", 100) for name in names)
    routes = Routes(Underlay((Router("r1"),), links, tuple(map(Host, names))))
    assert nearest_hosts(routes, 2) == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert farthest_hosts(routes, 9) == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]
