"""What a routing layer tells the layer above it, and what it can be told.

A routing layer joins all peers by a tree on the overlay's links (T of Tariq, Koldehofe and
Rothermel, DEBS 2013, section 5). It builds a new one now and then, so trees have versions: while
version v is in use the next is built, and v is kept for a while after the switch.
"""

from dataclasses import dataclass

from agents.protocol import Announce, Effects, PeerId, Record

NO_TREE = 0  # the version that events are published on before there is any
_HOLD_US = 50_000
_MOST_DOUBLINGS = 5
_QUIET_US = 5_000_000


@dataclass(frozen=True, slots=True)
class Tree:
    """Announced each time that this peer's links in a version of the tree change.

    `built_us` is when this peer first heard of the version. A version that was dropped has no
    links and never comes back. Versions of one family are used side by side, each by some of the
    publishers: an event stays on its own, and none is the successor of another. A tree may be for
    the events of one publisher or of one topic only; otherwise it is for all.
    """

    version: int
    built_us: int
    links: tuple[PeerId, ...]
    is_dropped: bool = False
    family: int = 0
    publisher: PeerId | None = None
    topic: int | None = None


@dataclass(frozen=True, slots=True)
class CurrentTree:
    """Announced when this peer is to publish on a version of the tree from now on.

    Others may at the same time be told to use another version, of the same family or the next.
    """

    version: int


@dataclass(frozen=True, slots=True)
class Recalculate:
    """Told to the routing layer by the one above: this version has been used for long enough.

    Any peer may ask; the leader begins a new selection unless that version is already the past.
    """

    version: int


class Hold:
    """How long to wait before something is done again: longer while it goes on."""

    def __init__(self) -> None:
        self.is_set = False
        self._often = 0
        self._last_us = 0

    def set(self, now_us: int) -> int:
        """Begin to wait; returns for how long."""
        if now_us - self._last_us > _QUIET_US:
            self._often = 0
        self.is_set = True
        return _HOLD_US << min(self._often, _MOST_DOUBLINGS)

    def end(self, now_us: int, has_done: bool = True) -> None:
        """The wait is over, and it was done, unless there was nothing to do."""
        self.is_set = False
        if has_done:
            self._often += 1
            self._last_us = now_us


def tell_links(tree: Tree, before: tuple[PeerId, ...]) -> Effects:
    """Record and announce what has changed about this peer's links in a version."""
    changes = [
        *(("tree_link_removed", peer) for peer in before if peer not in tree.links),
        *(("tree_link_added", peer) for peer in tree.links if peer not in before),
    ]
    records = [Record(what, {"version": tree.version, "peer": peer}) for what, peer in changes]
    return [*records, Announce(tree)]
