"""Keys of topics, and digits of 64-bit identifiers."""

import numpy as np

from topologies.overlays.arrays import Numbers
from topologies.overlays.overlay import Keys
from topologies.overlays.topic_keys import KEY_BITS, topic_key

_HALF = np.uint64(32)


def topic_keys(topics: int) -> Keys:
    """The keys of topics 0, 1, ..."""
    return np.array([topic_key(topic) for topic in range(topics)], dtype=np.uint64)


def common_bits(a: Keys, b: Keys) -> Numbers:
    """The number of leading bits in which two identifiers agree, at most 64."""
    different = a ^ b
    # Halves are exact as floating-point numbers, whose exponents are the lengths wanted.
    high = np.frexp((different >> _HALF).astype(np.float64))[1]
    low = np.frexp((different & np.uint64(0xFFFFFFFF)).astype(np.float64))[1]
    return KEY_BITS - np.where(high > 0, high + 32, low).astype(np.int64)


def draw_ids(rng: np.random.Generator, nodes: int) -> Keys:
    """Different random 64-bit identifiers."""
    ids = np.empty(0, dtype=np.uint64)
    while len(ids) < nodes:
        more = rng.integers(0, 1 << KEY_BITS, nodes - len(ids), dtype=np.uint64, endpoint=False)
        ids = np.concatenate((ids, more))
        ids = ids[np.sort(np.unique(ids, return_index=True)[1])]
    return ids
