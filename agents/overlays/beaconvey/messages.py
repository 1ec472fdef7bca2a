"""The messages between a master and the other peers of BeaConvey's overlay."""

from msgspec import Struct

from agents.overlays.ring.messages import Member
from agents.wire.codec import U8, U16, U32, U64, Peer, message


@message(220, role="control")
class Belief(Struct, frozen=True):
    """The peer that its sender considers the master."""

    master: Peer


@message(221, role="control")
class Wants(Struct, frozen=True):
    """To the master: a piece of the sender's topics; all pieces of one version make up all."""

    version: U32
    piece: U16
    pieces: U16
    topics: tuple[U32, ...]


@message(222, role="control")
class Status(Struct, frozen=True):
    """To the master: the state of its sender.

    Of two, the one with the higher `version` counts, because a message may be repeated late.
    `position` and `ranks` are those of its current epoch, 0 without any. `newest` is the last epoch
    that it has a ring of; `is_settled`: the tables of that epoch are quiet; `is_drained`: it holds
    no event of earlier epochs.
    """

    version: U32
    current: U32
    position: U64
    ranks: U32
    newest: U32
    is_settled: bool
    is_drained: bool


class PlannedFinger(Struct, frozen=True):
    """The finger of a phase."""

    phase: U8
    member: Member


@message(223, role="join")
class Plan(Struct, frozen=True):
    """From the master: the receiver's place on the ring of an epoch, and who is next to it.

    A peer that starts between two plans has no planned fingers.
    """

    epoch: U32
    ranks: U32
    position: U64
    predecessors: tuple[Member, ...]
    successors: tuple[Member, ...]
    fingers: tuple[PlannedFinger, ...]


@message(224, role="control")
class Commit(Struct, frozen=True):
    """From the master: publish in this epoch from now on."""

    epoch: U32


@message(225, role="control")
class Retire(Struct, frozen=True):
    """From the master: no peer holds an event of an epoch before this; drop the rings of those."""

    epoch: U32
