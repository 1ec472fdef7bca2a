"""The messages of Pastry (`pastry` says what it is).

Peers are named by their addresses, from which their identifiers follow. Whoever is told of a peer
measures the delay to it before it becomes an entry, so no message can enter a peer that is dead.
"""

from msgspec import Struct

from agents.wire.codec import U8, Peer, message


@message(190, role="join")
class Join(Struct, frozen=True):
    """On its way to the peer next to a new one, which has heard of all rows below this one."""

    joiner: Peer
    row: U8
    hops: U8


@message(191, role="join")
class Candidates(Struct, frozen=True):
    """Peers that the receiver may want in its tables, the sender among them."""

    peers: tuple[Peer, ...]


@message(192, role="upkeep")
class LeafSet(Struct, frozen=True):
    """The leaf set of the sender; who knows of a better one for it answers with its own."""

    peers: tuple[Peer, ...]


@message(193, role="upkeep")
class AskRow(Struct, frozen=True):
    """Please send the entries of a row of your table; the answer is `Candidates`."""

    row: U8


@message(194, role="join")
class Departure(Struct, frozen=True):
    """Its sender leaves; these were its leaves."""

    leaves: tuple[Peer, ...]
