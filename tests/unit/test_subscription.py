"""Subscriptions by hand, what is refused, how they travel, and what a link is told."""

from dataclasses import dataclass

import pytest

from agents.codec import HEADER, DecodeError, decode, encode, message
from agents.link_filter import Change, Filter
from agents.subscription import (
    ContentError,
    Point,
    Range,
    Subscription,
    bounding_merge,
    make_point,
    perfect_merge,
    subscribe,
)


@message(240)
@dataclass(frozen=True, slots=True)
class Announcement:
    added: tuple[Subscription, ...]
    example: Point


def box(*ranges: Range) -> Subscription:
    return subscribe(dict(enumerate(ranges)))


def test_a_subscription_matches_what_is_in_all_its_ranges() -> None:
    wanted = subscribe({1: (3, 5), 4: (10, 10)})
    assert wanted.matches(make_point([0, 3, 7, 7, 10]))
    assert wanted.matches(make_point([10, 5, 0, 0, 10]))
    assert not wanted.matches(make_point([0, 2, 7, 7, 10]))
    assert not wanted.matches(make_point([0, 6, 7, 7, 10]))
    assert not wanted.matches(make_point([0, 3, 7, 7, 9]))


def test_without_ranges_everything_matches() -> None:
    everything = subscribe({})
    assert everything.volume == 11**5
    assert everything.matches(make_point([10] * 5))
    assert everything.matches(make_point([]))
    assert everything == subscribe({2: (0, 10)})
    assert str(everything) == "everything"


def test_covering_and_overlapping() -> None:
    assert box((0, 5), (0, 5)).covers(box((1, 5), (0, 5), (3, 3)))
    assert not box((1, 5), (0, 5), (3, 3)).covers(box((0, 5), (0, 5)))
    assert box((0, 5)).overlaps(box((5, 9), (3, 3)))
    assert not box((0, 5), (0, 9)).overlaps(box((6, 9), (0, 9)))
    assert not box((0, 5), (0, 4)).overlaps(box((0, 5), (5, 9)))


@pytest.mark.parametrize(
    ("one", "other", "union"),
    [
        (box((0, 3), (2, 4)), box((4, 9), (2, 4)), box((0, 9), (2, 4))),  # side by side
        (box((0, 5), (2, 4)), box((4, 9), (2, 4)), box((0, 9), (2, 4))),  # overlapping
        (box((0, 5), (2, 4)), box((1, 2), (3, 3)), box((0, 5), (2, 4))),  # covering
        (box((0, 3), (2, 4)), box((5, 9), (2, 4)), None),  # a gap between
        (box((0, 3), (2, 4)), box((4, 9), (2, 5)), None),  # two attributes differ
    ],
)
def test_two_boxes_are_merged_if_their_union_is_one(
    one: Subscription, other: Subscription, union: Subscription | None
) -> None:
    assert perfect_merge(one, other) == union
    assert perfect_merge(other, one) == union


def test_a_bounding_merge_says_what_it_adds() -> None:
    merged, extra_points = bounding_merge(box((0, 1), (0, 1)), box((1, 2), (1, 2)))
    assert merged == box((0, 2), (0, 2))
    assert extra_points == 2 * 11**3  # the corners (0, 2) and (2, 0) of nine


@pytest.mark.parametrize(
    ("ranges", "attributes", "found"),
    [
        ({0: (4, 3)}, 5, r"attribute 0: expected 0 <= low <= high <= 10, found \[4, 3\]"),
        ({1: (-1, 3)}, 5, r"attribute 1: .* found \[-1, 3\]"),
        ({4: (0, 11)}, 5, r"attribute 4: .* found \[0, 11\]"),
        ({5: (0, 1)}, 5, r"attribute 5: expected one from 0 to 4"),
        ({3: (0, 1)}, 3, r"attribute 3: expected one from 0 to 2"),
        ({-1: (0, 1)}, 5, r"attribute -1: expected one from 0 to 4"),
    ],
)
def test_empty_ranges_and_unknown_attributes_are_refused(
    ranges: dict[int, Range], attributes: int, found: str
) -> None:
    with pytest.raises(ContentError, match=found):
        subscribe(ranges, attributes)


@pytest.mark.parametrize(("values"), [[11], [0, -1], [0] * 6])
def test_what_is_no_event_is_refused(values: list[int]) -> None:
    with pytest.raises(ContentError, match="^event: "):
        make_point(values)


def test_a_subscription_and_a_point_take_four_bytes_each() -> None:
    sent = Announcement((box((1, 2), (3, 4)), box((10, 10))), make_point([1, 2, 3, 4, 5]))
    datagram = encode(sent, 0, 1, 2, 3, 4, 5)
    assert len(datagram) == HEADER.size + 2 + 2 * 4 + 4
    received = decode(datagram)[1]
    assert received == sent
    assert received.added[0].ranges == ((1, 2), (3, 4), (0, 10), (0, 10), (0, 10))
    assert received.example.values == (1, 2, 3, 4, 5)


@pytest.mark.parametrize("tail", [(66**5).to_bytes(4) + bytes(4), bytes(4) + (11**5).to_bytes(4)])
def test_a_number_of_nothing_does_not_decode(tail: bytes) -> None:
    datagram = encode(Announcement((Subscription(0),), Point(0)), 0, 1, 2, 3, 4, 5)
    with pytest.raises(DecodeError, match="expected a number below"):
        decode(datagram[:-8] + tail)


def test_a_covered_subscription_is_not_announced_until_it_has_to_be() -> None:
    wide, narrow = box((0, 5)), box((1, 2), (3, 4))
    link = Filter()
    assert link.add(wide) == Change(added=(wide,))
    assert link.add(narrow) == Change()
    assert link.remove(wide) == Change(added=(narrow,), withdrawn=(wide,))
    assert link.remove(narrow) == Change(withdrawn=(narrow,))
    assert link.announced == ()


def test_a_covering_subscription_replaces_others() -> None:
    narrow, other, wide = box((1, 2), (3, 4)), box((5, 5), (0, 1)), box((0, 5))
    link = Filter()
    link.add(narrow)
    link.add(other)
    assert link.add(wide) == Change((wide,), tuple(sorted((narrow, other))))
    assert link.remove(narrow) == Change()
    assert link.remove(wide) == Change(added=(other,), withdrawn=(wide,))


def test_boxes_that_make_a_box_are_announced_as_one() -> None:
    left, right, above = box((0, 3), (0, 3)), box((4, 9), (0, 3)), box((0, 9), (4, 4))
    link = Filter()
    link.add(left)
    link.add(above)
    assert link.announced == tuple(sorted((left, above)))
    assert link.add(right).added == (box((0, 9), (0, 4)),)  # two merges, one after the other
    assert link.announced == (box((0, 9), (0, 4)),)
    assert link.remove(above) == Change((box((0, 9), (0, 3)),), (box((0, 9), (0, 4)),))


def test_what_is_held_twice_goes_with_the_second() -> None:
    link = Filter()
    link.add(box((1, 2)))
    assert link.add(box((1, 2))) == Change()
    assert link.remove(box((1, 2))) == Change()
    assert box((1, 2)) in link
    assert link.remove(box((1, 2))) == Change(withdrawn=(box((1, 2)),))
    assert box((1, 2)) not in link
    with pytest.raises(ContentError, match="expected a held subscription, found 1<=a0<=2"):
        link.remove(box((1, 2)))


def test_a_filter_may_be_allowed_to_add_what_nobody_asked_for() -> None:
    one, other, both = box((0, 1), (0, 1)), box((1, 2), (1, 2)), box((0, 2), (0, 2))
    strict, lax = Filter(2 * 11**3 - 1), Filter(2 * 11**3)
    for link in (strict, lax):
        link.add(one)
        link.add(other)
    assert strict.announced == tuple(sorted((one, other)))
    assert lax.announced == (both,)
    assert lax.remove(one) == Change((other,), (both,))
