"""Shortest paths over an overlay, and their crossings of physical links.

Among paths of equal delay the one that crosses fewer physical links counts, so values depend
on the overlay alone and not on the library that finds the paths. As in `topologies.routes`, both
are packed into one float64 that holds whole numbers below 2**53 exactly: the delay in
microseconds (33 bits) and the crossings (20 bits).
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from analysis.errors import AnalysisError
from analysis.overlay import PeerLink
from analysis.unicast import Numbers, Unicast

_MICROSECOND = 1 << 20
_LARGEST_WEIGHT = float(1 << 53)


@dataclass(frozen=True)
class OverlayPaths:
    """The shortest path from each peer to each other, as matrices `[from, to]`.

    Delays and crossings of pairs without a path, or of a peer and itself, are undefined.
    `distance` is the delay of the links and the crossings packed into one number.
    """

    is_reached: NDArray[np.bool_]
    delay_us: Numbers
    crossings: Numbers
    distance: NDArray[np.float64]


def find_paths(
    unicast: Unicast,
    links: Iterable[PeerLink],
    last_miles: bool = True,
    is_directed: bool = False,
) -> OverlayPaths:
    """The shortest paths over overlay links, each with the delay of the unicast route of its ends.

    Directed links lead from their first end to the second, others both ways.

    Without `last_miles`, the last miles down to a peer and up again are subtracted for peers in
    the middle of a path. For p, q, …, s there remain the last mile up from p, the delays between
    the routers of each two, and the last mile down to s; so those delays are the weights.
    """
    source, target = directed_ends(unicast, links, is_directed)
    weighed_us = unicast.delay_us if last_miles else unicast.between_routers_us
    weight = _pack(unicast, weighed_us, source, target)
    distance = _distances(len(unicast.number), source, target, weight.astype(np.float64))
    is_reached = np.isfinite(distance)
    np.fill_diagonal(is_reached, False)
    if distance[is_reached].max(initial=0) >= _LARGEST_WEIGHT:
        raise AnalysisError("overlay paths: expected delays below 8,589 s, found a longer path")
    whole = np.where(is_reached, distance, 0).astype(np.int64)
    ends_us = 0 if last_miles else unicast.up_us[:, None] + unicast.down_us
    delay_us = whole // _MICROSECOND + ends_us
    return OverlayPaths(is_reached, delay_us, whole % _MICROSECOND, distance)


def find_delays(
    unicast: Unicast, links: Iterable[PeerLink], sources: Numbers, is_directed: bool = False
) -> Numbers:
    """The delays of the shortest paths with last miles from some peers to all; -1 without a path.

    A row for each source. A peer is 0 from itself.
    """
    source, target = directed_ends(unicast, links, is_directed)
    weight = _pack(unicast, unicast.delay_us, source, target).astype(np.float64)
    distance = _distances(len(unicast.number), source, target, weight, sources)
    whole = np.where(np.isfinite(distance), distance, -_MICROSECOND)
    delay_us: Numbers = (whole // _MICROSECOND).astype(np.int64)
    return delay_us


def count_tree_crossings(
    unicast: Unicast, links: Iterable[PeerLink], paths: OverlayPaths, is_directed: bool = False
) -> int:
    """The crossings of a message that each peer sends to all others along its tree of these paths.

    The paths are those over these links with last miles. Of two possible next peers, the one
    whose link crosses less is taken.
    """
    source, target = directed_ends(unicast, links, is_directed)
    weight = _pack(unicast, unicast.delay_us, source, target)
    tree = _last_crossings(unicast, source, target, weight, paths.distance)
    return int(tree[paths.is_reached].sum())


def count_pieces(unicast: Unicast, links: Iterable[PeerLink]) -> int:
    """The number of connected components of the peers."""
    source, target = directed_ends(unicast, links)
    count = len(unicast.number)
    graph = csr_array((np.ones(len(source)), (source, target)), shape=(count, count))
    return int(connected_components(graph, directed=False, return_labels=False))


def directed_ends(
    unicast: Unicast, links: Iterable[PeerLink], is_directed: bool = False
) -> tuple[Numbers, Numbers]:
    """The numbers of the peers at both ends of each link, once in each direction that it has."""
    ends = [(unicast.number[a], unicast.number[b]) for a, b in sorted(links)]
    a, b = np.array(ends, dtype=np.int64).reshape(-1, 2).T
    if is_directed:
        return a, b
    return np.concatenate([a, b]), np.concatenate([b, a])


def _pack(unicast: Unicast, weighed_us: Numbers, source: Numbers, target: Numbers) -> Numbers:
    """The delay and the crossings of some routes in one number."""
    packed: Numbers = weighed_us[source, target] * _MICROSECOND + unicast.crossings[source, target]
    return packed


def _distances(
    count: int,
    source: Numbers,
    target: Numbers,
    weight: NDArray[np.float64],
    sources: Numbers | None = None,
) -> NDArray[np.float64]:
    graph = csr_array((weight, (source, target)), shape=(count, count))
    distance: NDArray[np.float64] = dijkstra(graph, indices=sources)
    return distance


def _last_crossings(
    unicast: Unicast,
    source: Numbers,
    target: Numbers,
    weight: Numbers,
    distance: NDArray[np.float64],
) -> Numbers:
    """The crossings of the last overlay link on the path from each peer to each other."""
    to = np.ascontiguousarray(distance.T)
    least = np.full(to.shape, np.iinfo(np.int64).max, dtype=np.int64)
    crossings = unicast.crossings[source, target]
    for p, q, length, crossed in zip(source, target, weight, crossings, strict=True):
        is_on_the_way = (to[p] + length == to[q]) & np.isfinite(to[q])
        np.minimum(least[q], crossed, out=least[q], where=is_on_the_way)
    return least.T
