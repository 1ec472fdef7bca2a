"""What peers of the discovery overlay by random walks tell each other."""

from msgspec import Struct

from agents.wire.codec import U16, U32, Peer, message


@message(40, role="join")
class Join(Struct, frozen=True):
    """Please infer the route to me, and find me a place."""


@message(41, role="join")
class Connect(Struct, frozen=True):
    """Please find a place for a peer, to which this is your route."""

    joiner: Peer
    route: tuple[U32, ...]
    last_mile_us: U32
    visited: tuple[Peer, ...]


@message(42, role="control")
class Walk(Struct, frozen=True):
    """A random walk of a peer; `path_us` is the delay so far, without last miles on the way."""

    origin: Peer
    number: U32
    path_us: U32
    targets: U16
    ttl: U16


@message(43, role="join")
class Accept(Struct, frozen=True):
    """You are my neighbour, by this route, and your last mile is that long."""

    route: tuple[U32, ...]
    delay_us: U32
    last_mile_us: U32


@message(44, role="join")
class NewParent(Struct, frozen=True):
    """You are no longer my neighbour: be the neighbour of this peer, whose route to you is this."""

    peer: Peer
    route: tuple[U32, ...]


@message(45, role="join")
class Disconnect(Struct, frozen=True):
    """You are not, or no longer, my near neighbour; nor a distant one if I leave."""

    is_leaving: bool


@message(46, role="upkeep")
class Heartbeat(Struct, frozen=True):
    """I am well, and you are my neighbour, a near one or only a distant one."""

    is_near: bool


@message(47, role="control")
class Befriend(Struct, frozen=True):
    """Be my distant neighbour."""

    delay_us: U32


@message(48, role="control")
class Befriended(Struct, frozen=True):
    """I am your distant neighbour."""

    delay_us: U32
