"""Routes of Pastry (Rowstron and Druschel, Middleware 2001, section 2.3).

A key inside the range of a node's leaf set goes to the numerically closest leaf. Any other key goes
to the entry that shares one digit more with it; without one, to a known node that shares as
many digits and is closer. The ring of identifiers has no ends. Of two equally close nodes, the one
below the key is taken.
"""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers, index_ranges
from topologies.overlays.key_routes import NOWHERE, KeyRoutes, Targets
from topologies.overlays.keys import common_bits, topic_keys
from topologies.overlays.overlay import Keys, Overlay
from topologies.overlays.pastry import PastrySettings
from topologies.overlays.topic_keys import KEY_BITS


class PastryRoutes(KeyRoutes):
    """Routes of an overlay whose edges are the entries of Pastry's tables.

    Of two edges of a node that fit one slot of its table, the first is its entry. The leaf set is
    made of the closest nodes on each side.
    """

    def __init__(self, overlay: Overlay) -> None:
        super().__init__(overlay)
        if overlay.ids is None:
            raise TopologyError("ids: expected one for each node of a Pastry overlay, found none")
        settings = _read_settings(overlay)
        self._b, self._ids = settings.b, overlay.ids
        self._index_peers(overlay.fingers)
        self._index_leaves(settings.leaves)
        self._index_table(overlay.fingers)

    def keys_of(self, nodes: Numbers) -> Keys:
        """The identifiers of the nodes."""
        return self._ids[nodes]

    def topic_targets(self) -> Targets:
        """The key of each topic, and the node that is numerically closest to it."""
        keys, order = topic_keys(self.overlay.topics), np.argsort(self._ids)
        after = np.searchsorted(self._ids[order], keys)
        around = order[np.stack((after - 1, after % self.overlay.nodes), axis=1)]
        return Targets(_closest(around, self._ids[around], keys), keys)

    def next_hops(self, at: Numbers, targets: Targets) -> Numbers:
        """By the leaf set, else by the table, else any known node that is closer."""
        key = targets.key
        found = np.full(len(at), NOWHERE)
        is_near = self._is_near(at, key)
        leaves = self._leaves[at[is_near]]
        found[is_near] = _closest(leaves, self._ids[leaves], key[is_near])
        far = np.flatnonzero(~is_near)
        found[far] = self._entries(at[far], key[far])
        lost = far[found[far] == NOWHERE]
        found[lost] = self._closer_peers(at[lost], key[lost])
        return np.where(found == at, NOWHERE, found)

    def _index_peers(self, fingers: Numbers) -> None:
        """Sort the known nodes of each node by clockwise distance."""
        distance = self._ids[fingers[:, 1]] - self._ids[fingers[:, 0]]
        self._peers = fingers[np.lexsort((distance, fingers[:, 0])), 1]
        self._first = np.searchsorted(np.sort(fingers[:, 0]), np.arange(self.overlay.nodes + 1))

    def _index_leaves(self, leaves: int) -> None:
        """The leaf set of each node, from the farthest below to the farthest above, and itself."""
        first, known = self._first[:-1, None], np.diff(self._first)[:, None]
        half, me = leaves // 2, np.arange(self.overlay.nodes)[:, None]
        steps = np.arange(half)
        below = np.where(steps[::-1] < known, first + known - 1 - steps[::-1], NOWHERE)
        above = np.where(steps < known, first + steps, NOWHERE)
        peers = np.append(self._peers, NOWHERE)
        sides = np.hstack((peers[below], me, peers[above]))
        self._leaves = np.where(sides == NOWHERE, me, sides).astype(np.int32)
        self._knows_all = known[:, 0] <= leaves

    def _index_table(self, fingers: Numbers) -> None:
        """The entry of each slot of each node."""
        shared = self._common_digits(self._ids[fingers[:, 0]], self._ids[fingers[:, 1]])
        self._rows = int(shared.max(initial=0)) + 1
        digit = self._digit(self._ids[fingers[:, 1]], shared)
        table = np.full(self.overlay.nodes * self._rows << self._b, NOWHERE, dtype=np.int32)
        slot = (fingers[:, 0] * self._rows + shared << self._b) + digit
        table[slot[::-1]] = fingers[::-1, 1]  # the last assignment to a slot remains
        self._table = table

    def _is_near(self, at: Numbers, key: Keys) -> NDArray[np.bool_]:
        """Whether the key is in the range of the leaf set."""
        low, high = self._ids[self._leaves[at, 0]], self._ids[self._leaves[at, -1]]
        return np.asarray(self._knows_all[at] | (key - low <= high - low))

    def _entries(self, at: Numbers, key: Keys) -> Numbers:
        shared = self._common_digits(self._ids[at], key)
        row = np.minimum(shared, self._rows - 1)
        entry = self._table[(at * self._rows + row << self._b) + self._digit(key, row)]
        return np.where(shared < self._rows, entry, NOWHERE)

    def _closer_peers(self, at: Numbers, key: Keys) -> Numbers:
        """The closest known node that shares as many digits with the key and is closer to it."""
        known = self._first[at + 1] - self._first[at]
        query = np.repeat(np.arange(len(at)), known)
        peer = self._peers[index_ranges(self._first[at], known)]
        distance = _distance(self._ids[peer], key[query])
        is_better = distance < _distance(self._ids[at], key)[query]
        shared = self._common_digits(self._ids[at], key)
        is_better &= self._common_digits(self._ids[peer], key[query]) >= shared[query]
        query, peer, distance = query[is_better], peer[is_better], distance[is_better]
        order = np.lexsort((peer, distance, query))
        some, best = np.unique(query[order], return_index=True)
        found = np.full(len(at), NOWHERE)
        found[some] = peer[order][best]
        return found

    def _common_digits(self, a: Keys, b: Keys) -> Numbers:
        return common_bits(a, b) // self._b

    def _digit(self, ids: Keys, place: Numbers) -> Numbers:
        shift = (KEY_BITS - (place + 1) * self._b).astype(np.uint64)
        return ((ids >> shift) & np.uint64((1 << self._b) - 1)).astype(np.int64)


def _read_settings(overlay: Overlay) -> PastrySettings:
    try:
        return msgspec.convert(dict(overlay.settings), PastrySettings)
    except msgspec.ValidationError as error:
        raise TopologyError(
            "settings: expected b, one of 1, 2, 4, 8, and leaves, an even number from 2 to 256; "
            f"found {dict(overlay.settings)}"
        ) from error


def _distance(a: Keys, b: Keys) -> Keys:
    return np.asarray(np.minimum(a - b, b - a))


def _closest(nodes: NDArray[np.signedinteger[Any]], ids: Keys, key: Keys) -> Numbers:
    """Of the nodes in each row, the one that is numerically closest to the key of the row."""
    above = key[:, None] - ids
    distance = np.minimum(above, ids - key[:, None])
    is_best = distance == distance.min(axis=1, keepdims=True, initial=np.iinfo(np.uint64).max)
    choice = np.argmax(is_best + (is_best & (above == distance)).astype(np.int8), axis=1)
    return np.asarray(nodes[np.arange(len(nodes)), choice], dtype=np.int64)
