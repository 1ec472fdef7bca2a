"""Random interests of peers in topics: the same in runs and in offline computations.

Each peer draws topics one after another without replacement, by their popularity. The vectorised
computation has the same distribution: every topic arrives after an exponential time with the rate
p(t), and the first arrivals are the topics of the peer. Its time is linear in peers times topics.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.chance import make_generator
from workloads.errors import WorkloadError
from workloads.number_range import WholeRange
from workloads.topics.popularity import Popularity
from workloads.workload import Numbers

_CELLS_AT_ONCE = 2_000_000  # 16 MB of arrival times; the result does not depend on it


class Wanted(NamedTuple):
    """Pairs of a peer and a topic of its interest, ordered by peers and then by topics."""

    peer: Numbers
    topic: Numbers


def draw_interests(
    nodes: int,
    topics: int,
    topics_per_node: WholeRange | int,
    popularity: Popularity,
    seed: int | str,
) -> Wanted:
    """The topics of each node; in a range, all numbers of topics are equally likely.

    The first nodes have the same interests for every number of nodes.
    """
    low, high = (topics_per_node,) * 2 if isinstance(topics_per_node, int) else topics_per_node
    if not 0 <= low <= high <= topics:
        raise WorkloadError(
            f"topics_per_peer: expected 0 to {topics}, as there are {topics} topics; found "
            f"{low if low == high else f'{low}..{high}'}"
        )
    sizes = make_generator(seed, "topics per peer").integers(low, high, nodes, endpoint=True)
    if not high:
        return Wanted(np.zeros(0, np.int64), np.zeros(0, np.int64))
    first = _first_arrivals(nodes, popularity.chances(topics), high, seed)
    topic = np.concatenate(list(first)) if nodes else np.zeros((0, high), np.int64)
    peer = np.repeat(np.arange(nodes), sizes)
    return sort_wanted(peer, topic[np.arange(high) < sizes[:, np.newaxis]])


def sort_wanted(peer: Numbers, topic: Numbers) -> Wanted:
    """Pairs in the order of peers and then of topics."""
    order = np.lexsort((topic, peer))
    return Wanted(peer[order], topic[order])


def deal_equally(nodes: int, topics: int, seed: int | str) -> Wanted:
    """One topic for each node; numbers of nodes of topics differ by at most 1."""
    topic = np.arange(nodes, dtype=np.int64) % topics
    return Wanted(np.arange(nodes), make_generator(seed, "interests").permutation(topic))


def _first_arrivals(
    nodes: int, chances: NDArray[np.float64], count: int, seed: int | str
) -> Iterator[Numbers]:
    """The first topics to arrive at some nodes: a row for each node, in the order of arrival."""
    chance, mean_times = make_generator(seed, "interests"), 1 / chances
    rows = max(1, _CELLS_AT_ONCE // len(chances))
    for start in range(0, nodes, rows):
        times = chance.standard_exponential((min(rows, nodes - start), len(chances)))
        times *= mean_times
        first = np.argpartition(times, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(times, first, axis=1), axis=1)
        yield np.take_along_axis(first, order, axis=1)
