"""Events as points and subscriptions as boxes: the content model of Tariq, Koldehofe and Rothermel,
"Efficient content-based routing with network topology inference" (DEBS 2013), sections 2 and 6.

An event is a point: up to five whole-number attributes from 0 to 10. A subscription is a
conjunction of closed ranges over some of them; an attribute without a range may have
any value. In a schema of fewer attributes, the others have no range, and are 0 in events.

There are 66 closed ranges of eleven values and 66 ** 5 < 2 ** 32 boxes, so a box is sent as its
number, in four bytes, and so is a point. All numbers within the bounds are valid; others are
refused when they are decoded.

In memory a box is also a set of 55 bits, one for each value of each attribute that it accepts.
A box covers another one if it includes its bits, and matches a point if it includes its bits.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct

ATTRIBUTES = 5
HIGHEST = 10  # highest value of an attribute; the lowest is 0
VALUES = HIGHEST + 1
Range = tuple[int, int]  # lowest and highest accepted value

RANGES: tuple[Range, ...] = tuple((a, b) for a in range(VALUES) for b in range(a, VALUES))
_ANY = (0, HIGHEST)
_BITS = tuple((1 << b + 1) - (1 << a) for a, b in RANGES)
RANGE_NUMBER = {accepted: number for number, accepted in enumerate(RANGES)}
_SHIFTS = tuple(VALUES * attribute for attribute in range(ATTRIBUTES))


class ContentError(ValueError):
    """An invalid subscription or event; a datagram with one does not decode."""


class Point(Struct, frozen=True, order=True, dict=True):
    """The content of an event: a value for each attribute."""

    number: int

    def __post_init__(self) -> None:
        """Raise for the number of no point."""
        _check_number("point", self.number, VALUES)

    @cached_property
    def values(self) -> tuple[int, ...]:
        """The values, one for each attribute."""
        return _digits(self.number, VALUES)

    @cached_property
    def bits(self) -> int:
        """The point as a set of one value for each attribute."""
        return sum(1 << s + v for s, v in zip(_SHIFTS, self.values, strict=True))

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.values))})"


class Subscription(Struct, frozen=True, order=True, dict=True):
    """A box: a closed range for each attribute of an event."""

    number: int

    def __post_init__(self) -> None:
        """Raise for the number of no box."""
        _check_number("subscription", self.number, len(RANGES))

    @cached_property
    def ranges(self) -> tuple[Range, ...]:
        """The accepted range of each attribute."""
        return tuple(RANGES[digit] for digit in _digits(self.number, len(RANGES)))

    @cached_property
    def bits(self) -> int:
        """The box as a set of accepted values for each attribute."""
        digits = _digits(self.number, len(RANGES))
        return sum(_BITS[digit] << shift for digit, shift in zip(digits, _SHIFTS, strict=True))

    def matches(self, point: Point) -> bool:
        """Whether an event matches."""
        return self.bits & point.bits == point.bits

    def covers(self, other: "Subscription") -> bool:
        """Whether every event that matches the other one matches this one too."""
        return self.bits & other.bits == other.bits

    def __str__(self) -> str:
        mentioned = [(a, r) for a, r in enumerate(self.ranges) if r != _ANY]
        return " and ".join(f"{low}<=a{a}<={high}" for a, (low, high) in mentioned) or "everything"


def make_point(values: Sequence[int]) -> Point:
    """The point with these values; attributes after them are 0."""
    if len(values) > ATTRIBUTES:
        raise ContentError(f"event: expected at most {ATTRIBUTES} values, found {len(values)}")
    for attribute, value in enumerate(values):
        if not 0 <= value <= HIGHEST:
            raise ContentError(
                f"event: attribute {attribute}: expected 0 to {HIGHEST}, found {value}"
            )
    return Point(sum(value * VALUES**place for place, value in enumerate(values)))


def subscribe(ranges: Mapping[int, Range], attributes: int = ATTRIBUTES) -> Subscription:
    """The subscription to the events whose attributes, counted from 0, are in these ranges."""
    known = range(min(attributes, ATTRIBUTES))
    for attribute, (low, high) in ranges.items():
        where = f"subscription: attribute {attribute}"
        if attribute not in known:
            raise ContentError(f"{where}: expected one from 0 to {len(known) - 1}")
        if not 0 <= low <= high <= HIGHEST:
            raise ContentError(
                f"{where}: expected 0 <= low <= high <= {HIGHEST}, found [{low}, {high}]"
            )
    return _from_ranges([ranges.get(attribute, _ANY) for attribute in range(ATTRIBUTES)])


def _check_number(what: str, number: int, base: int) -> None:
    if not 0 <= number < base**ATTRIBUTES:
        raise ContentError(f"{what}: expected a number below {base}**{ATTRIBUTES}, found {number}")


def _digits(number: int, base: int) -> tuple[int, ...]:
    return tuple(number // base**place % base for place in range(ATTRIBUTES))


def _from_ranges(ranges: Sequence[Range]) -> Subscription:
    numbers = (RANGE_NUMBER[accepted] for accepted in ranges)
    return Subscription(sum(n * len(RANGES) ** place for place, n in enumerate(numbers)))
