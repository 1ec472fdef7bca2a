"""Requests at a peer of the discovery overlay that wait for a delay or a route."""

from dataclasses import dataclass

from agents.overlays.random_walk.messages import Walk
from agents.probing.prefix import Routers
from agents.protocol import PeerId


@dataclass(frozen=True, slots=True)
class Visit:
    """A walk that waits for the delay to its origin."""

    sender: PeerId
    walk: Walk


@dataclass(frozen=True, slots=True)
class Placing:
    """A peer to be placed that waits for the delay to it."""

    route: Routers
    last_mile_us: int
    visited: tuple[PeerId, ...]


@dataclass(frozen=True, slots=True)
class Befriending:
    """A peer that becomes a distant neighbour when the delay to it is known."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A neighbour whose route is inferred from this end, too."""

    delay_us: int
