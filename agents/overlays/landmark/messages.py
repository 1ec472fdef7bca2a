"""The messages of the landmark approach (`landmark` says what it is).

A tree is named by its landmark, the peer at its root. Routes are those from that root, so nobody
below it has to infer anything.
"""

from msgspec import Struct

from agents.overlays.gossip import Pull, Push
from agents.wire.codec import U8, U16, U32, Peer, message


class Landmark(Struct, frozen=True):
    """What is known of a landmark; of two that differ the one that `is_newer` counts.

    A peer that is told of its own death refutes that with the next incarnation.
    """

    peer: Peer
    incarnation: U32
    epoch: U32  # of the gossip, in which it was elected
    is_dead: bool = False

    def is_newer(self, than: "Landmark | None") -> bool:
        """Whether this replaces what was known; in one incarnation death is final."""
        mine = (self.incarnation, self.is_dead)
        return than is None or mine > (than.incarnation, than.is_dead)


@message(60, role="control")
class Exchange(Struct, frozen=True):
    """Gossip: a push, from a peer that is counted in this epoch, and what its sender knows."""

    epoch: U32
    round: U16
    share: Push | None
    landmarks: tuple[Landmark, ...]
    peers: tuple[Peer, ...]


@message(61, role="control")
class ExchangeAnswer(Struct, frozen=True):
    """The other half of an exchange."""

    epoch: U32
    round: U16
    share: Pull | None
    landmarks: tuple[Landmark, ...]
    peers: tuple[Peer, ...]


@message(62, role="join")
class Join(Struct, frozen=True):
    """To a landmark: give me a place in your tree; the route is empty if none was told before."""

    attempt: U32
    route: tuple[U32, ...]


@message(63, role="join")
class Connect(Struct, frozen=True):
    """Down a tree: find the place of a peer with this route."""

    landmark: Peer
    joiner: Peer
    attempt: U32
    route: tuple[U32, ...]
    hops: U8


class Adopted(Struct, frozen=True):
    """A child that changes hands: its route goes on from a route that both sides know."""

    peer: Peer
    rest: tuple[U32, ...]


@message(64, role="join")
class Accept(Struct, frozen=True):
    """You are my child now, and these children of mine shall be yours."""

    landmark: Peer
    attempt: U32
    route: tuple[U32, ...]  # of the new child
    parent_length: U8  # of the route of its parent, which is the beginning of its own
    adopted: tuple[Adopted, ...]


@message(65, role="join")
class NewParent(Struct, frozen=True):
    """I am your parent now, in place of another; this is my route."""

    landmark: Peer
    old_parent: Peer
    route: tuple[U32, ...]


@message(66, role="join")
class Disconnect(Struct, frozen=True):
    """I am not your child, or not your parent, or not any more; also said when leaving."""

    landmark: Peer
    from_child: bool


@message(67, role="upkeep")
class Heartbeat(Struct, frozen=True):
    """I live, and so I see us: the trees where I am your child, or your parent.

    Where a twin, a peer with the same route, is the parent of the sender, that is said apart.
    """

    is_question: bool
    child_of: tuple[Peer, ...]
    parent_of: tuple[Peer, ...]
    parent_under_twin_of: tuple[Peer, ...]
