"""The messages of the discovery overlay by random walks."""

from msgspec import Struct

from agents.wire.codec import U16, U32, Peer, message


@message(40, role="join")
class Join(Struct, frozen=True):
    """A request to infer the route to the sender, and to place it in the overlay."""


@message(41, role="join")
class Connect(Struct, frozen=True):
    """A request to place a peer; `route` is the receiver's route to that peer."""

    joiner: Peer
    route: tuple[U32, ...]
    last_mile_us: U32
    visited: tuple[Peer, ...]


@message(42, role="control")
class Walk(Struct, frozen=True):
    """A random walk of a peer; `path_us` is its delay so far, without last miles on the path."""

    origin: Peer
    number: U32
    path_us: U32
    targets: U16
    ttl: U16


@message(43, role="join")
class Accept(Struct, frozen=True):
    """The sender accepts the receiver as a neighbour, with this route and the length of its last
    mile.
    """

    route: tuple[U32, ...]
    delay_us: U32
    last_mile_us: U32


@message(44, role="join")
class NewParent(Struct, frozen=True):
    """The sender is no longer a neighbour; the receiver becomes a neighbour of `peer`, with this
    route.
    """

    peer: Peer
    route: tuple[U32, ...]


@message(45, role="join")
class Disconnect(Struct, frozen=True):
    """The link is not, or no longer, a near link; nor a distant one if the sender leaves."""

    is_leaving: bool


@message(46, role="upkeep")
class Heartbeat(Struct, frozen=True):
    """A sign of life between neighbours, and whether the link is near or only distant."""

    is_near: bool


@message(47, role="control")
class Befriend(Struct, frozen=True):
    """A request for a distant link."""

    delay_us: U32


@message(48, role="control")
class Befriended(Struct, frozen=True):
    """The sender accepts a distant link."""

    delay_us: U32
