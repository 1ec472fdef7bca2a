"""The messages of iScribe: subscriptions, branches, and events for single subscribers."""

from msgspec import Struct

from agents.wire.codec import U8, U16, U32, U64, Peer, message


@message(169, role="control")
class Subscribe(Struct, frozen=True):
    """A peer subscribes or unsubscribes; routed to the rendezvous point.

    It has these events already. `is_proxy`: another peer sends this and does not know its events.
    """

    topic: U32
    subscriber: Peer
    position: U64
    version: U64
    wants_ms: U32
    is_wanted: bool
    is_proxy: bool
    hops: U8
    piece: U16
    pieces: U16
    has: tuple[U64, ...]

    def __post_init__(self) -> None:
        """Refuse a piece that is none of its list."""
        if self.piece >= self.pieces:
            raise ValueError(f"piece: expected less than {self.pieces}, found {self.piece}")


@message(185, role="control")
class Graft(Struct, frozen=True):
    """A branch to a subscriber passes the receiver, or no longer does."""

    topic: U32
    subscriber: Peer
    position: U64
    version: U64
    root: Peer
    is_wanted: bool


@message(186, role="event")
class Direct(Struct, frozen=True):
    """An event for one subscriber that lacks it."""

    event_id: U64
    hop_count: U8
    topic: U32
    token: U32
    hops: U16
    age_ms: U32
    subscriber: Peer
    position: U64
    payload: bytes
