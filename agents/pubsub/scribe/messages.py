"""The messages of Scribe and iScribe, and events as peers keep them.

An event has two hop counts, because that of the header ends at 255. Its age counts the time for
which it was kept by peers, not the time on links, so clocks need not agree.
"""

from typing import NamedTuple, TypeVar

from msgspec import Struct

from agents.wire.codec import U8, U16, U32, U32_MAX, U64, Peer, message

IDS = 150  # most numbers of events in one message
_MOST_HOPS, _MOST_HEADER_HOPS = 0xFFFF, 0xFF


@message(163, role="event")
class Upward(Struct, frozen=True):
    """An event to the rendezvous point of its topic."""

    event_id: U64
    hop_count: U8
    topic: U32
    token: U32
    hops: U16
    age_ms: U32
    payload: bytes


@message(164, role="event")
class Downward(Struct, frozen=True):
    """An event down the tree of its topic."""

    event_id: U64
    hop_count: U8
    topic: U32
    token: U32
    hops: U16
    age_ms: U32
    payload: bytes


@message(165, role="control")
class Join(Struct, frozen=True):
    """The sender is a child of the receiver, and lacks all recent events except these.

    A list of events comes in pieces of one version, each with its number.
    """

    topic: U32
    version: U64
    wants_ms: U32
    piece: U16
    pieces: U16
    has: tuple[U64, ...]

    def __post_init__(self) -> None:
        """Refuse a piece number outside of its list."""
        if self.piece >= self.pieces:
            raise ValueError(f"piece: expected less than {self.pieces}, found {self.piece}")


@message(166, role="control")
class Leave(Struct, frozen=True):
    """The sender is no longer a child of the receiver."""

    topic: U32
    version: U64


@message(167, role="control")
class Confirm(Struct, frozen=True):
    """To the rendezvous point: a question which of these events of `origin` it has."""

    topic: U32
    origin: Peer
    hops: U8
    events: tuple[U64, ...]


@message(168, role="control")
class AtRoot(Struct, frozen=True):
    """From the rendezvous point of a topic: events that it has, and events that it requests."""

    topic: U32
    present: tuple[U64, ...]
    missing: tuple[U64, ...]


class TopicEvent(NamedTuple):
    """An event, its overlay hops to this peer, and the time of its publication.

    The time is by this peer's clock; it is late by the time that the event was on links.
    """

    event_id: int
    topic: int
    payload: bytes
    hops: int
    published_us: int


_Kind = TypeVar("_Kind", Upward, Downward)


def write_event(kind: type[_Kind], now_us: int, event: TopicEvent) -> _Kind:
    """A message with an event; custody sets its token."""
    age_ms = min((now_us - event.published_us) // 1000, U32_MAX)
    header_hops, hops = min(event.hops, _MOST_HEADER_HOPS), min(event.hops, _MOST_HOPS)
    return kind(event.event_id, header_hops, event.topic, 0, hops, age_ms, event.payload)


def read_event(now_us: int, message: Upward | Downward) -> TopicEvent:
    """The event of a message, one hop later."""
    published_us = now_us - message.age_ms * 1000
    return TopicEvent(
        message.event_id, message.topic, message.payload, message.hops + 1, published_us
    )
