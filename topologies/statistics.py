"""Statistics of an underlay, to compare networks and generators."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from topologies.routes import Routes, delays_to
from topologies.underlay import Underlay

_ROUTERS_AT_ONCE = 256
# The time to compute all routes grows with the square of the routers. In larger networks, routes
# to some routers represent all.
MOST_ROUTERS = 2048
SAMPLED_ROUTERS = 512


@dataclass(frozen=True, slots=True)
class Distribution:
    """The mean, some percentiles and the maximum of values; all 0 without values."""

    mean: float
    p5: float
    p25: float
    p50: float
    p75: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True)
class UnderlayStatistics:
    """Statistics of an underlay; degrees, hops and delays are those of routers, without hosts.

    `hops` are those of the routes with fewest hops, `delay_us` the delays of the routes that
    packets take: from every router to each of `destinations` routers, which are all routers in
    networks of up to 2,048 routers, and 512 in larger ones.
    """

    routers: int
    routers_by_role: dict[str, int]
    anonymous_routers: int
    hosts: int
    links: int
    degree_mean: float
    degree_max: int
    destinations: int
    hops: Distribution
    delay_us: Distribution
    last_mile_min_us: int | None
    last_mile_max_us: int | None

    def to_dict(self) -> dict[str, Any]:
        """The statistics as plain data for JSON."""
        return asdict(self)


def describe(underlay: Underlay) -> UnderlayStatistics:
    """The statistics of an underlay."""
    destinations = sample_routers(underlay)
    degrees = np.bincount(_link_ends(underlay).ravel(), minlength=len(underlay.routers))
    last_miles_us = [
        channel.delay_us for link in underlay.last_mile.values() for channel in (link.ab, link.ba)
    ]
    return UnderlayStatistics(
        routers=len(underlay.routers),
        routers_by_role=dict(sorted(Counter(router.role for router in underlay.routers).items())),
        anonymous_routers=sum(router.anonymous for router in underlay.routers),
        hosts=len(underlay.hosts),
        links=len(underlay.router_links),
        degree_mean=float(degrees.mean()),
        degree_max=int(degrees.max()),
        destinations=len(destinations),
        hops=_distribution(hop_matrix(underlay, destinations), destinations),
        delay_us=_distribution(delays_to(underlay, destinations), destinations),
        last_mile_min_us=min(last_miles_us, default=None),
        last_mile_max_us=max(last_miles_us, default=None),
    )


def sample_routers(underlay: Underlay) -> NDArray[np.int64]:
    """The positions of all routers, or of evenly spaced ones in large networks."""
    count = len(underlay.routers)
    if count <= MOST_ROUTERS:
        return np.arange(count)
    return np.arange(SAMPLED_ROUTERS) * count // SAMPLED_ROUTERS


def mean_delay_us(underlay: Underlay) -> float:
    """The mean delay between two different routers, or to some of them in large networks."""
    if len(underlay.routers) <= MOST_ROUTERS:
        return Routes(underlay).mean_delay_us()  # those are cached
    delays_us = delays_to(underlay, sample_routers(underlay))
    return float(delays_us.sum() / (delays_us.size - len(delays_us)))


def hop_matrix(underlay: Underlay, destinations: NDArray[np.int64]) -> NDArray[np.int16]:
    """The fewest hops to some routers, a row for each, from every router."""
    count = len(underlay.routers)
    ends = _link_ends(underlay)
    graph = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(count, count))
    hops = np.empty((len(destinations), count), dtype=np.int16)
    for start in range(0, len(destinations), _ROUTERS_AT_ONCE):
        chunk = slice(start, start + _ROUTERS_AT_ONCE)
        hops[chunk] = dijkstra(graph, directed=False, unweighted=True, indices=destinations[chunk])
    return hops


def _link_ends(underlay: Underlay) -> NDArray[np.int64]:
    """The positions of the routers at the two ends of each link, in two rows."""
    index = underlay.router_index
    ends = [(index[link.a], index[link.b]) for link in underlay.router_links]
    return np.array(ends, dtype=np.int64).reshape(-1, 2).T


def _distribution(matrix: NDArray[Any], destinations: NDArray[np.int64]) -> Distribution:
    """The distribution of a matrix's values for pairs of different routers."""
    is_other = np.ones(matrix.shape, dtype=bool)
    is_other[np.arange(len(destinations)), destinations] = False
    values = matrix[is_other]
    if not values.size:
        return Distribution(0, 0, 0, 0, 0, 0, 0)
    p5, p25, p50, p75, p95 = np.percentile(values, (5, 25, 50, 75, 95)).tolist()
    return Distribution(float(values.mean()), p5, p25, p50, p75, p95, float(values.max()))
