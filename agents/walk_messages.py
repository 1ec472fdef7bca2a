"""What peers of the discovery overlay by random walks tell each other."""

from dataclasses import dataclass

from agents.codec import U16, U32, Peer, message


@message(40)
@dataclass(frozen=True, slots=True)
class Join:
    """Please infer the route to me, and find me a place."""


@message(41)
@dataclass(frozen=True, slots=True)
class Connect:
    """Please find a place for a peer, to which this is your route."""

    joiner: Peer
    route: tuple[U32, ...]
    last_mile_us: U32
    visited: tuple[Peer, ...]


@message(42)
@dataclass(frozen=True, slots=True)
class Walk:
    """A random walk of a peer; `path_us` is the delay so far, without last miles on the way."""

    origin: Peer
    number: U32
    path_us: U32
    targets: U16
    ttl: U16


@message(43)
@dataclass(frozen=True, slots=True)
class Accept:
    """You are my neighbour, by this route, and your last mile is that long."""

    route: tuple[U32, ...]
    delay_us: U32
    last_mile_us: U32


@message(44)
@dataclass(frozen=True, slots=True)
class NewParent:
    """You are no longer my neighbour: be the neighbour of this peer, whose route to you is this."""

    peer: Peer
    route: tuple[U32, ...]


@message(45)
@dataclass(frozen=True, slots=True)
class Disconnect:
    """You are not, or no longer, my near neighbour; nor a distant one if I leave."""

    is_leaving: bool


@message(46)
@dataclass(frozen=True, slots=True)
class Heartbeat:
    """I am well, and you are my neighbour, a near one or only a distant one."""

    is_near: bool


@message(47)
@dataclass(frozen=True, slots=True)
class Befriend:
    """Be my distant neighbour."""

    delay_us: U32


@message(48)
@dataclass(frozen=True, slots=True)
class Befriended:
    """I am your distant neighbour."""

    delay_us: U32
