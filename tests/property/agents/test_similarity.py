"""Similarity compared with operations on sets of numbers."""

from hypothesis import given
from hypothesis import strategies as st

from agents.routing.similarity import RecentEvents, dissimilarity_us, similarity

numbers = st.lists(st.integers(1, 60), max_size=30)
windows = st.integers(1, 40)


def recent(noted: list[int], psi: int) -> RecentEvents:
    made = RecentEvents(psi)
    for number in noted:
        made.note(number)
    return made


@given(numbers, numbers, windows)
def test_similarity_is_that_of_sets(one: list[int], other: list[int], psi: int) -> None:
    last = max([0, *one, *other])
    a, b = ({n for n in noted if n > last - psi} for noted in (one, other))
    expected = len(a & b) / len(a | b) if a | b else 0.0  # Without events nothing is similar.
    found = similarity(recent(one, psi).window(), recent(other, psi).window(), psi)
    assert found == expected


@given(numbers, numbers, numbers, windows)
def test_dissimilarity_is_a_metric(a: list[int], b: list[int], c: list[int], psi: int) -> None:
    heard = max([0, *a, *b, *c])  # on one window: events of only two peers cannot be compared
    made = [recent(noted, psi) for noted in (a, b, c)]
    for events in made:
        events.hear_of(heard)
    x, y, z = (events.window() for events in made)
    alpha_us = 1_000_000
    assert dissimilarity_us(x, x, psi, alpha_us) == 0
    assert dissimilarity_us(x, y, psi, alpha_us) == dissimilarity_us(y, x, psi, alpha_us)
    around = dissimilarity_us(x, y, psi, alpha_us) + dissimilarity_us(y, z, psi, alpha_us)
    assert dissimilarity_us(x, z, psi, alpha_us) <= around + 2  # each is rounded down
