"""Topics that pairs of nodes have in common."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topologies.overlays.arrays import Numbers, index_ranges
from topologies.overlays.interests import Interests

_ENTRIES_AT_ONCE = 5_000_000  # of the product that counts common topics
_MOST_CELLS = 250_000_000  # of the table of rows by node and topic, 4 bytes each
_NO_ROW = -1


class Common(NamedTuple):
    """Common topics of pairs: the pair, and the rows of its two subscriptions."""

    pair: Numbers
    row_a: Numbers
    row_b: Numbers


class CommonRows:
    """Finds the subscriptions to the topics that two nodes have in common."""

    def __init__(self, interests: Interests) -> None:
        self._interests = interests
        self._by_node = np.argsort(interests.node, kind="stable")
        self._size = np.bincount(interests.node, minlength=interests.nodes)
        self._first = np.cumsum(self._size) - self._size
        self._row: NDArray[np.int32] | None = None
        if interests.nodes * interests.topics <= _MOST_CELLS:
            self._row = np.full(interests.nodes * interests.topics, _NO_ROW, dtype=np.int32)
            self._row[self._cell(interests.node, interests.topic)] = np.arange(len(interests))

    def find(self, a: Numbers, b: Numbers) -> Common:
        """For each pair, the rows of its common topics."""
        fewer, more = self._with_fewer_first(a, b)
        size = self._size[fewer]
        row = self._by_node[index_ranges(self._first[fewer], size)]
        pair = np.repeat(np.arange(len(a)), size)
        other = self._look_up(self._interests.topic[row], np.repeat(more, size))
        is_common = other != _NO_ROW
        return Common(pair[is_common], row[is_common], other[is_common])

    def _with_fewer_first(self, a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
        is_larger = self._size[a] > self._size[b]
        return np.where(is_larger, b, a), np.where(is_larger, a, b)

    def _look_up(self, topic: Numbers, node: Numbers) -> NDArray[np.integer]:
        if self._row is None:
            return self._interests.find_rows(topic, node)
        return self._row[self._cell(node, topic)]

    def _cell(self, node: Numbers, topic: Numbers) -> Numbers:
        return node * self._interests.topics + topic


def count_common_topics(interests: Interests) -> Iterator[tuple[Numbers, NDArray[np.integer]]]:
    """Pairs (a, b) of nodes, a < b, that have common topics, and the number of these.

    Pairs are numbers a * nodes + b, and come in several parts.
    """
    nodes, topics = interests.nodes, interests.topics
    ones = np.ones(len(interests), dtype=np.int32)
    wants = csr_array((ones, (interests.node, interests.topic)), shape=(nodes, topics))
    wanted_by = csr_array(wants.T)
    # The subscribers of a node's topics, with repeats, are an upper bound of its pairs.
    partners = np.bincount(interests.node, interests.sizes[interests.topic], minlength=nodes)
    block = (np.cumsum(np.minimum(partners, nodes)) // _ENTRIES_AT_ONCE).astype(np.int64)
    for part in np.split(np.arange(nodes), np.flatnonzero(np.diff(block)) + 1):
        product = wants[part] @ wanted_by
        a = np.repeat(part, np.diff(product.indptr))
        b = product.indices.astype(np.int64)
        is_ordered = a < b
        yield (a * nodes + b)[is_ordered], product.data[is_ordered]
