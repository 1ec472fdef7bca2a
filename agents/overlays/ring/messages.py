"""The messages of rings (`ring` explains them).

All carry the epoch of the ring that they belong to; only rings that are planned again have several.
"""

from msgspec import Struct

from agents.wire.codec import U8, U32, U64, Peer, message


class Member(Struct, frozen=True):
    """A peer and its position."""

    peer: Peer
    position: U64


class Surrounding(Struct, frozen=True):
    """The position of the sender and the peers next to it in both directions, nearest first."""

    position: U64
    predecessors: tuple[Member, ...]
    successors: tuple[Member, ...]


@message(170, role="upkeep")
class Stabilise(Struct, frozen=True):
    """The sender's part of the ring; the answer to a question has the same form."""

    epoch: U32
    is_question: bool
    own: Surrounding


@message(171, role="join")
class Lookup(Struct, frozen=True):
    """Find the root of a position; the root answers the origin.

    The last hop leads from the root's predecessor to the root.
    """

    epoch: U32
    position: U64
    origin: Peer
    token: U32
    is_last: bool
    hops: U8


@message(172, role="join")
class Found(Struct, frozen=True):
    """The answer to a lookup: the sender is the root."""

    epoch: U32
    token: U32
    own: Surrounding


@message(173, role="join")
class Leaving(Struct, frozen=True):
    """The sender leaves; the receiver closes the gap with these peers."""

    epoch: U32
    own: Surrounding
