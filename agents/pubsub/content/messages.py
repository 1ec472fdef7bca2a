"""The messages of the content layer: subscriptions over links of a tree, and events.

Subscriptions travel as the numbers of their boxes (`workloads.content.subscription`), some hundred
to a datagram.
"""

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from agents.wire.codec import HEADER, MAX_DATAGRAM_BYTES, U8, U32, U32_MAX, U64, message
from workloads.content.subscription import ATTRIBUTES, RANGES, ContentError, Point

_BOXES = len(RANGES) ** ATTRIBUTES
_UPDATE_BYTES = 4 + 8 + 4 + 1 + 3 * 2  # of the fields and the lengths of three sequences
_EVENT_BYTES = 4 + 8 + 4 + 2
_OFFER_BYTES = 4 + 1 + 3 * 2
NUMBERS_PER_UPDATE = (MAX_DATAGRAM_BYTES - HEADER.size - _UPDATE_BYTES) // 4
EVENTS_PER_OFFER = (MAX_DATAGRAM_BYTES - HEADER.size - _OFFER_BYTES) // (3 * 4)
MAX_PAYLOAD_BYTES = MAX_DATAGRAM_BYTES - HEADER.size - _EVENT_BYTES
MAX_HOPS = 255  # the largest in the header; longer paths have this value


@lru_cache(maxsize=1 << 14)
def point_of(number: int) -> Point:
    """The point with a number; always the same object, which caches its bits."""
    return Point(number)


@message(120, role="control")
class SubscriptionUpdate(Struct, frozen=True):
    """Changes of the subscriptions that the sender announces over a link of a version.

    An epoch begins with nothing and serial 0. The whole state has been sent when an update says
    that it is complete. `since_ms` belongs to `added`: events before that time are not wanted. It
    is omitted if all are 0.
    """

    version: U32
    epoch: U64
    serial: U32
    is_complete: bool
    added: tuple[U32, ...]
    since_ms: tuple[U32, ...]
    withdrawn: tuple[U32, ...]

    def __post_init__(self) -> None:
        """Refuse invalid subscriptions."""
        if max((0, *self.added, *self.withdrawn)) >= _BOXES:
            raise ContentError("update: expected numbers of subscriptions")
        if self.since_ms and len(self.since_ms) != len(self.added):
            raise ContentError("update: expected a time for each subscription, or none at all")


@message(121, role="control")
class StateWanted(Struct, frozen=True):
    """A request for a new epoch: the sender lacks a part of this one, or knows none (0)."""

    version: U32
    epoch: U64


@message(122, role="event")
class Event(Struct, frozen=True):
    """An event on the tree of a version; `point` is the number of its point."""

    event_id: U64
    hop_count: U8
    version: U32
    published_us: U64
    point: U32
    payload: bytes

    def __post_init__(self) -> None:
        """Refuse an invalid point."""
        point_of(self.point)


@message(123, role="control")
class Offer(Struct, frozen=True):
    """Events that the sender has (`is_here`) or was offered, and that the receiver may want.

    Each has its point and the time of its publication, so that it can be offered further.
    """

    version: U32
    is_here: bool
    events: tuple[U32, ...]
    points: tuple[U32, ...]
    published_ms: tuple[U32, ...]

    def __post_init__(self) -> None:
        """Refuse invalid points."""
        if not len(self.events) == len(self.points) == len(self.published_ms):
            raise ContentError("offer: expected a point and a time for each event")
        for number in self.points:
            point_of(number)


@message(124, role="control")
class Wanted(Struct, frozen=True):
    """Offered events that the sender does not have, and that it or another peer wants."""

    version: U32
    events: tuple[U32, ...]


def offer_of(version: int, is_here: bool, events: Sequence[Event]) -> Offer:
    """The offer of at most `EVENTS_PER_OFFER` events."""
    return Offer(
        version,
        is_here,
        tuple(event.event_id for event in events),
        tuple(event.point for event in events),
        # A peer may claim any time; that of a run ends far below.
        tuple(min(event.published_us // 1_000, U32_MAX) for event in events),
    )


MESSAGES = (SubscriptionUpdate, StateWanted, Event, Offer, Wanted)
