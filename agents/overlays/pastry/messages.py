"""The messages of Pastry (see `pastry`).

Peers are named by their addresses, from which their identifiers follow. A peer that learns of
another measures the delay to it before it becomes an entry, so no message can make a dead peer an
entry.
"""

from msgspec import Struct

from agents.wire.codec import U8, Peer, message


@message(190, role="join")
class Join(Struct, frozen=True):
    """Routed to the peer next to a new one, which has received all rows below this one."""

    joiner: Peer
    row: U8
    hops: U8


@message(191, role="join")
class Candidates(Struct, frozen=True):
    """Peers that may fit the receiver's tables, the sender among them."""

    peers: tuple[Peer, ...]


@message(192, role="upkeep")
class LeafSet(Struct, frozen=True):
    """The leaf set of the sender; a receiver with a better one answers with its own."""

    peers: tuple[Peer, ...]


@message(193, role="upkeep")
class AskRow(Struct, frozen=True):
    """A request for the entries of a row of the receiver's table; the answer is `Candidates`."""

    row: U8


@message(194, role="join")
class Departure(Struct, frozen=True):
    """The sender leaves; these were its leaves."""

    leaves: tuple[Peer, ...]
