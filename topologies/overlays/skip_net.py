"""SkipNet's numeric identifiers on a skip graph (Harvey et al., USITS 2003), base 2.

Every node has a random membership vector of 64 bits, its numeric identifier. On level i the nodes
whose vectors agree in the first i bits form a ring in the order of their positions; a node has
levels up to the last on which another node is in its ring.
"""

import numpy as np
from numpy.typing import NDArray

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import Interests
from topologies.overlays.key_routes import NOWHERE, KeyRoutes, Targets
from topologies.overlays.keys import common_bits, draw_ids, topic_keys
from topologies.overlays.offline_overlay import NoSettings, OfflineOverlay
from topologies.overlays.overlay import Keys, Overlay, distinct_edges
from topologies.overlays.topic_keys import KEY_BITS


class SkipNet(OfflineOverlay):
    """Rings of a skip graph, routed by numeric identifier, base 2."""

    @classmethod
    def make(cls, interests: Interests, settings: NoSettings, rng: np.random.Generator) -> Overlay:
        """The overlay with the neighbours of all levels as edges."""
        del settings
        ids = draw_ids(rng, interests.nodes)
        edges = np.concatenate(level_rings(ids))
        edges = distinct_edges(edges, interests.nodes, directed=False)
        return Overlay(interests, edges, ids=ids)


def level_rings(ids: Keys) -> list[Numbers]:
    """For each level, rows (node, right neighbour) of the nodes whose ring has another node."""
    nodes, levels = np.arange(len(ids)), [np.empty((0, 2), dtype=np.int64)]
    for level in range(KEY_BITS):
        prefix = ids[nodes] >> np.uint64(KEY_BITS - level) if level else np.zeros(len(nodes))
        pairs = _ring_pairs(nodes, prefix)
        if not len(pairs):
            break
        levels.append(pairs)
        nodes = np.sort(pairs[:, 0])
    return levels


def _ring_pairs(nodes: Numbers, prefix: NDArray[np.generic]) -> Numbers:
    """Rows (node, next node with the same prefix); the last of a ring goes to its first."""
    order = np.argsort(prefix, kind="stable")
    nodes, prefix = nodes[order], prefix[order]
    starts = np.flatnonzero(np.append(True, prefix[1:] != prefix[:-1]))
    following = np.roll(nodes, -1)
    following[np.append(starts[1:], len(nodes)) - 1] = nodes[starts]
    pairs = np.column_stack((nodes, following))
    return np.asarray(pairs[nodes != following])


class SkipNetRoutes(KeyRoutes):
    """Routes by numeric identifier: right along the ring of as many bits as agree with the key.

    The right neighbour on level i is the next neighbour clockwise whose vector agrees in i bits.
    The root of a key is the node that agrees with it in most bits, and of several the closest. All
    routes to a key end on the ring of those nodes, and go right until they meet the root.
    """

    def __init__(self, overlay: Overlay) -> None:
        super().__init__(overlay)
        if overlay.ids is None:
            raise TopologyError("ids: expected one for each node of a skip-net overlay, found none")
        self._ids = overlay.ids
        self._right = self._index_levels(overlay.fingers)

    def keys_of(self, nodes: Numbers) -> Keys:
        """The membership vectors of the nodes."""
        return self._ids[nodes]

    def topic_targets(self) -> Targets:
        """The key of each topic and its root."""
        keys, order = topic_keys(self.overlay.topics), np.argsort(self._ids)
        after = np.searchsorted(self._ids[order], keys)
        # Those that agree in most bits are on one side of the key: the next bit decides which.
        below, above = order[np.maximum(after - 1, 0)], order[np.minimum(after, len(order) - 1)]
        is_above = common_bits(self._ids[above], keys) > common_bits(self._ids[below], keys)
        return Targets(np.where(is_above, above, below), keys)

    def next_hops(self, at: Numbers, targets: Targets) -> Numbers:
        """The right neighbour on the level of the bits that agree with the key."""
        level = common_bits(self._ids[at], targets.key)
        top = self._right.shape[1] - 1
        return np.asarray(self._right[at, np.minimum(level, top)], dtype=np.int64)

    def _index_levels(self, fingers: Numbers) -> NDArray[np.int32]:
        """The right neighbour of each node on each level; the last level has none."""
        start, end = fingers[:, 0], fingers[:, 1]
        shared = common_bits(self._ids[start], self._ids[end])
        order = np.lexsort((self._distance(start, end), start))
        start, end, shared = start[order], end[order], shared[order]
        levels = int(shared.max(initial=-1)) + 1
        right = np.full((self.overlay.nodes, levels + 1), NOWHERE, dtype=np.int32)
        for level in range(levels):
            is_on = shared >= level
            start, end, shared = start[is_on], end[is_on], shared[is_on]
            is_first = np.append(True, start[1:] != start[:-1])
            right[start[is_first], level] = end[is_first]
        return right

    def _distance(self, start: Numbers, end: Numbers) -> Numbers:
        """Clockwise distances in the order of positions."""
        place = self.overlay.position
        if place is None:
            return (end - start) % self.overlay.nodes
        rank = np.argsort(np.argsort(place))
        return np.asarray((rank[end] - rank[start]) % self.overlay.nodes)
