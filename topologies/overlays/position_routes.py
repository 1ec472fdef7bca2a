"""Greedy routing on a ring of positions, as Chord does (Stoica et al., SIGCOMM 2001).

A message goes to the finger that is farthest clockwise without passing the key. Only the order of
the nodes on the ring matters, so distances are counted in ranks.
"""

import numpy as np

from topologies.overlays.arrays import Numbers, index_ranges
from topologies.overlays.key_routes import NOWHERE, KeyRoutes, Targets
from topologies.overlays.keys import topic_keys
from topologies.overlays.overlay import Keys, Overlay
from topologies.overlays.topic_keys import KEY_BITS

_ZERO = np.uint64(0)


class PositionRoutes(KeyRoutes):
    """Routes of an overlay whose nodes have positions on a ring.

    The ring is full if the positions are 0 to n-1; the root of a key is then at key * n >> 64. On
    any other ring of positions of 64 bits it is the first node at or after the key. A node knows
    that its successor is a key's root, but not that another finger is: it sends a key to the last
    finger before the key, and to the root only if there is none.
    """

    def __init__(self, overlay: Overlay) -> None:
        super().__init__(overlay)
        nodes = overlay.nodes
        given = overlay.position
        self._position = np.arange(nodes, dtype=np.uint64) if given is None else given
        self._order = np.argsort(self._position)
        self._rank = np.empty(nodes, dtype=np.int64)
        self._rank[self._order] = np.arange(nodes)
        self._is_full = bool((self._position[self._order] == np.arange(nodes)).all())
        # Differences of unsigned 64-bit positions wrap around.
        self._modulus = np.uint64(nodes if self._is_full else 0)
        self._index_fingers(overlay.fingers)

    def keys_of(self, nodes: Numbers) -> Keys:
        """The positions of the nodes."""
        return self._position[nodes]

    def rank_of(self, nodes: Numbers) -> Numbers:
        """The rank of each node in the order of positions."""
        return self._rank[nodes]

    @property
    def last_position(self) -> np.uint64:
        """The highest position that the ring has: n - 1 if it is full, else 2^64 - 1."""
        return np.uint64(self.overlay.nodes - 1) if self._is_full else np.uint64(2**64 - 1)

    def distance(self, start: Keys, end: Keys) -> Keys:
        """Clockwise distances between positions."""
        return np.asarray(end - start + np.where(end < start, self._modulus, _ZERO))

    def add(self, start: Keys, distance: Keys) -> Keys:
        """The positions at clockwise distances."""
        left = self.last_position - start
        return np.asarray(start + distance - np.where(distance > left, self._modulus, _ZERO))

    def roots_of(self, keys: Keys) -> Targets:
        """The keys as targets: the root of a key is the first node at or after it."""
        rank = np.searchsorted(self._position[self._order], keys) % self.overlay.nodes
        return Targets(self._order[rank], keys)

    def fingers_of(self, nodes: Numbers) -> tuple[Numbers, Numbers]:
        """The fingers of each node in clockwise order: rows (place in `nodes`), and fingers."""
        start = nodes * self.overlay.nodes
        first = np.searchsorted(self._finger_key, start)
        sizes = np.searchsorted(self._finger_key, start + self.overlay.nodes) - first
        place = np.repeat(np.arange(len(nodes)), sizes)
        return place, self._finger[index_ranges(first, sizes)]

    def topic_targets(self) -> Targets:
        """The key and the root of each topic."""
        keys = topic_keys(self.overlay.topics)
        if self._is_full:
            nodes = self.overlay.nodes
            rank = np.array([key * nodes >> KEY_BITS for key in keys.tolist()], dtype=np.int64)
            return self.node_targets(self._order[rank])
        return self.roots_of(keys)

    def next_hops(self, at: Numbers, targets: Targets) -> Numbers:
        """The farthest finger that does not pass the key, or the root where there is none."""
        distance = (self._rank[targets.root] - self._rank[at]) % self.overlay.nodes
        is_beyond_key = self._position[targets.root] != targets.key
        found = self._last_finger(at, distance - is_beyond_key)
        if is_beyond_key.any():
            found = np.where(found == NOWHERE, self._last_finger(at, distance), found)
        return found

    def has_successors(self) -> Numbers:
        """Whether each node has a finger to the next node of the ring, as routes need it."""
        at = np.arange(self.overlay.nodes)
        return np.asarray(self._last_finger(at, np.ones_like(at)) != NOWHERE)

    def _index_fingers(self, fingers: Numbers) -> None:
        """Sort fingers by node and distance, after a dummy one."""
        nodes = self.overlay.nodes
        distance = (self._rank[fingers[:, 1]] - self._rank[fingers[:, 0]]) % nodes
        key = fingers[:, 0] * nodes + distance
        order = np.argsort(key)
        self._finger_key = np.insert(key[order], 0, -1)
        self._finger = np.insert(fingers[order, 1], 0, NOWHERE)

    def _last_finger(self, at: Numbers, distance: Numbers) -> Numbers:
        """The farthest finger up to a distance, or NOWHERE."""
        start = at * self.overlay.nodes
        place = np.searchsorted(self._finger_key, start + distance, side="right") - 1
        return np.where(self._finger_key[place] > start, self._finger[place], NOWHERE)
