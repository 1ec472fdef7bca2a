"""Which recorded subscriptions match which recorded events.

Agents record the number of a box and the number of a point. A box is five closed ranges, each a
digit of its number in base 66: the 66 ranges of the values 0 to 10, ordered by their lower and then
their upper end. A point is five values, each a digit in base 11. The first attribute is the
lowest digit. Here a box is a set of 55 bits, one for each value of each attribute that it
accepts, and so is a point: it matches if its bits are among the box's.
"""

from collections.abc import Iterable
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

_ATTRIBUTES = 5
_VALUES = 11
_RANGES = [(low, high) for low in range(_VALUES) for high in range(low, _VALUES)]
_ACCEPTED = [sum(1 << value for value in range(low, high + 1)) for low, high in _RANGES]


def box_bits(number: Column) -> Column:
    """The values that a subscription accepts, as bits."""
    accepted = F.array(*(F.lit(bits).cast("long") for bits in _ACCEPTED))
    return _join(
        F.shiftleft(F.get(accepted, _digit(number, len(_RANGES), place)), _VALUES * place)
        for place in range(_ATTRIBUTES)
    )


def point_bits(number: Column) -> Column:
    """The values that an event has, as bits."""
    single = F.array(*(F.lit(1 << value).cast("long") for value in range(_VALUES)))
    return _join(
        F.shiftleft(F.get(single, _digit(number, _VALUES, place)), _VALUES * place)
        for place in range(_ATTRIBUTES)
    )


def is_match(box: Column, point: Column) -> Column:
    """Whether the bits of a point are all among those of a box."""
    return box.bitwiseAND(point) == point


def _digit(number: Column, base: int, place: int) -> Column:
    whole = number.cast("long")
    return F.floor(whole / F.lit(base**place)).cast("long") % F.lit(base)


def _join(parts: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one.bitwiseOR(other), parts)
