"""Boxes compared with sets of points, which are few enough to list."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.content.subscription import (
    Point,
    Subscription,
    make_point,
    subscribe,
)

few = settings(max_examples=150, deadline=None)
# Two attributes are enough for every shape of union; the others are arbitrary.
PLANE = [make_point(values) for values in product(range(11), repeat=2)]
ranges = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(lambda r: (min(r), max(r)))
# With few bounds, boxes often cover each other, touch or are equal.
coarse = st.sampled_from([(a, b) for a in (0, 3, 5) for b in (2, 4, 6) if a <= b])


def boxes(accepted: st.SearchStrategy[tuple[int, int]]) -> st.SearchStrategy[Subscription]:
    return st.dictionaries(st.integers(0, 1), accepted).map(subscribe)


def inside(*subscriptions: Subscription) -> set[Point]:
    """The points of the plane that match at least one box, computed from the ranges."""
    return {
        point
        for point in PLANE
        for subscription in subscriptions
        if all(
            low <= value <= high
            for value, (low, high) in zip(point.values, subscription.ranges, strict=True)
        )
    }


@given(st.dictionaries(st.integers(0, 4), ranges))
def test_numbers_keep_ranges(wanted: dict[int, tuple[int, int]]) -> None:
    made = subscribe(wanted)
    assert Subscription(made.number).ranges == tuple(wanted.get(a, (0, 10)) for a in range(5))


@given(st.lists(st.integers(0, 10), min_size=5, max_size=5))
def test_numbers_keep_values(values: list[int]) -> None:
    assert Point(make_point(values).number).values == tuple(values)


@given(st.integers(0, 66**5 - 1), st.lists(st.integers(0, 10), min_size=5, max_size=5))
def test_matching_is_containment_in_every_range(number: int, values: list[int]) -> None:
    wanted = Subscription(number)
    is_inside = all(a <= v <= b for v, (a, b) in zip(values, wanted.ranges, strict=True))
    assert wanted.matches(make_point(values)) == is_inside


@few
@given(boxes(ranges) | boxes(coarse), boxes(ranges) | boxes(coarse))
def test_relations_of_boxes_are_those_of_sets(one: Subscription, other: Subscription) -> None:
    a, b = inside(one), inside(other)
    assert one.covers(other) == (a >= b)
