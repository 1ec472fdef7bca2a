"""Keys of a skip graph and their order on a ring."""

from collections.abc import Iterable

from msgspec import Struct

from agents.overlays.identifiers import common_bits, identifier_of
from agents.wire.codec import U8, U32, Peer


class Key(Struct, frozen=True, order=True):
    """A place on the rings: one for each topic and role of a peer; ordered by its fields."""

    topic: U32
    role: U8
    peer: Peer


def is_between(start: Key, key: Key, end: Key) -> bool:
    """Whether a key comes after the start and before the end, clockwise.

    From a key to itself it is once around.
    """
    if start < end:
        return start < key < end
    return key > start or key < end if start != end else key != start


def closest_before(end: Key, start: Key, keys: Iterable[Key]) -> Key:
    """The last key before the end, not before the start, which is the answer if there is no key."""
    best = start
    for key in keys:
        if is_between(best, key, end):
            best = key
    return best


def common_levels(a: Key, b: Key) -> int:
    """The last level on which two keys are on one ring."""
    return common_bits(identifier_of(a.peer), identifier_of(b.peer))
