"""Publications: rows (publisher, topic)."""

import numpy as np

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import Interests

NOBODY = -1


def draw_publications(
    interests: Interests, events: int, min_subscribers: int, rng: np.random.Generator
) -> Numbers:
    """Random publications: the topic uniform, the publisher uniform among its subscribers.

    Only topics with at least `min_subscribers` subscribers are published. A topic without
    subscribers has no publisher: it counts as a publication and causes no message.
    """
    sizes = interests.sizes
    topics = np.flatnonzero(sizes >= min_subscribers)
    if not len(topics):
        raise TopologyError(
            f"events: expected a topic with {min_subscribers} subscribers or more, found none"
        )
    topic = topics[rng.integers(0, len(topics), events)]
    row = interests.first[topic] + (rng.random(events) * sizes[topic]).astype(np.int64)
    node = np.append(interests.node, NOBODY)[np.where(sizes[topic] > 0, row, len(interests))]
    return np.column_stack((node, topic))
