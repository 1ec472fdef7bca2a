"""How a peer divides a range: the papers' examples, and the position of the middle."""

import pytest

from agents.pubsub.nsmf.division import Rule, divide


def test_the_example_of_nsmf() -> None:
    # Node 1 has the fingers 2, 4, 7 and 11. 7 and 11 subscribe; 5 is the nearest subscriber.
    assert divide("po", 9, 4, [1, 3, 6, 10], [6, 10]) == [(4, 6), (6, 9)]


@pytest.mark.parametrize(
    ("fingers", "rule", "expected"),
    [
        ([1, 2, 6, 8], "po", [(3, 6), (6, 10)]),
        ([1, 2, 6, 8], "pal", [(3, 6), (6, 10)]),
        ([1, 2, 4, 8], "po", [(3, 10)]),
        ([1, 2, 4, 8], "pie", [(3, 8), (8, 10)]),
        ([1, 2, 4, 8], "pal", [(3, 8), (8, 10)]),
        ([1, 2, 4], "pie", [(3, 10)]),
        ([1, 2, 4], "pal", [(3, 5), (5, 10)]),
    ],
)
def test_the_example_of_beaconvey(
    fingers: list[int], rule: Rule, expected: list[tuple[int, int]]
) -> None:
    # Node 1 and the range of 10 from it: 4 is the nearest subscriber, and finger 7 subscribes.
    matched = [finger for finger in fingers if finger == 6]
    assert divide(rule, 10, 3, fingers, matched) == expected


def test_a_range_without_subscribers_is_not_divided() -> None:
    for nearest in (None, 10, 12):
        assert divide("pal", 10, nearest, [7], []) == []


@pytest.mark.parametrize(
    ("span", "to_rank", "middle"),
    [(700, 0, 400), (800, 0, 400), (800, 40, 440), (900, 50, 450), (101, 60, 60), (101, 30, None)],
)
def test_the_middle_of_a_ring_of_ranks_is_a_rank(
    span: int, to_rank: int, middle: int | None
) -> None:
    parts = divide("pal", span, 1, [1], [], to_rank, 100)
    assert [start for start, _ in parts] == [1] + [middle] * (middle is not None)
