"""Similarity, dissimilarity and weight by hand, and windows that end at different events."""

import pytest
from msgspec import Struct

from agents.routing.similarity import (
    EventWindow,
    RecentEvents,
    dissimilarity_us,
    similarity,
    weight_us,
)
from agents.wire.codec import HEADER, Datagram, decode, encode, message

PSI = 10


@message(241, role="event")
class Traffic(Struct, frozen=True):
    window: EventWindow


def window(*noted: int, heard: int = 0, psi: int = PSI) -> EventWindow:
    recent = RecentEvents(psi)
    for number in noted:
        recent.note(number)
    recent.hear_of(heard)
    return recent.window()


def test_similarity_is_the_common_share_of_all_events_of_both() -> None:
    assert similarity(window(1, 2, 3), window(2, 3, 4), PSI) == 2 / 4
    assert similarity(window(1, 2, 3), window(3, 2, 1), PSI) == 1
    assert similarity(window(1, 3), window(2, 4), PSI) == 0
    assert similarity(window(1), window(), PSI) == 0


def test_dissimilarity_ranges_from_zero_to_alpha() -> None:
    assert dissimilarity_us(window(1, 2), window(1, 2), PSI, 1_000) == 0
    assert dissimilarity_us(window(1, 2, 3), window(2, 3, 4), PSI, 1_000) == 500
    assert dissimilarity_us(window(1), window(2), PSI, 1_000) == 1_000


def test_peers_without_events_are_not_similar_but_their_link_costs_only_its_delay() -> None:
    assert similarity(window(), window(heard=7), PSI) == 0
    assert dissimilarity_us(window(), window(heard=7), PSI, 1_000) == 0


def test_a_weight_is_the_sum_of_delay_and_dissimilarity() -> None:
    assert weight_us(20_000, dissimilarity_us(window(1), window(2), PSI, 5_000)) == 25_000


def test_windows_are_compared_over_the_events_before_the_later_end() -> None:
    early, late = window(1, 9, 10), window(9, 10, 11)
    assert similarity(early, late, PSI) == 2 / 3  # Event 1 is older than the last ten.
    assert similarity(late, early, PSI) == 2 / 3
    assert similarity(early, window(9, 10, heard=19), PSI) == 1  # Only event 10 is left.
    assert similarity(early, window(heard=20), PSI) == 0


def test_late_and_repeated_events_are_accepted() -> None:
    assert window(5, 3, 3, 5) == window(3, 5)
    assert window(20, 11) == window(11, 20)
    assert window(20, 10) == window(20)  # too old


def test_a_window_is_small() -> None:
    full = window(*range(1, 1_001), psi=1_000)
    datagram = encode(Datagram(Traffic(full), 0, 1, 2, 3, 4, 5))
    assert len(datagram) == HEADER.size + 4 + 2 + 125
    assert decode(datagram).content == Traffic(full)
    assert len(window(1_000, psi=1_000).matched) == 1


def test_any_claimed_window_is_accepted() -> None:
    assert similarity(window(1, 2), EventWindow(2**32 - 1, b"\x01"), PSI) == 0
    assert similarity(window(1), EventWindow(1, b"\xff" * 1_000), PSI) == 1 / PSI


def test_an_empty_window_is_refused() -> None:
    with pytest.raises(ValueError, match="psi: expected at least 1 event, found 0"):
        RecentEvents(0)
