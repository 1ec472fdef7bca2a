"""The messages of NSMF and BeaConvey (`forwarder` and `feed` explain them).

All carry the epoch of the ring whose positions they use.
"""

from msgspec import Struct

from agents.wire.codec import U8, U16, U32, U64, Peer, message


@message(210, role="event")
class RangeEvent(Struct, frozen=True):
    """An event for the subscribers from position `low` to `low + rest`.

    `hops` counts its links, as the header's `hop_count` does up to 255.
    """

    event_id: U64
    hop_count: U8
    hops: U16
    epoch: U32
    topic: U32
    low: U64
    rest: U64
    token: U32
    payload: bytes


class Nearest(Struct, frozen=True):
    """The nearest subscriber of a topic at or after a peer, clockwise."""

    topic: U32
    peer: Peer
    position: U64


@message(211, role="upkeep")
class Follow(Struct, frozen=True):
    """The sender reads the receiver's interests or table, and has this number of pieces."""

    epoch: U32
    session: U32
    pieces: U32
    wants_table: bool


@message(212, role="control")
class TablePiece(Struct, frozen=True):
    """Changes of a table of nearest subscribers; `gone` are topics without one.

    The table is correct for the positions from its owner's to `covers` after it, if that is known.
    """

    epoch: U32
    session: U32
    number: U32
    is_last: bool
    covers: U64 | None
    nearest: tuple[Nearest, ...]
    gone: tuple[U32, ...]


@message(213, role="control")
class InterestPiece(Struct, frozen=True):
    """Changes of the sender's interests."""

    epoch: U32
    session: U32
    number: U32
    is_last: bool
    topics: tuple[U32, ...]
    gone: tuple[U32, ...]


@message(214, role="control")
class Lapsed(Struct, frozen=True):
    """The sender, which is the reader or the peer that is read, has no state of a session."""

    epoch: U32
    session: U32
    by_reader: bool
