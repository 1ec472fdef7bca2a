"""Interests: which node subscribes to which topic."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers, index_ranges
from topologies.parameters import check_parameter

LARGEST_COUNT = 100_000_000  # of nodes, and of topics


@dataclass(frozen=True, slots=True, eq=False)
class Interests:
    """Subscriptions, a row for each, ordered by topic and then by node.

    The rows of topic t are those from `first[t]` up to, not including, `first[t + 1]`.
    """

    nodes: int
    topics: int
    node: Numbers
    topic: Numbers
    first: Numbers

    def __len__(self) -> int:
        """The number of subscriptions."""
        return len(self.node)

    def subscribers(self, topic: int) -> Numbers:
        """The nodes that subscribe to a topic, in ascending order."""
        return self.node[self.first[topic] : self.first[topic + 1]]

    @property
    def sizes(self) -> Numbers:
        """The number of subscribers of each topic."""
        return np.diff(self.first)

    def rows_of(self, topics: Numbers) -> Numbers:
        """The rows of some topics, topic after topic."""
        return index_ranges(self.first[topics], self.sizes[topics])

    def find_rows(self, topic: Numbers, node: Numbers) -> Numbers:
        """The row of each requested subscription, or -1 where there is none."""
        # An additional last key keeps all found places inside the array.
        keys = np.append(self.topic * self.nodes + self.node, self.topics * self.nodes)
        wanted = topic * self.nodes + node
        row = np.searchsorted(keys, wanted)
        return np.where(keys[row] == wanted, row, -1)

    def pairs(self) -> Numbers:
        """The subscriptions as rows (node, topic), ordered by node."""
        order = np.lexsort((self.topic, self.node))
        return np.column_stack((self.node[order], self.topic[order]))


def make_interests(nodes: int, topics: int | None, pairs: ArrayLike) -> Interests:
    """Interests from pairs (node, topic) in any order; a repeated pair counts once.

    Without a number of topics, there are as many as the largest topic number requires.
    """
    check_parameter("nodes", nodes, f"1 to {LARGEST_COUNT:,}", 1 <= nodes <= LARGEST_COUNT)
    table = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if topics is None:
        topics = max(0, int(table[:, 1].max())) + 1 if len(table) else 0
    check_parameter("topics", topics, f"0 to {LARGEST_COUNT:,}", 0 <= topics <= LARGEST_COUNT)
    check_range("interests", "node", table[:, 0], nodes)
    check_range("interests", "topic", table[:, 1], topics)
    keys = np.unique(table[:, 1] * nodes + table[:, 0])
    topic, node = np.divmod(keys, nodes)
    first = np.searchsorted(topic, np.arange(topics + 1))
    return Interests(nodes, topics, node, topic, first)


def check_range(where: str, what: str, numbers: NDArray[Any], end: int) -> None:
    """Raise unless all numbers are at least 0 and below `end`; the first other one is named."""
    bad = np.flatnonzero((numbers < 0) | (numbers >= end))
    if len(bad):
        expected = f"0 to {end - 1}" if end else "none, as there are 0"
        raise TopologyError(
            f"{where}[{bad[0]}]: expected a {what} number, {expected}; found {numbers[bad[0]]}"
        )
