"""Separate publishers and subscribers (Banno et al., J. Inf. Process. 2015, section 6).

Of the drawn pairs of a peer and a topic, some publish and the others subscribe.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.topics.interests import Wanted

Chance = np.random.Generator


class Roles(NamedTuple):
    """Subscribers and publishers of topics."""

    subscribers: Wanted
    publishers: Wanted


def part_each_topic(drawn: Wanted, topics: int, share: float, chance: Chance) -> Roles:
    """A share of the peers of each topic publishes; of two or more, at least one has each role."""
    order = np.lexsort((chance.random(len(drawn.topic)), drawn.topic))
    size = np.bincount(drawn.topic, minlength=topics)
    count = np.where(size > 1, np.clip(np.rint(share * size), 1, np.maximum(size - 1, 1)), 0)
    place = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
    is_publisher = np.zeros(len(order), dtype=bool)
    is_publisher[order] = place < np.repeat(count, size)
    return _part(drawn, is_publisher)


def part_peers(drawn: Wanted, peers: int, share: float, chance: Chance) -> Roles:
    """A share of the peers publishes to the topics that they drew, and subscribes to none."""
    apart = chance.permutation(peers)[: round(share * peers)]
    return _part(drawn, np.isin(drawn.peer, apart))


def _part(drawn: Wanted, is_publisher: NDArray[np.bool_]) -> Roles:
    others = ~is_publisher
    return Roles(
        Wanted(drawn.peer[others], drawn.topic[others]),
        Wanted(drawn.peer[is_publisher], drawn.topic[is_publisher]),
    )
