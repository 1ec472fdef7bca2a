"""The peers next to a peer on the ring: a list in each direction, nearest first.

A list is the nearest peer, which has sent a message itself, followed by that peer's own list. So it
depends on the ring alone once the ring is stable.
"""

from collections.abc import Callable, Iterable, Sequence

from agents.announcements import Place
from agents.overlays.ring.circle import Circle
from agents.protocol import PeerId

Row = list[Place]
Distance = Callable[[Place], int]


class Neighbourhood:
    """Predecessors and successors of a peer."""

    def __init__(self, me: Place, circle: Circle, most_before: int, most_after: int) -> None:
        self._me = me
        self._circle, self._modulus = circle, circle.modulus
        self._most_before, self._most_after = most_before, most_after
        self.predecessors: Row = []
        self.successors: Row = []
        self.version = 0
        self.is_closed = True  # whether the successors are all other peers of the ring

    @property
    def predecessor(self) -> Place | None:
        """The nearest peer before this one."""
        return self.predecessors[0] if self.predecessors else None

    @property
    def successor(self) -> Place | None:
        """The nearest peer after this one."""
        return self.successors[0] if self.successors else None

    def seed(
        self, predecessors: Sequence[Place], successors: Sequence[Place], is_closed: bool
    ) -> None:
        """Begin with these lists."""
        self._replace(list(predecessors[: self._most_before]), list(successors[: self._most_after]))
        self.is_closed = is_closed and len(successors) <= self._most_after

    def take(self, place: Place, before: Sequence[Place], after: Sequence[Place]) -> None:
        """Update the lists with those of a live peer."""
        back = self._outwards(self.before, place, before)
        on = self._outwards(self.after, place, after)
        predecessors, _ = _follow(
            self.before, self.predecessors, back, len(back) <= len(before), self._most_before
        )
        successors, is_closed = _follow(
            self.after, self.successors, on, len(on) <= len(after), self._most_after
        )
        self._replace(predecessors, successors)
        if is_closed is not None:
            self.is_closed = is_closed

    def lose(self, peer: PeerId, others: Iterable[Place]) -> None:
        """Remove a peer; if no successor is left, the nearest of some others replaces it."""
        predecessors = [place for place in self.predecessors if place.peer != peer]
        successors = [place for place in self.successors if place.peer != peer]
        if not successors:
            known = {*predecessors, *others}
            nearest = sorted((place for place in known if place.peer != peer), key=self.after)
            successors, self.is_closed = nearest[:1], not nearest
        self._replace(predecessors, successors)

    def strangers(self, candidates: Iterable[Place]) -> Row:
        """Of some peers, those nearer than the successor and nearer than the predecessor.

        They are known only from others, so they must be asked.
        """
        others = [place for place in candidates if place.peer != self._me.peer]
        return list(
            dict.fromkeys(
                [
                    *_nearer(self.after, self.successors, others),
                    *_nearer(self.before, self.predecessors, others),
                ]
            )
        )

    def owns(self, position: int) -> bool:
        """Whether this peer is the first at or after a position."""
        if self.predecessor is None:
            return not self.successors or position == self._me.position
        start = self.predecessor.position
        distance = self._circle.distance(start, position)
        return 0 < distance <= self._circle.distance(start, self._me.position)

    def find_root(self, position: int) -> tuple[bool, Place | None]:
        """Whether the root of a position is known, and the root; None is this peer."""
        distance = self._circle.distance(self._me.position, position)
        if distance == 0:
            return True, None
        for place in self.successors:
            if self.after(place) >= distance:
                return True, place
        return self.is_closed, None

    def _replace(self, predecessors: Row, successors: Row) -> None:
        if (predecessors, successors) != (self.predecessors, self.successors):
            self.predecessors, self.successors = predecessors, successors
            self.version += 1

    def _outwards(self, distance: Distance, place: Place, told: Sequence[Place]) -> Row:
        """A peer and its list, up to this peer or the first one that is not farther."""
        taken, peers = [place], {place.peer, self._me.peer}
        for one in told:
            if one.peer in peers or distance(one) <= distance(taken[-1]):
                break
            taken.append(one)
            peers.add(one.peer)
        return taken

    def after(self, place: Place) -> int:
        """The distance clockwise from this peer."""
        return (place.position - self._me.position) % self._modulus

    def before(self, place: Place) -> int:
        """The distance counterclockwise from this peer."""
        return (self._me.position - place.position) % self._modulus


def _follow(
    distance: Distance, row: Row, told: Row, is_closed: bool, most: int
) -> tuple[Row, bool | None]:
    """The list after a peer has sent its own, and whether it covers the ring (None: as before).

    `told` begins with that peer; `is_closed`: it covers the whole ring.
    """
    first = told[0]
    if row and row[0].peer != first.peer and distance(row[0]) < distance(first):
        return row, None
    is_complete = is_closed or len(told) >= most
    if is_complete and row and row[0].peer == first.peer:
        return told[:most], is_closed and len(told) <= most
    peers = {one.peer for one in told}
    merged = sorted([*told, *(one for one in row if one.peer not in peers)], key=distance)
    return merged[:most], is_closed and len(merged) <= most


def _nearer(distance: Distance, row: Row, others: Sequence[Place]) -> Row:
    """The nearest of the others, if it is nearer than the first of a list."""
    limit = distance(row[0]) if row else None
    near = [one for one in others if distance(one) > 0 and (limit is None or distance(one) < limit)]
    return [min(near, key=distance)] if near else []
