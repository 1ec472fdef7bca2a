"""Greedy choice of pairs of nodes by contribution (Chen and Tock, Middleware Industry 2015).

The contribution of a pair to a set of edges is the number of topics of both whose subscribers the
pair would connect: for each topic, both are in different components of the graph that the edges
induce among its subscribers. Greedy algorithms take the pair with the largest contribution, again
and again, of those pairs that their constraints still admit.

Contributions only fall as edges are added. So a contribution that was computed earlier is an upper
bound, and pairs wait in buckets by that bound. Only pairs of the highest bucket are computed again;
those whose contribution fell move to the bucket of their new value. Each bucket is in random order,
which breaks ties at random.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from topologies.overlays.arrays import Numbers, index_ranges
from topologies.overlays.interests import Interests

_PAIRS_AT_ONCE = 20_000
_ENTRIES_AT_ONCE = 5_000_000  # of the product that counts common topics
_MOST_CELLS = 500_000_000  # of the table of rows by node and topic, 4 bytes each
_NO_ROW = -1


class Constraints(Protocol):
    """Which pairs may still be taken; a pair that may not is never admitted again."""

    def are_open(self, a: Numbers, b: Numbers) -> NDArray[np.bool_]:
        """Whether each pair may be taken."""

    def take(self, a: int, b: int) -> bool:
        """Take a pair if it may be taken; returns whether it was."""


class Gains(NamedTuple):
    """The topics that pairs would connect: the pair, and the rows of its subscriptions."""

    pair: Numbers
    row_a: Numbers
    row_b: Numbers


class TopicComponents:
    """The components of each topic's subscribers, as edges between nodes are added."""

    def __init__(self, interests: Interests) -> None:
        self._topic = interests.topic
        self._rows = CommonRows(interests)
        self._label = np.arange(len(interests))
        self._one_label = self._label.data  # reads and writes single labels faster
        self._members = [[row] for row in range(len(interests))]

    def gains(self, a: Numbers, b: Numbers) -> Gains:
        """The topics in which these pairs contribute."""
        pair, row_a, row_b = self._rows.find(a, b)
        differ = self._label[row_a] != self._label[row_b]
        return Gains(pair[differ], row_a[differ], row_b[differ])

    def is_apart(self, row_a: int, row_b: int) -> bool:
        """Whether two subscriptions to a topic are in different components."""
        return self._one_label[row_a] != self._one_label[row_b]

    def join(self, row_a: int, row_b: int) -> None:
        """Connect two subscriptions to a topic."""
        kept, other = self._one_label[row_a], self._one_label[row_b]
        if kept == other:
            return
        if len(self._members[kept]) < len(self._members[other]):
            kept, other = other, kept
        for row in self._members[other]:
            self._one_label[row] = kept
        self._members[kept] += self._members[other]
        self._members[other] = []

    def add_edges(self, a: Numbers, b: Numbers) -> None:
        """Connect the common topics of pairs."""
        _, row_a, row_b = self.gains(a, b)
        for one, other in zip(row_a.tolist(), row_b.tolist(), strict=True):
            self.join(one, other)


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

    def find(self, a: Numbers, b: Numbers) -> Gains:
        """For each pair, the rows of its common topics."""
        fewer, more = self._with_fewer_first(a, b)
        size = self._size[fewer]
        row = self._by_node[index_ranges(self._first[fewer], size)]
        pair = np.repeat(np.arange(len(a)), size)
        other = self._look_up(self._interests.topic[row], np.repeat(more, size))
        is_common = other != _NO_ROW
        return Gains(pair[is_common], row[is_common], other[is_common])

    def _with_fewer_first(self, a: Numbers, b: Numbers) -> tuple[Numbers, Numbers]:
        is_larger = self._size[a] > self._size[b]
        return np.where(is_larger, b, a), np.where(is_larger, a, b)

    def _look_up(self, topic: Numbers, node: Numbers) -> NDArray[np.integer]:
        if self._row is None:
            return self._interests.find_rows(topic, node)
        return self._row[self._cell(node, topic)]

    def _cell(self, node: Numbers, topic: Numbers) -> Numbers:
        return node * self._interests.topics + topic


class PairBuckets:
    """Pairs (a, b) with a < b as numbers a * nodes + b, by an upper bound of their contribution."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._waiting: dict[int, list[Numbers]] = defaultdict(list)

    @classmethod
    def of(cls, interests: Interests) -> "PairBuckets":
        """All pairs of nodes with common topics, by the number of these."""
        found = cls(interests.nodes)
        for pairs, common in _count_common_topics(interests):
            found.put(pairs, common)
        return found

    def put(self, pairs: Numbers, bounds: NDArray[np.integer]) -> None:
        """Add pairs; those with the bound 0 are left out."""
        order = np.argsort(bounds, kind="stable")
        ends = np.cumsum(np.bincount(bounds))
        for value, (start, end) in enumerate(pairwise(ends.tolist()), start=1):
            if start < end:
                self._waiting[value].append(pairs[order[start:end]])

    def pop_highest(self, rng: np.random.Generator) -> tuple[int, Numbers]:
        """The highest bound, and its pairs in random order; the bound 0 if none are left."""
        if not self._waiting:
            return 0, np.zeros(0, dtype=np.int64)
        bound = max(self._waiting)
        pairs = np.concatenate(self._waiting.pop(bound))
        rng.shuffle(pairs)
        return bound, pairs


def choose_pairs(
    interests: Interests,
    constraints: Constraints,
    components: TopicComponents,
    rng: np.random.Generator,
) -> Numbers:
    """Take pairs by largest contribution until none contributes; returns rows (a, b) in order.

    `components` has the edges that are there, and gets those that are taken.
    """
    choice = _Choice(interests, constraints, components, rng)
    return np.array(list(choice.taken()), dtype=np.int64).reshape(-1, 2)


class _Choice:
    """The state of a greedy choice."""

    def __init__(
        self,
        interests: Interests,
        constraints: Constraints,
        components: TopicComponents,
        rng: np.random.Generator,
    ) -> None:
        self._nodes = interests.nodes
        self._constraints = constraints
        self._components = components
        self._buckets = PairBuckets.of(interests)
        self._rng = rng

    def taken(self) -> Iterator[tuple[int, int]]:
        """Each pair when it is taken."""
        while True:
            bound, pairs = self._buckets.pop_highest(self._rng)
            if not bound:
                return
            for start in range(0, len(pairs), _PAIRS_AT_ONCE):
                yield from self._take_some(bound, pairs[start : start + _PAIRS_AT_ONCE])

    def _take_some(self, bound: int, pairs: Numbers) -> Iterator[tuple[int, int]]:
        """Take those of some pairs that contribute `bound`; keep those that contribute less."""
        a, b = np.divmod(pairs, self._nodes)
        is_open = self._constraints.are_open(a, b)
        pairs, a, b = pairs[is_open], a[is_open], b[is_open]
        gains = self._components.gains(a, b)
        contribution = np.bincount(gains.pair, minlength=len(pairs))
        is_full = contribution == bound
        # Pairs that contribute fully have `bound` entries each, one pair's after another's.
        entries = is_full[gains.pair]
        rows = np.column_stack((gains.row_a[entries], gains.row_b[entries]))
        for place, one, other, joined in zip(
            np.flatnonzero(is_full).tolist(),
            a[is_full].tolist(),
            b[is_full].tolist(),
            rows.reshape(-1, bound, 2).tolist(),
            strict=True,
        ):
            contribution[place] = sum(self._components.is_apart(*pair) for pair in joined)
            if contribution[place] == bound and self._constraints.take(one, other):
                for pair in joined:
                    self._components.join(*pair)
                yield one, other
        has_fallen = contribution < bound
        self._buckets.put(pairs[has_fallen], contribution[has_fallen])


def _count_common_topics(interests: Interests) -> Iterator[tuple[Numbers, NDArray[np.integer]]]:
    """Pairs with common topics, and how many these are, for some nodes after others."""
    nodes, topics = interests.nodes, interests.topics
    ones = np.ones(len(interests), dtype=np.int32)
    wants = csr_array((ones, (interests.node, interests.topic)), shape=(nodes, topics))
    wanted_by = csr_array(wants.T)
    # The subscribers of a node's topics, repeated, are an upper bound of its partners.
    partners = np.bincount(interests.node, interests.sizes[interests.topic], minlength=nodes)
    block = (np.cumsum(np.minimum(partners, nodes)) // _ENTRIES_AT_ONCE).astype(np.int64)
    for part in np.split(np.arange(nodes), np.flatnonzero(np.diff(block)) + 1):
        product = wants[part] @ wanted_by
        a = np.repeat(part, np.diff(product.indptr))
        b = product.indices.astype(np.int64)
        is_ordered = a < b
        yield (a * nodes + b)[is_ordered], product.data[is_ordered]
