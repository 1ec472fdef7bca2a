"""Random interests: every node takes different topics, drawn one after another without replacement.

Popularity is uniform, Zipf (p proportional to rank^-2) or exponential (p proportional to
exp(-rank / (topics / 10))), with the rank of topic t counted from 1 (Chen and Tock, 2015).
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import Interests, make_interests
from topologies.parameters import check_parameter

Popularity = Literal["uniform", "zipf", "exponential"]

_ZIPF_EXPONENT = 2.0
_EXPONENTIAL_SHARE = 0.1  # of the topics, over which popularity falls by a factor of e
_CELLS_AT_ONCE = 4_000_000


def draw_interests(
    nodes: int,
    topics: int,
    topics_per_node: tuple[int, int],
    popularity: Popularity,
    rng: np.random.Generator,
) -> Interests:
    """Interests of nodes with a number of topics each that is uniform in a range."""
    low, high = topics_per_node
    check_parameter("nodes", nodes, "1 or more", nodes >= 1)
    check_parameter("topics per node", low, f"0 to {high}", 0 <= low <= high)
    check_parameter("topics per node", high, f"at most {topics}, the topics", high <= topics)
    weights = topic_weights(topics, popularity)
    counts = rng.integers(low, high, nodes, endpoint=True)
    step = max(1, _CELLS_AT_ONCE // max(topics, 1))
    drawn = [
        _draw_topics(weights, counts[start : start + step], high, rng)
        for start in range(0, nodes, step)
    ]
    node = np.repeat(np.arange(nodes), counts)
    return make_interests(nodes, topics, np.column_stack((node, np.concatenate(drawn))))


def topic_weights(topics: int, popularity: Popularity) -> NDArray[np.float64]:
    """The popularity of each topic, up to a constant factor."""
    rank = np.arange(1, topics + 1)
    if popularity == "zipf":
        return np.asarray(rank**-_ZIPF_EXPONENT)
    if popularity == "exponential":
        return np.exp(-rank / (topics * _EXPONENTIAL_SHARE))
    return np.ones(topics)


def _draw_topics(
    weights: NDArray[np.float64], counts: Numbers, most: int, rng: np.random.Generator
) -> Numbers:
    """The topics of some nodes, node after node."""
    # The first of independent exponential times with these rates are draws without replacement.
    times = rng.standard_exponential((len(counts), len(weights))) / weights
    if most < len(weights):
        early = np.argpartition(times, most, axis=1)[:, :most]
    else:
        early = np.broadcast_to(np.arange(most), (len(counts), most))
    order = np.argsort(np.take_along_axis(times, early, axis=1), axis=1)
    ordered = np.take_along_axis(early, order, axis=1)
    return np.asarray(ordered[np.arange(most) < counts[:, None]])
