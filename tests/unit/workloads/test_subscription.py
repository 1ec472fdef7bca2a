"""Subscriptions by hand, and invalid ones."""

import pytest

from workloads.content.subscription import (
    ContentError,
    Range,
    Subscription,
    make_point,
    subscribe,
)


def box(*ranges: Range) -> Subscription:
    return subscribe(dict(enumerate(ranges)))


def test_a_subscription_matches_points_in_all_its_ranges() -> None:
    wanted = subscribe({1: (3, 5), 4: (10, 10)})
    assert wanted.matches(make_point([0, 3, 7, 7, 10]))
    assert wanted.matches(make_point([10, 5, 0, 0, 10]))
    assert not wanted.matches(make_point([0, 2, 7, 7, 10]))
    assert not wanted.matches(make_point([0, 6, 7, 7, 10]))
    assert not wanted.matches(make_point([0, 3, 7, 7, 9]))


def test_a_subscription_without_ranges_matches_everything() -> None:
    everything = subscribe({})
    assert everything.matches(make_point([10] * 5))
    assert everything.matches(make_point([]))
    assert everything == subscribe({2: (0, 10)})
    assert str(everything) == "everything"


def test_covering() -> None:
    assert box((0, 5), (0, 5)).covers(box((1, 5), (0, 5), (3, 3)))
    assert not box((1, 5), (0, 5), (3, 3)).covers(box((0, 5), (0, 5)))


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
def test_an_invalid_event_is_refused(values: list[int]) -> None:
    with pytest.raises(ContentError, match="^event: "):
        make_point(values)
