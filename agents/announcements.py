"""What the layers of one agent announce to each other; `agents.routing.tree` has the trees.

The application announces `Subscribe`, `Unsubscribe`, `Publish` and `Interests` to the layers below
it. An overlay announces `Neighbours` (`agents.protocol`), if it can route to keys a `NextHop`, and
if it is a ring a `RingView`.
A publish/subscribe layer announces `Ready`, and may suspend its own publisher. Any layer announces
which peers it depends on (`Watch`); the failure detector announces which of them failed.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from agents.protocol import PeerId


@dataclass(frozen=True, slots=True)
class Subscribe:
    """This peer has a new interest; `content` is what the workload means by it."""

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
    """The announcing layer can serve."""


@dataclass(frozen=True, slots=True)
class Suspend:
    """Publications of this content, or all if there is none, are not to be offered for now."""

    content: int | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """Takes a `Suspend` of the same content back."""

    content: int | None = None


class Router(Protocol):
    """An overlay's routing to keys."""

    def next_hop(self, key: int) -> PeerId | None:
        """The neighbour that is next on the way to a key; None if the key is this peer's own."""


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
    """What a peer knows of the ring it is in, announced by the overlay after each change.

    Positions are whole numbers from 0 to `modulus` - 1, and clockwise is upwards. `fingers` are the
    peers that messages may be routed to, the first successor among them, in clockwise order from
    this peer. `successors` are the next peers clockwise, the nearest first; it has none while this
    peer is alone. Positions of different epochs cannot be compared.
    """

    position: int
    modulus: int
    predecessor: Place | None
    successors: tuple[Place, ...]
    fingers: tuple[Place, ...]
    epoch: int = 0


@dataclass(frozen=True, slots=True)
class Watch:
    """The peers that a layer depends on, all of them; replaces what it announced before."""

    watcher: str
    peers: frozenset[PeerId]


@dataclass(frozen=True, slots=True)
class PeerLost:
    """A watched peer is silent or has left: nothing that was sent to it will be answered."""

    peer: PeerId


@dataclass(frozen=True, slots=True)
class PeerRestarted:
    """A watched peer is a new incarnation, which remembers nothing."""

    peer: PeerId
