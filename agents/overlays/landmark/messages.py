"""The messages of the landmark approach (`landmark`).

A tree is identified by its landmark, the root. Routes are those from that root, so the peers below
it infer nothing.
"""

from msgspec import Struct

from agents.overlays.gossip import Pull, Push
from agents.wire.codec import U8, U16, U32, Peer, message

_MOST_ROUTERS = 255  # on a route, as a TTL


class Landmark(Struct, frozen=True):
    """The state of a landmark; of two different states, the one that `is_newer` counts.

    A landmark that hears of its own death refutes it with the next incarnation.
    """

    peer: Peer
    incarnation: U32
    epoch: U32  # the epoch of the gossip in which it was elected
    is_dead: bool = False

    def is_newer(self, than: "Landmark | None") -> bool:
        """Whether this replaces another state; within one incarnation, death is final."""
        mine = (self.incarnation, self.is_dead)
        return than is None or mine > (than.incarnation, than.is_dead)


@message(60, role="control")
class Exchange(Struct, frozen=True):
    """Gossip: a push of a peer that is counted in this epoch, with landmarks and peers that it
    knows.
    """

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
    """To a landmark: a request for a place in its tree; the route is empty if it is unknown."""

    attempt: U32
    route: tuple[U32, ...]

    def __post_init__(self) -> None:
        """Refuse a route that no packet can take."""
        _check_route(self.route)


@message(63, role="join")
class Connect(Struct, frozen=True):
    """Down a tree: a request to place a peer with this route."""

    landmark: Peer
    joiner: Peer
    attempt: U32
    route: tuple[U32, ...]
    hops: U8

    def __post_init__(self) -> None:
        """Refuse a route that no packet can take."""
        _check_route(self.route)


class Adopted(Struct, frozen=True):
    """A child that gets another parent: its route beyond a route that both sides know."""

    peer: Peer
    rest: tuple[U32, ...]


@message(64, role="join")
class Accept(Struct, frozen=True):
    """The sender is the receiver's parent; the receiver adopts these children of the sender."""

    landmark: Peer
    attempt: U32
    route: tuple[U32, ...]  # of the new child
    parent_length: U8  # of the route of its parent, which is the beginning of its own
    adopted: tuple[Adopted, ...]

    def __post_init__(self) -> None:
        """Refuse a route that no packet can take."""
        _check_route(self.route)


@message(65, role="join")
class NewParent(Struct, frozen=True):
    """The sender is the receiver's new parent; `route` is the sender's route."""

    landmark: Peer
    old_parent: Peer
    route: tuple[U32, ...]


@message(66, role="join")
class Disconnect(Struct, frozen=True):
    """The sender is not, or no longer, a child or parent of the receiver; or it leaves."""

    landmark: Peer
    from_child: bool


@message(67, role="upkeep")
class Heartbeat(Struct, frozen=True):
    """A sign of life: the trees in which the sender is the receiver's child, or its parent.

    Trees in which the parent of the sender is a twin, a peer with the same route, are listed
    separately.
    """

    is_question: bool
    child_of: tuple[Peer, ...]
    parent_of: tuple[Peer, ...]
    parent_under_twin_of: tuple[Peer, ...]


def _check_route(route: tuple[int, ...]) -> None:
    if len(route) > _MOST_ROUTERS:
        raise ValueError(f"route: expected at most {_MOST_ROUTERS} routers, found {len(route)}")
