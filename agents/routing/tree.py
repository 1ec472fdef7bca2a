"""The announcements and requests between a routing layer and the layer above it.

A routing layer joins all peers by a tree on the overlay's links (T of Tariq, Koldehofe and
Rothermel, DEBS 2013, section 5). It builds new trees from time to time, so trees have versions: the
next version is built while version v is in use, and v is kept for a while after the switch.
"""

from dataclasses import dataclass

from agents.protocol import Announce, Effects, PeerId, Record

NO_TREE = 0  # the version of events that are published before the first tree
_HOLD_US = 50_000
_MOST_DOUBLINGS = 5
_QUIET_US = 5_000_000


@dataclass(frozen=True, slots=True)
class Tree:
    """Announced each time that this peer's links in a version of the tree change.

    `built_us` is the time when this peer first heard of the version. A dropped version has no links
    and never returns. Versions of one family are used side by side, each by some of the publishers:
    an event stays on its own version, and no version of a family succeeds another. A tree may be
    for the events of one publisher or of one topic only; otherwise it is for all events.
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
    """Announced when this peer must publish on a version of the tree from now on.

    Other peers may have to use another version at the same time, of the same family or the next.
    """

    version: int


@dataclass(frozen=True, slots=True)
class Recalculate:
    """A request to the routing layer to replace this version.

    Any peer may request it; the leader begins a new selection unless the version is already
    replaced.
    """

    version: int


class Hold:
    """The time to wait before something is repeated; it grows with each repetition."""

    def __init__(self) -> None:
        self.is_set = False
        self._often = 0
        self._last_us = 0

    def set(self, now_us: int) -> int:
        """Start to wait; returns the time."""
        if now_us - self._last_us > _QUIET_US:
            self._often = 0
        self.is_set = True
        return _HOLD_US << min(self._often, _MOST_DOUBLINGS)

    def end(self, now_us: int, has_done: bool = True) -> None:
        """End the wait; it shrinks again if there was nothing to do."""
        self.is_set = False
        if has_done:
            self._often += 1
            self._last_us = now_us


def tell_links(tree: Tree, before: tuple[PeerId, ...]) -> Effects:
    """Record and announce the changes of this peer's links in a version."""
    changes = [
        *(("tree_link_removed", peer) for peer in before if peer not in tree.links),
        *(("tree_link_added", peer) for peer in tree.links if peer not in before),
    ]
    records = [Record(what, {"version": tree.version, "peer": peer}) for what, peer in changes]
    return [*records, Announce(tree)]
