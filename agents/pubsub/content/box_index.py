"""An index of boxes: which cover which, and which an event matches, as sets of bits.

The tables of all agents of a process (`cover_table`) hold the same subscriptions, in every version
of the tree. Therefore they share one index: a box has one place (a bit) in all of them, and the
boxes that it covers are computed once. A set of places is one number. Finding which of them cover a
box or match an event is one operation on it.
"""

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from workloads.content.subscription import Point, Subscription

_FREE = np.uint64(1 << 63)  # neither covers nor is covered, and matches nothing
_FEW = 16  # up to this number of places, listing one by one is faster
_MOST_REMEMBERED = 1 << 28  # of matches, in bits


class BoxIndex:
    """Boxes by number; a place is free again when all users have returned it.

    Killed agents do not return places, so their boxes keep them.
    """

    def __init__(self) -> None:
        self.place_of: dict[int, int] = {}
        self.number: list[int] = []  # of the box at a place
        self.above: list[int] = []  # the places whose boxes cover this one
        self.below: list[int] = []  # the places whose boxes this one covers
        self._bits: NDArray[np.uint64] = np.full(16, _FREE, dtype=np.uint64)
        self._users: list[int] = []
        self._free: list[int] = []  # the lowest first, because it gives the smallest numbers
        self._matching: dict[int, int] = {}

    def take(self, number: int) -> int:
        """The place of a box, which gets one more user."""
        place = self.place_of.get(number)
        if place is None:
            place = self._place(number)
        self._users[place] += 1
        return place

    def give_back(self, place: int) -> None:
        """A user returns a place."""
        self._users[place] -= 1
        if self._users[place] == 0:
            self._clear(place)

    def matching(self, point: Point) -> int:
        """The places whose boxes match an event."""
        bits = point.bits
        found = self._matching.get(bits)
        if found is None:
            if len(self._matching) * len(self.number) >= _MOST_REMEMBERED:
                self._matching.clear()
            wanted = np.uint64(bits)
            found = self._matching[bits] = _as_bits((self._bits & wanted) == wanted)
        return found

    def _place(self, number: int) -> int:
        place = heappop(self._free) if self._free else self._new_place()
        box, bit = np.uint64(Subscription(number).bits), 1 << place
        common = self._bits & box
        self.above[place] = _as_bits(common == box)
        self.below[place] = _as_bits(common == self._bits)
        for other in list_places(self.above[place]):
            self.below[other] |= bit
        for other in list_places(self.below[place]):
            self.above[other] |= bit
        self._bits[place] = box
        self.number[place], self.place_of[number] = number, place
        self._matching.clear()
        return place

    def _new_place(self) -> int:
        place = len(self.number)
        if place == len(self._bits):
            self._bits = np.concatenate([self._bits, np.full(place, _FREE, dtype=np.uint64)])
        for listed in (self.number, self.above, self.below, self._users):
            listed.append(0)
        return place

    def _clear(self, place: int) -> None:
        others = ~(1 << place)
        for other in list_places(self.above[place]):
            self.below[other] &= others
        for other in list_places(self.below[place]):
            self.above[other] &= others
        self.above[place] = self.below[place] = 0
        self._bits[place] = _FREE
        del self.place_of[self.number[place]]
        heappush(self._free, place)
        self._matching.clear()


def list_places(bits: int) -> list[int]:
    """The places whose bits are set."""
    found: list[int] = []
    if bits.bit_count() <= _FEW:
        while bits:
            lowest = bits & -bits
            found.append(lowest.bit_length() - 1)
            bits ^= lowest
        return found
    at = -1
    for zeros in bin(bits)[:1:-1].split("1")[:-1]:
        at += len(zeros) + 1
        found.append(at)
    return found


def _as_bits(mask: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")
