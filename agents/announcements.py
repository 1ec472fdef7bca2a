"""Announcements between the layers of one agent; those of trees are in `agents.routing.tree`.

| layer | announces |
|---|---|
| application | `Subscribe`, `Unsubscribe`, `Publish`, `Interests` |
| overlay | `Neighbours` (`agents.protocol`); `NextHop` if it routes to keys; `RingView` if a ring |
| overlay of a ring | `Unsettled`, `Settled` |
| publish/subscribe | `Ready`; `Suspend` and `Resume` for publications of its own peer |
| any | `Watch`: the peers that the layer depends on |
| failure detector | `PeerLost`, `PeerRestarted` for watched peers |
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from agents.protocol import PeerId


@dataclass(frozen=True, slots=True)
class Subscribe:
    """This peer has a new interest; the workload defines the meaning of `content`."""

    interest: int
    content: int


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """This peer no longer has an interest."""

    interest: int
    content: int


@dataclass(frozen=True, slots=True)
class Interests:
    """The contents of all interests of this peer, announced after each change."""

    contents: frozenset[int]


@dataclass(frozen=True, slots=True)
class Publish:
    """This peer publishes an event now."""

    event_id: int
    content: int
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Ready:
    """The announcing layer is ready for events."""


@dataclass(frozen=True, slots=True)
class Unsettled:
    """Links of this peer or of others may still change because of this peer, until `Settled`.

    Announced by an overlay when it starts. The peer is not ready before `Settled`, either.
    """


@dataclass(frozen=True, slots=True)
class Settled:
    """Without churn, no links change any more because of this peer; ends `Unsettled`."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Do not offer publications of this content until `Resume`; None means all publications."""

    content: int | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """Ends a `Suspend` of the same content."""

    content: int | None = None


class Router(Protocol):
    """An overlay's routing to keys."""

    def next_hop(self, key: int) -> PeerId | None:
        """The next neighbour on the route to a key; None if this peer is the root of the key."""


@dataclass(frozen=True, slots=True)
class NextHop:
    """Announced once by an overlay that routes to keys."""

    router: Router


class Place(NamedTuple):
    """A peer and its position on a ring."""

    peer: PeerId
    position: int


@dataclass(frozen=True, slots=True)
class RingView:
    """A peer's knowledge of its ring, announced by the overlay after each change.

    Positions are whole numbers from 0 to `modulus` - 1 and increase clockwise. `fingers` are the
    peers that messages are routed to, in clockwise order from this peer, with the first successor.
    `successors` are the next peers clockwise, the nearest first; it is empty while this peer is
    alone. Positions of different epochs cannot be compared. On a ring of ranks, these are `spacing`
    apart, with room for peers that come later.
    """

    position: int
    modulus: int
    predecessor: Place | None
    successors: tuple[Place, ...]
    fingers: tuple[Place, ...]
    epoch: int = 0
    spacing: int = 1


@dataclass(frozen=True, slots=True)
class PreparesEpoch:
    """A layer builds tables for a ring of a new epoch; announced on the first `RingView` of it.

    The overlay does not begin the epoch before that layer announces `EpochPrepared`.
    """

    epoch: int


@dataclass(frozen=True, slots=True)
class EpochPrepared:
    """The tables of the announcing layer for an epoch are complete, and quiet."""

    epoch: int


@dataclass(frozen=True, slots=True)
class EpochBegun:
    """Announced by the overlay: events are published in this epoch from now on.

    Events of earlier epochs are finished on their own rings, whose `RingView`s continue.
    """

    epoch: int


@dataclass(frozen=True, slots=True)
class EpochDrained:
    """A layer that prepared an epoch holds no event of it, and publishes none in it any more."""

    epoch: int


@dataclass(frozen=True, slots=True)
class EpochEnded:
    """Announced by the overlay: no peer holds an event of this epoch, and its ring is gone."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Watch:
    """All peers that a layer depends on; replaces the previous `Watch` of the same watcher."""

    watcher: str
    peers: frozenset[PeerId]


@dataclass(frozen=True, slots=True)
class PeerLost:
    """A watched peer is silent or has left; it will not answer messages."""

    peer: PeerId


@dataclass(frozen=True, slots=True)
class PeerRestarted:
    """A watched peer is a new incarnation without state about this one.

    `incarnation` is the time, by that peer's clock, at which its state begins.
    """

    peer: PeerId
    incarnation: int = 0
