"""Topics in the experiment file: the meaning of lines, and errors of lines that cannot be read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.kinds import draw_workload, read_settings
from workloads.share import NEVER_US
from workloads.topics.given import (
    TopicsGiven,
    TopicsGivenSettings,
    parse_publications,
    parse_subscriptions,
)

LINES = """
h2: 1 4
h3: 4 from 10 until 25.5 ; h3: 4 from 25.5
h1: 7 until 3
"""
EVENTS = "h1: 4 at 20 21\nh2: 1 at 20.5"


def test_lines_state_peers_topics_and_times() -> None:
    assert parse_subscriptions(LINES) == [
        ("h2", 1, 0, NEVER_US),
        ("h2", 4, 0, NEVER_US),
        ("h3", 4, 10_000_000, 25_500_000),
        ("h3", 4, 25_500_000, NEVER_US),
        ("h1", 7, 0, 3_000_000),
    ]


def test_publications_are_ordered_by_time() -> None:
    assert parse_publications(EVENTS) == [
        (20_000_000, "h1", 4), (20_500_000, "h2", 1), (21_000_000, "h1", 4),
    ]  # fmt: skip
    assert parse_publications("") == []


def test_the_workload_is_as_written_for_any_seed() -> None:
    section = {"kind": "topics-given", "subscriptions": LINES, "publications": EVENTS}
    for seed in (1, 2):
        work = draw_workload(section, seed, ["h1", "h2", "h3"])
        assert work.interests.peer.tolist() == [1, 1, 2, 2, 0]
        assert work.publications.peer.tolist() == [0, 1, 0]
        found = sorted(zip(*(column.tolist() for column in work.matches), strict=True))
        assert found == [(1, 1), (1, 2), (1, 3), (2, 0), (3, 1), (3, 2), (3, 3)]


interests = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 2**32 - 1), st.integers(0, 99), st.integers(1, 99)),
    min_size=1,
    unique_by=lambda row: row[:2],
)


@given(interests)
def test_printed_lines_can_be_read(rows: list[tuple[int, int, int, int]]) -> None:
    text = "\n".join(f"h{h}: {t} from {f} until {f + d}" for h, t, f, d in rows)
    assert parse_subscriptions(text) == [
        (f"h{h}", t, f * 1_000_000, (f + d) * 1_000_000) for h, t, f, d in rows
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "subscriptions: expected lines such as 'h2: 1 4 7' .*; found none"),
        ({"subscriptions": "h2 1"}, "subscriptions: expected lines such as .*; found 'h2 1'"),
        ({"subscriptions": "h2: x"}, "subscriptions: expected lines such as .*; found 'h2: x'"),
        ({"subscriptions": ": 4"}, "subscriptions: expected lines such as .*; found ': 4'"),
        ({"subscriptions": "h2: 4 from x"}, "subscriptions: expected lines such as "),
        ({"subscriptions": "h2: 4 until 5 from 3"}, "subscriptions: expected lines such as "),
        ({"subscriptions": "h2: 4 from 5 until 5"}, "subscriptions: expected an end after the"),
        ({"subscriptions": "h2: 4 4"}, "subscriptions: expected each topic .* topic 4 of h2 again"),
        ({"subscriptions": "h2: 4;h2: 4 from 9"}, "subscriptions: expected each topic of a host"),
        ({"subscriptions": "h2: 4294967296"}, "subscriptions: expected topics from 0 to 42949672"),
        (
            {"subscriptions": "h2: 4", "publications": "h1: 4"},
            "publications: expected lines such as",
        ),
        ({"subscriptions": "h2: 4", "publications": "h1: 4 at"}, "publications: expected lines "),
        ({"subscriptions": "h2: 4", "publications": "h1: 4 5 at 3"}, "publications: expected line"),
        ({"subscriptions": "h9: 4"}, "subscriptions: expected hosts of this .* found 'h9'"),
        ({"subscriptions": "h1: 4", "publications": "h9: 4 at 1"}, "publications: expected hosts"),
    ],
)
def test_a_wrong_line_is_reported_in_one_line(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        settings = read_settings({"kind": "topics-given", **given}, TopicsGivenSettings)
        TopicsGiven.check_hosts(settings, ["h1", "h2"])
    assert "\n" not in str(caught.value)
