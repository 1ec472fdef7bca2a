"""The links of one peer in the shortest-path trees of all peers.

Peers that know the same links compute the same trees: of equal parents the lowest address counts.
"""

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import NDArray

from agents.protocol import PeerId

_FAR_US = 1 << 60  # no path; twice the value still fits
_Matrix = NDArray[np.int64]


def links_in_trees(
    me: PeerId, peers: Collection[PeerId], edges: Mapping[tuple[PeerId, PeerId], int]
) -> dict[PeerId, tuple[PeerId, ...]]:
    """The links of a peer in the shortest-path tree of each peer: its parent and its children.

    The tree of an unreachable peer is that of the lowest reachable address, because events of that
    peer may still be in transit.
    """
    order = sorted({*peers, me})
    index = {peer: at for at, peer in enumerate(order)}
    weights = _weights(index, edges)
    distances = _all_distances(weights)
    here = index[me]
    near = np.flatnonzero(weights[here] < _FAR_US).tolist()
    parent_of_me = _parents(weights, distances, here)
    links = np.zeros((len(order), len(order)), dtype=bool)
    for at in near:
        is_child = _parents(weights, distances, at) == here
        links[:, at] = is_child | (parent_of_me == at)
    is_reached = distances[here] < _FAR_US
    links[~is_reached] = links[int(is_reached.argmax())]
    return {
        root: tuple(order[at] for at in np.flatnonzero(row).tolist())
        for root, row in zip(order, links, strict=True)
    }


def _weights(index: Mapping[PeerId, int], edges: Mapping[tuple[PeerId, PeerId], int]) -> _Matrix:
    weights = np.full((len(index), len(index)), _FAR_US, dtype=np.int64)
    for (a, b), weight_us in edges.items():
        weights[index[a], index[b]] = weights[index[b], index[a]] = weight_us
    return weights


def _all_distances(weights: _Matrix) -> _Matrix:
    """The algorithm of Floyd and Warshall, one peer at a time."""
    distances = weights.copy()
    np.fill_diagonal(distances, 0)
    for via in range(len(distances)):
        np.minimum(distances, distances[:, via, None] + distances[via], out=distances)
    return distances


def _parents(weights: _Matrix, distances: _Matrix, at: int) -> NDArray[np.int64]:
    """The parent of one peer in the tree of each, or -1: the first of those on a shortest path."""
    near = np.flatnonzero(weights[at] < _FAR_US)
    if not len(near):
        return np.full(len(weights), -1, dtype=np.int64)
    is_on_path = distances[:, near] + weights[near, at] == distances[:, at, None]
    is_on_path &= distances[:, at, None] < _FAR_US
    is_on_path[at] = False
    return np.where(is_on_path.any(axis=1), near[is_on_path.argmax(axis=1)], -1)
