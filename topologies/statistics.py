"""What an underlay looks like in numbers, to be compared with other networks and generators."""

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from topologies.routes import Routes
from topologies.underlay import Underlay

_ROUTERS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Distribution:
    """The mean, some percentiles and the maximum of many values; all 0 where there are none."""

    mean: float
    p5: float
    p25: float
    p50: float
    p75: float
    p95: float
    max: float


@dataclass(frozen=True, slots=True)
class UnderlayStatistics:
    """An underlay in numbers; degrees, hops and delays are those of routers, without hosts.

    `hops` are those of the routes with the fewest, between every two routers; `delay_us` are
    the delays of the routes that packets take.
    """

    routers: int
    routers_by_role: dict[str, int]
    anonymous_routers: int
    hosts: int
    links: int
    degree_mean: float
    degree_max: int
    hops: Distribution
    delay_us: Distribution
    last_mile_min_us: int | None
    last_mile_max_us: int | None

    def to_dict(self) -> dict[str, Any]:
        """The statistics as plain data for JSON."""
        return asdict(self)


def describe(underlay: Underlay) -> UnderlayStatistics:
    """The statistics of an underlay."""
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
        hops=_distribution(hop_matrix(underlay)),
        delay_us=_distribution(Routes(underlay).delay_us),
        last_mile_min_us=min(last_miles_us, default=None),
        last_mile_max_us=max(last_miles_us, default=None),
    )


def hop_matrix(underlay: Underlay) -> NDArray[np.int16]:
    """The fewest links between every two routers, by their positions."""
    count = len(underlay.routers)
    ends = _link_ends(underlay)
    graph = csr_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(count, count))
    hops = np.empty((count, count), dtype=np.int16)
    for start in range(0, count, _ROUTERS_AT_ONCE):
        chunk = np.arange(start, min(start + _ROUTERS_AT_ONCE, count))
        hops[chunk] = dijkstra(graph, directed=False, unweighted=True, indices=chunk)
    return hops


def _link_ends(underlay: Underlay) -> NDArray[np.int64]:
    """The positions of the routers at the two ends of each link, in two rows."""
    index = underlay.router_index
    ends = [(index[link.a], index[link.b]) for link in underlay.router_links]
    return np.array(ends, dtype=np.int64).reshape(-1, 2).T


def _distribution(matrix: NDArray[Any]) -> Distribution:
    """The distribution of what a matrix says about two different routers."""
    values = matrix[~np.eye(len(matrix), dtype=bool)]
    if not values.size:
        return Distribution(0, 0, 0, 0, 0, 0, 0)
    p5, p25, p50, p75, p95 = np.percentile(values, (5, 25, 50, 75, 95)).tolist()
    return Distribution(float(values.mean()), p5, p25, p50, p75, p95, float(values.max()))
