"""Computations of the leader on the weights of all links: cores by strategies with global
knowledge, and the minimum spanning tree (sections 5.1.1 and 6.2 of Tariq, Koldehofe and Rothermel,
DEBS 2013).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra, minimum_spanning_tree

from agents.protocol import PeerId
from agents.routing.cores.messages import PeerLinks
from agents.routing.cores.strategies import most_voted


class WeightedGraph:
    """All links with their weights, as far as they were reported."""

    def __init__(self, reports: Sequence[PeerLinks]) -> None:
        weights_us = {
            (report.peer, neighbour): max(1, weight_us)
            for report in reports
            for neighbour, weight_us in zip(report.neighbours, report.weights_us, strict=False)
        }
        ends = {end for link in weights_us for end in link} | {report.peer for report in reports}
        self.peers = sorted(ends)
        index = {peer: at for at, peer in enumerate(self.peers)}
        rows = [index[a] for a, _ in weights_us]
        columns = [index[b] for _, b in weights_us]
        shape = (len(self.peers), len(self.peers))
        values = np.array(list(weights_us.values()), dtype=np.float64)
        self.matrix = csr_array((values, (rows, columns)), shape=shape)

    def select(self, strategy: str, count: int) -> list[PeerId]:
        """The best peers by a strategy with global knowledge, the best first."""
        distances, previous = dijkstra(self.matrix, directed=False, return_predecessors=True)
        if strategy == "spath":
            # An unreachable peer has the weight of the farthest reachable one plus all others.
            far = distances[np.isfinite(distances)].sum() + 1
            scores = -np.where(np.isfinite(distances), distances, far).sum(axis=1)
        else:
            scores = paths_through(distances, previous)
        return most_voted(dict(zip(self.peers, scores.tolist(), strict=True)), count)

    def spanning_parents(self, root: PeerId) -> dict[PeerId, PeerId]:
        """The parent of each peer except the root in the minimum spanning tree."""
        tree = minimum_spanning_tree(self.matrix)
        start = self.peers.index(root)
        _, previous = dijkstra(tree, directed=False, indices=start, return_predecessors=True)
        return {
            self.peers[at]: self.peers[parent]
            for at, parent in enumerate(previous.tolist())
            if parent >= 0
        }


def paths_through(
    distances: npt.NDArray[np.float64], previous: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """For each peer, the number of shortest paths between two others on which it is, in both
    directions.

    In the tree of each source, a peer's paths are those to the peers below it. All sources are
    computed at once, from the farthest peer of each inwards.
    """
    count = len(distances)
    sources = np.arange(count)
    below = np.zeros((count, count), dtype=np.int64)
    for places in np.argsort(-distances, axis=1, kind="stable").T:
        parents = previous[sources, places]
        rows = np.flatnonzero(parents >= 0)
        below[rows, parents[rows]] += below[rows, places[rows]] + 1
    np.fill_diagonal(below, 0)
    total: npt.NDArray[np.int64] = below.sum(axis=0)
    return total
