"""The hosts that are nearest to each host, or farthest from it, by the delay of their routes.

The delay between two hosts is that between their routers and both last miles. So hosts of the same
router have all others in the same order, which is computed once for each router.
"""

import numpy as np
from numpy.typing import NDArray

from topologies.routes import Routes


def nearest_hosts(routes: Routes, count: int) -> list[list[int]]:
    """For each host the numbers of `count` others, the smallest delay first.

    Ties are broken by the order in the underlay.
    """
    return _rank_hosts(routes, count, sign=1)


def farthest_hosts(routes: Routes, count: int) -> list[list[int]]:
    """For each host the numbers of `count` others, the largest delay first; ties as above."""
    return _rank_hosts(routes, count, sign=-1)


def _rank_hosts(routes: Routes, count: int, sign: int) -> list[list[int]]:
    last_miles = [routes.underlay.last_mile[host.name] for host in routes.underlay.hosts]
    router_of = [routes.underlay.router_index[link.b] for link in last_miles]
    down_us = np.array([link.ba.delay_us for link in last_miles], dtype=np.int64)
    wanted = min(count, len(last_miles) - 1)
    ranked = {
        router: _first(sign * (routes.delay_us[router_of, router] + down_us), wanted + 1)
        for router in set(router_of)
    }
    return [
        [other for other in ranked[router] if other != host][:wanted]
        for host, router in enumerate(router_of)
    ]


def _first(keys: NDArray[np.int64], count: int) -> list[int]:
    """The places of at least `count` smallest keys in order; equal keys in their order."""
    last = np.partition(keys, count - 1)[count - 1]
    places = np.nonzero(keys <= last)[0]
    ordered: list[int] = places[np.argsort(keys[places], kind="stable")].tolist()
    return ordered
