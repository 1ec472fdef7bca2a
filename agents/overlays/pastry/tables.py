"""The routing table and the leaf set of a peer, and routes by them (section 2 of the paper).

Row r of the table has, for each digit d, a peer that shares exactly r digits with this one and goes
on with d. The leaf set has the closest peers on each side of the ring of identifiers. A leaf
that fits an empty entry of the table is that entry.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
from typing import Literal

from agents.overlays.identifiers import KEY_BITS, KEY_MASK, common_bits, identifier_of
from agents.protocol import PeerId

Role = Literal["table", "leaf"]
Slot = tuple[int, int]  # row and digit


class Tables:
    """The peers that a peer knows: `delays_us` has each of them with its one-way delay."""

    def __init__(self, me: PeerId, b: int, leaves: int, proximity: bool) -> None:
        self.me, self.id = me, identifier_of(me)
        self._b, self._half, self._proximity = b, leaves // 2, proximity
        self.entries: dict[Slot, PeerId] = {}
        self.delays_us: dict[PeerId, int] = {}
        self._clockwise: list[tuple[int, PeerId]] = []  # all known peers, with their distances
        self.version = 0  # grows with each change

    @property
    def leaves(self) -> list[PeerId]:
        """The closest peers clockwise and counterclockwise, each once."""
        return [peer for _, peer in self._leaf_places()]

    def slot_of(self, peer: PeerId) -> Slot:
        """The entry of the table that a peer fits."""
        identifier = identifier_of(peer)
        row = common_bits(self.id, identifier) // self._b
        return row, _digit(identifier, row, self._b)

    def row_of(self, identifier: int) -> int:
        """The number of digits that an identifier shares with this peer's."""
        return common_bits(self.id, identifier) // self._b

    def row(self, row: int) -> list[PeerId]:
        """The entries of a row, by their digits."""
        return [self.entries[slot] for slot in sorted(self.entries) if slot[0] == row]

    def sharing(self, row: int) -> Iterator[PeerId]:
        """The known peers that share at least `row` digits with this one."""
        return (peer for _, peer in self._clockwise if self.slot_of(peer)[0] >= row)

    def role_of(self, peer: PeerId) -> Role:
        """The role of a known peer."""
        return "table" if self.entries.get(self.slot_of(peer)) == peer else "leaf"

    def is_leaf(self, peer: PeerId) -> bool:
        """Whether a peer is in the leaf set, or would be if it were known."""
        known, half = self._clockwise, self._half
        at = bisect_left(known, (self._distance(peer), peer))
        after = len(known) - at - (peer in self.delays_us)
        return at < half or after < half

    def wants(self, peer: PeerId, measured_us: Mapping[PeerId, int]) -> bool:
        """Whether an unknown peer may become an entry or a leaf, given the measured ones."""
        if self.is_leaf(peer):
            return True
        entry = self.entries.get(self.slot_of(peer))
        if entry is None:
            return True
        return self._proximity and (
            peer not in measured_us or measured_us[peer] < self.delays_us[entry]
        )

    def admit(self, peer: PeerId, delay_us: int) -> bool:
        """Add a peer wherever it fits; returns whether it filled an empty entry of the table."""
        if peer in self.delays_us:
            return False
        slot = self.slot_of(peer)
        entry = self.entries.get(slot)
        is_nearer = entry is not None and self._proximity and delay_us < self.delays_us[entry]
        if entry is not None and not is_nearer and not self.is_leaf(peer):
            return False
        self.version += 1
        self.delays_us[peer] = delay_us
        place = self._distance(peer), peer
        self._clockwise.insert(bisect_left(self._clockwise, place), place)
        if entry is None or is_nearer:
            self.entries[slot] = peer
        self._forget_useless()
        return entry is None

    def remove(self, peer: PeerId) -> Slot | None:
        """Remove a peer; returns the entry that is empty now."""
        if self.delays_us.pop(peer, None) is None:
            return None
        self.version += 1
        self._clockwise.remove((self._distance(peer), peer))
        slot = self.slot_of(peer)
        if self.entries.get(slot) != peer:
            return None
        del self.entries[slot]
        fitting = [other for other in self.delays_us if self.slot_of(other) == slot]
        if fitting:
            self.entries[slot] = min(fitting, key=lambda other: (self.delays_us[other], other))
            return None
        return slot

    def next_hop(self, key: int, without: PeerId | None = None) -> PeerId | None:
        """The next peer on the route to a key; None if this one is the closest to it.

        A route may have to avoid the peer `without`.
        """
        leaves = self._leaf_places()
        if len(self._clockwise) <= 2 * self._half or self._is_near(key, leaves):
            return self._closest_leaf(key, leaves, without)
        row = self.row_of(key)
        entry = self.entries.get((row, _digit(key, row, self._b)))
        if entry is not None and entry != without:
            return entry
        return self._closer_peer(key, row, without)

    def lacks(self, peer: PeerId, leaves: Collection[PeerId]) -> bool:
        """Whether this peer has a leaf that another one with these leaves does not have."""
        identifier, half = identifier_of(peer), self._half
        ours = set(self.leaves) - {peer}
        known = sorted(
            (identifier_of(other) - identifier & KEY_MASK, other)
            for other in ours.union(leaves, (self.me,)) - {peer}
        )
        closest = {other for _, other in (*known[:half], *known[-half:])}
        return not closest.isdisjoint(ours.difference(leaves))

    def _leaf_places(self) -> list[tuple[int, PeerId]]:
        known, half = self._clockwise, self._half
        return known[:] if len(known) <= 2 * half else known[:half] + known[-half:]

    def _is_near(self, key: int, leaves: list[tuple[int, PeerId]]) -> bool:
        """Whether a key is in the range of a leaf set that does not have all peers."""
        distance = key - self.id & KEY_MASK
        return distance <= leaves[self._half - 1][0] or distance >= leaves[self._half][0]

    def _closest_leaf(
        self, key: int, leaves: list[tuple[int, PeerId]], without: PeerId | None
    ) -> PeerId | None:
        """The numerically closest of the leaves and this peer; of two, the one below the key."""
        target = key - self.id & KEY_MASK
        best, best_rank = None, _rank(target, 0)
        for place, peer in leaves:
            rank = _rank(target, place)
            if rank < best_rank and peer != without:
                best, best_rank = peer, rank
        return best

    def _closer_peer(self, key: int, row: int, without: PeerId | None) -> PeerId | None:
        """The closest known peer that shares as many digits with the key and is closer to it."""
        target = key - self.id & KEY_MASK
        best, best_rank = None, (min(target, -target & KEY_MASK), 0)
        for place, peer in self._clockwise:
            distance = min(target - place & KEY_MASK, place - target & KEY_MASK)
            is_closer = (distance, peer) < best_rank and peer != without
            if is_closer and common_bits(key, identifier_of(peer)) // self._b >= row:
                best, best_rank = peer, (distance, peer)
        return best

    def _forget_useless(self) -> None:
        """Remove the peers that are neither entries nor leaves."""
        half = self._half
        for place in self._clockwise[half:-half]:
            if self.role_of(place[1]) == "leaf":
                self._clockwise.remove(place)
                del self.delays_us[place[1]]

    def _distance(self, peer: PeerId) -> int:
        """The distance clockwise to a peer."""
        return identifier_of(peer) - self.id & KEY_MASK


def _rank(target: int, place: int) -> tuple[int, bool]:
    """The sort key of a place by its distance from a target, both counted from the same point."""
    above = target - place & KEY_MASK
    below = place - target & KEY_MASK
    return min(above, below), below < above


def _digit(identifier: int, row: int, b: int) -> int:
    return identifier >> (KEY_BITS - (row + 1) * b) & ((1 << b) - 1) if row < KEY_BITS // b else 0
