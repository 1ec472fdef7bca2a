"""Perfect merging: boxes whose union is a box are announced as that one box (Mühl, "Large-scale
content-based publish/subscribe systems", PhD thesis, TU Darmstadt, 2002).

Two boxes merge if they agree in all attributes but one, and their ranges in that one overlap or
touch. The union has no point outside the two boxes, so it causes no false positives. Merged boxes
merge again while possible. The resulting boxes depend on the order of arrival, their union does
not.

Boxes are found by their numbers without one attribute, so a new box takes five look-ups. A merged
box remembers its parts: a link that gets only some of them gets those parts.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from workloads.content.subscription import ATTRIBUTES, RANGE_NUMBER, RANGES

_Keys = tuple[int, ...]
_WEIGHTS: tuple[int, ...] = tuple(len(RANGES) ** attribute for attribute in range(ATTRIBUTES))


class Box:
    """A box, the places that it represents as bits, and the two boxes that it was merged from."""

    __slots__ = ("number", "parts", "places")

    def __init__(self, number: int, places: int, parts: "tuple[Box, ...]" = ()) -> None:
        self.number = number
        self.places = places
        self.parts = parts

    def within(self, places: int) -> Iterator["Box"]:
        """The largest merged boxes that represent only some of these places."""
        if not self.parts:
            return
        if self.places & ~places == 0:
            yield self
        elif self.places & places:
            for part in self.parts:
                yield from part.within(places)


class BoxMerger:
    """Boxes at places, merged as far as possible."""

    def __init__(self) -> None:
        self._by_key: dict[int, tuple[Box, ...]] = {}
        self._box_of: dict[int, Box] = {}  # the box that represents a place, merged or not
        self._numbers: set[int] = set()  # merged boxes and their parts

    def __contains__(self, place: object) -> bool:
        """Whether there is a box at a place."""
        return place in self._box_of

    def add(self, place: int, number: int) -> int:
        """Put a box at a place; returns the places whose merged boxes have changed, as bits."""
        return self._insert(Box(number, 1 << place))

    def remove(self, place: int) -> int:
        """Remove the box from a place; returns the places whose merged boxes have changed."""
        box = self._box_of.pop(place)
        self._unlist(box)
        if not box.parts:
            return 0
        stirred = box.places
        for leaf in self._dissolve(box):
            if leaf.places != 1 << place:
                stirred |= self._insert(leaf)
        return stirred

    def merged(self, places: Iterable[int]) -> list[Box]:
        """The merged boxes that represent any of some places."""
        found: dict[int, Box] = {}
        for place in places:
            box = self._box_of.get(place)
            if box is not None and box.parts:
                found[box.places] = box
        return list(found.values())

    def _insert(self, box: Box) -> int:
        """Merge a box with others while possible, and list the result."""
        keys = _keys_of(box.number)
        pair = self._partner(box, keys)
        while pair is not None:
            other, number = pair
            self._unlist(other)
            self._numbers.add(number)
            box = Box(number, box.places | other.places, (other, box))
            keys = _keys_of(number)
            pair = self._partner(box, keys)
        for key in keys:
            self._by_key[key] = (*self._by_key.get(key, ()), box)
        for leaf in _leaves(box):
            self._box_of[leaf.places.bit_length() - 1] = box
        return box.places if box.parts else 0

    def _partner(self, box: Box, keys: _Keys) -> tuple[Box, int] | None:
        """Another box that merges with this one, and its number."""
        for attribute, key in enumerate(keys):
            for other in self._by_key.get(key, ()):
                number = _union(box.number, other.number, attribute)
                if number and number not in self._numbers:
                    return other, number
        return None

    def _unlist(self, box: Box) -> None:
        for key in _keys_of(box.number):
            rest = tuple(there for there in self._by_key[key] if there is not box)
            if rest:
                self._by_key[key] = rest
            else:
                del self._by_key[key]

    def _dissolve(self, box: Box) -> Iterator[Box]:
        """Split a merged box; returns the boxes at single places."""
        if not box.parts:
            yield box
            return
        self._numbers.discard(box.number)
        for part in box.parts:
            yield from self._dissolve(part)


def _leaves(box: Box) -> Iterator[Box]:
    """The boxes at single places that a box consists of."""
    if not box.parts:
        yield box
    for part in box.parts:
        yield from _leaves(part)


@lru_cache(maxsize=1 << 16)
def _keys_of(number: int) -> _Keys:
    """The number without each of its attributes, as keys that identify the missing one."""
    base = len(RANGES)
    return tuple(
        (number - number // weight % base * weight) * ATTRIBUTES + attribute
        for attribute, weight in enumerate(_WEIGHTS)
    )


@lru_cache(maxsize=1 << 16)
def _union(one: int, other: int, attribute: int) -> int:
    """The union of two boxes that differ in one attribute, or 0 if there is a gap between them.

    Number 0 is a single point, which is not a union.
    """
    weight, base = _WEIGHTS[attribute], len(RANGES)
    digits = one // weight % base, other // weight % base
    (low, high), (other_low, other_high) = RANGES[digits[0]], RANGES[digits[1]]
    if max(low, other_low) > min(high, other_high) + 1:
        return 0
    joined = RANGE_NUMBER[min(low, other_low), max(high, other_high)]
    return one + (joined - digits[0]) * weight
