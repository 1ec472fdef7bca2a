"""Shortest routes by delay between all routers of an underlay.

Of routes with equal delay, the one with fewest hops is used; of those, the one whose links
have the smallest sum of fixed per-link numbers, so that a route and the route back use the
same links where delays are symmetric (except for rare equal sums); then the neighbour that
comes first. The result depends on the underlay alone, not on the library that computes
distances.
"""

from collections.abc import Set
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from topologies.errors import TopologyError
from topologies.underlay import Underlay

# A route's weight is one float64 that holds whole numbers below 2**53 exactly:
# delay in microseconds (27 bits), hops (8 bits, as in IP), and the sum of tie-breakers (18 bits).
_TIE_BREAKERS = 1024
_HOP = float(1 << 18)
_MICROSECOND = float(1 << 26)
_LARGEST_WEIGHT = float(1 << 53)
_DESTINATIONS_AT_ONCE = 256
NO_ROUTE = -1

Edges = tuple[tuple[int, int, float], ...]
_Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]


class Routes:
    """The next hop and the delay from every router to every other.

    `next_hop[destination, router]` is the index of the neighbour, and `delay_us` the
    delay of the whole route; both are -1 where there is none.
    """

    def __init__(self, underlay: Underlay, down: Set[str] = frozenset()) -> None:
        """Compute all routes, avoiding the links and routers named in `down`."""
        self.underlay = underlay
        edges = tuple(_directed_edges(underlay, down))
        self.next_hop, self.delay_us = _find_routes(len(underlay.routers), edges)

    def path(self, source: str, target: str) -> list[str]:
        """The nodes from source to target, both included."""
        here, there = self._router_of(source), self._router_of(target)
        names = [source] if source != self._name(here) else []
        names.append(self._name(here))
        while here != there:
            here = int(self.next_hop[there, here])
            if here == NO_ROUTE:
                raise TopologyError(f"no route from {source} to {target}")
            names.append(self._name(here))
        return names + ([target] if target != names[-1] else [])

    def path_delay_us(self, source: str, target: str) -> int:
        """The one-way delay from source to target, last miles included."""
        here, there = self._router_of(source), self._router_of(target)
        delay = int(self.delay_us[there, here])
        if delay == NO_ROUTE:
            raise TopologyError(f"no route from {source} to {target}")
        last_miles = self.underlay.last_mile
        up = last_miles[source].ab.delay_us if source in last_miles else 0
        down = last_miles[target].ba.delay_us if target in last_miles else 0
        return 0 if source == target else up + delay + down

    def host_delays_us(self) -> NDArray[np.int64]:
        """The one-way delay from each host to each other, in the order of the underlay's hosts."""
        last_miles = [self.underlay.last_mile[host.name] for host in self.underlay.hosts]
        at = np.array([self.underlay.router_index[link.b] for link in last_miles], dtype=np.int64)
        up_us = np.array([link.ab.delay_us for link in last_miles], dtype=np.int64)
        down_us = np.array([link.ba.delay_us for link in last_miles], dtype=np.int64)
        between_us = self.delay_us[np.ix_(at, at)].T
        delays_us = up_us[:, None] + between_us + down_us
        delays_us[between_us == NO_ROUTE] = NO_ROUTE
        np.fill_diagonal(delays_us, 0)
        return delays_us

    def mean_delay_us(self) -> float:
        """The mean delay between two different routers."""
        pairs = self.delay_us.size - len(self.delay_us)
        return float(self.delay_us.sum() / pairs) if pairs else 0.0

    def _router_of(self, node: str) -> int:
        router = self.underlay.access_router.get(node, node)
        if router not in self.underlay.router_index:
            raise TopologyError(f"node {node}: expected a router or host of this underlay")
        return self.underlay.router_index[router]

    def _name(self, index: int) -> str:
        return self.underlay.routers[index].name


def delays_to(underlay: Underlay, destinations: NDArray[np.int64]) -> NDArray[np.int64]:
    """The delays of the routes to some routers, a row for each; some rows of `Routes.delay_us`.

    It takes a fraction of the time of `Routes`, which finds next hops as well.
    """
    count = len(underlay.routers)
    graph = _reversed_graph(count, _columns(tuple(_directed_edges(underlay, frozenset()))))
    delays_us = np.empty((len(destinations), count), dtype=np.int64)
    for start in range(0, len(destinations), _DESTINATIONS_AT_ONCE):
        chunk = slice(start, start + _DESTINATIONS_AT_ONCE)
        delays_us[chunk] = _whole_delays(dijkstra(graph, indices=destinations[chunk]))
    return delays_us


@lru_cache(maxsize=1)  # placing hosts, simulating and measuring use the same routes
def _find_routes(count: int, edges: Edges) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The next hops and delays between some routers; read-only arrays, because they are shared."""
    columns = _columns(edges)
    graph = _reversed_graph(count, columns)
    next_hop = np.full((count, count), NO_ROUTE, dtype=np.int32)
    delay_us = np.full((count, count), NO_ROUTE, dtype=np.int64)
    for start in range(0, count, _DESTINATIONS_AT_ONCE):
        chunk = np.arange(start, min(start + _DESTINATIONS_AT_ONCE, count))
        distance = dijkstra(graph, indices=chunk).T.copy()
        next_hop[chunk] = _next_hops(*columns, distance).T
        delay_us[chunk] = _whole_delays(distance).T
    next_hop.flags.writeable = delay_us.flags.writeable = False
    return next_hop, delay_us


def _columns(edges: Edges) -> _Columns:
    """The sources, the targets and the weights of some edges."""
    columns = np.array(edges, dtype=np.float64).reshape(-1, 3).T
    return columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2]


def _reversed_graph(count: int, columns: _Columns) -> csr_array:
    """The graph with all directions reversed: paths from a destination are routes to it."""
    source, target, weight = columns
    return csr_array((weight, (target, source)), shape=(count, count))


def _whole_delays(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The delays in the weights of routes, in whole microseconds."""
    reached = np.isfinite(distance)
    if distance[reached].max() >= _LARGEST_WEIGHT:
        raise TopologyError("routes: expected delays below 134 s, found a longer route")
    delay: NDArray[np.float64] = np.where(reached, distance, 0) // _MICROSECOND
    return np.where(reached, delay, NO_ROUTE)


def _directed_edges(underlay: Underlay, down: Set[str]) -> list[tuple[int, int, float]]:
    """Source, target and weight of every usable direction, ordered by source and target."""
    index = underlay.router_index
    edges: list[tuple[int, int, float]] = []
    for number, link in enumerate(underlay.router_links):
        if not down.isdisjoint((link.name, link.a, link.b)):
            continue
        hop = _HOP + (number * 2_654_435_761 >> 16) % _TIE_BREAKERS
        edges.append((index[link.a], index[link.b], link.ab.delay_us * _MICROSECOND + hop))
        edges.append((index[link.b], index[link.a], link.ba.delay_us * _MICROSECOND + hop))
    return sorted(edges)


def _next_hops(
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    weight: NDArray[np.float64],
    distance: NDArray[np.float64],
) -> NDArray[np.int32]:
    """For each router and destination the first neighbour on a shortest route."""
    hops = np.full(distance.shape, NO_ROUTE, dtype=np.int32)
    # In reverse order, so that of two equally good neighbours the first remains.
    for edge in range(len(source) - 1, -1, -1):
        here, neighbour = source[edge], target[edge]
        best = (weight[edge] + distance[neighbour] == distance[here]) & np.isfinite(distance[here])
        hops[here, best] = neighbour
    return hops
