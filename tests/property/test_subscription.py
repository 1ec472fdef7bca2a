"""Boxes and filters against sets of points, of which there are few enough to list them."""

from collections import Counter
from itertools import combinations, product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agents.link_filter import Filter
from agents.subscription import (
    Point,
    Subscription,
    bounding_merge,
    make_point,
    perfect_merge,
    subscribe,
)

few = settings(max_examples=150, deadline=None)
# Two attributes are enough for every shape of union; the others are any.
PLANE = [make_point(values) for values in product(range(11), repeat=2)]
ranges = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(lambda r: (min(r), max(r)))
# Few ends make boxes that cover each other, touch and come twice.
coarse = st.sampled_from([(a, b) for a in (0, 3, 5) for b in (2, 4, 6) if a <= b])


def boxes(accepted: st.SearchStrategy[tuple[int, int]]) -> st.SearchStrategy[Subscription]:
    return st.dictionaries(st.integers(0, 1), accepted).map(subscribe)


def inside(*subscriptions: Subscription) -> set[Point]:
    """The points of the plane that match at least one, worked out from the ranges."""
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
def test_matching_is_being_in_every_range(number: int, values: list[int]) -> None:
    wanted = Subscription(number)
    is_inside = all(a <= v <= b for v, (a, b) in zip(values, wanted.ranges, strict=True))
    assert wanted.matches(make_point(values)) == is_inside


@few
@given(boxes(ranges) | boxes(coarse), boxes(ranges) | boxes(coarse))
def test_relations_and_merges_are_those_of_sets(one: Subscription, other: Subscription) -> None:
    a, b = inside(one), inside(other)
    assert one.volume == len(a) * 11**3
    assert one.covers(other) == (a >= b)
    assert one.overlaps(other) == bool(a & b)
    merged, extra_points = bounding_merge(one, other)
    assert inside(merged) >= a | b
    assert extra_points == (len(inside(merged)) - len(a | b)) * 11**3
    union = perfect_merge(one, other)
    assert (union is not None) == (extra_points == 0)
    assert union is None or union == merged


Steps = list[tuple[bool, Subscription]]
steps = st.lists(st.tuples(st.booleans(), boxes(coarse)), max_size=25)


@few
@given(steps, st.sampled_from([0, 0, 11**3]))
def test_a_filter_says_what_is_held_and_no_more_than_it_must(moves: Steps, extra: int) -> None:
    link, held, told = Filter(extra), Counter[Subscription](), set[Subscription]()
    for is_added, subscription in moves:
        if not is_added and not held[subscription]:
            continue
        held[subscription] += 1 if is_added else -1
        change = (link.add if is_added else link.remove)(subscription)
        assert told.isdisjoint(change.added)
        assert told.issuperset(change.withdrawn)
        told = (told - set(change.withdrawn)) | set(change.added)
        assert tuple(sorted(told)) == link.announced
        wanted = inside(*+held)
        assert inside(*told) >= wanted
        assert extra or inside(*told) == wanted
        for one, other in combinations(told, 2):
            assert perfect_merge(one, other) is None  # neither covered nor a box together
        assert len(link) == len(+held)


@few
@given(st.lists(boxes(coarse), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_a_filter_ends_empty_in_whatever_order(added: list[Subscription], chance: object) -> None:
    assume(added)
    link, rest = Filter(), list(added)
    for subscription in added:
        link.add(subscription)
    chance.shuffle(rest)  # type: ignore[attr-defined]
    for subscription in rest:
        link.remove(subscription)
    assert link.announced == ()
    assert len(link) == 0
