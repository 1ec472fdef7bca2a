"""Greedy choice of pairs of nodes by contribution (Chen and Tock, Middleware Industry 2015).

The contribution of a pair to a set of edges is the number of topics of both whose subscribers the
pair would connect: for each topic, both are in different components of the graph that the edges
induce among its subscribers. Greedy algorithms repeatedly take the pair with the largest
contribution of those that their constraints admit.

Contributions only fall as edges are added. So a contribution that was computed earlier is an upper
bound, and pairs wait in buckets by that bound. Only pairs of the highest bucket are computed again;
those whose contribution fell move to the bucket of their new value. Each bucket is in random order,
which breaks ties at random.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from topologies.overlays.arrays import Numbers
from topologies.overlays.common_topics import Common, CommonRows, count_common_topics
from topologies.overlays.interests import Interests

_PAIRS_AT_ONCE = 20_000


class Constraints(Protocol):
    """The pairs that may be taken; a pair that is not admitted once is never admitted again."""

    def are_open(self, a: Numbers, b: Numbers) -> NDArray[np.bool_]:
        """Whether each pair may be taken."""

    def take(self, a: int, b: int) -> bool:
        """Take a pair if it is admitted; returns whether it was taken."""


class TopicComponents:
    """The components of each topic's subscribers, as edges between nodes are added."""

    def __init__(self, interests: Interests) -> None:
        self._topic = interests.topic
        self._rows = CommonRows(interests)
        self._label = np.arange(len(interests))
        self._one_label = self._label.data  # reads and writes of single labels are faster
        self._members = [[row] for row in range(len(interests))]

    def gains(self, a: Numbers, b: Numbers) -> Common:
        """The number of topics to which each pair contributes."""
        pair, row_a, row_b = self._rows.find(a, b)
        differ = self._label[row_a] != self._label[row_b]
        return Common(pair[differ], row_a[differ], row_b[differ])

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


class PairBuckets:
    """Pairs (a, b) with a < b as numbers a * nodes + b, by an upper bound of their contribution."""

    def __init__(self, nodes: int) -> None:
        self._nodes = nodes
        self._waiting: dict[int, list[Numbers]] = defaultdict(list)

    @classmethod
    def of(cls, interests: Interests) -> "PairBuckets":
        """All pairs of nodes with common topics, by the number of these."""
        found = cls(interests.nodes)
        for pairs, common in count_common_topics(interests):
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

    `components` has the existing edges; those that are taken are added to it.
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
        """Yield each pair when it is taken."""
        while True:
            bound, pairs = self._buckets.pop_highest(self._rng)
            if not bound:
                return
            for start in range(0, len(pairs), _PAIRS_AT_ONCE):
                yield from self._take_some(bound, pairs[start : start + _PAIRS_AT_ONCE])

    def _take_some(self, bound: int, pairs: Numbers) -> Iterator[tuple[int, int]]:
        """Take the pairs that contribute `bound`; keep those that contribute less."""
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
