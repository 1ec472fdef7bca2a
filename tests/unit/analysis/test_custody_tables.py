"""Deliveries that are due when events are in custody and hosts crash and restart."""

import pandas as pd

from analysis.tables.custody import (
    STAY_US,
    count_repeats,
    done_times,
    owed_in_custody,
    while_placed,
)
from tests.fixtures.event_frames import frame_of, records_of

SETTLE_US, END_US = 2_000_000, 1_000_000_000
AT_US = 100_000_000


def judge(
    spans: list[tuple[str, int, int]],
    done_us: int | None = AT_US + 1_000,
    ends: tuple[tuple[str, int], ...] = (),
    at_us: int = AT_US,
) -> dict[str, tuple[bool, bool]]:
    """Whether an event is owed to each host, and whether the host stayed for it."""
    matches = frame_of(
        "matches",
        *(
            {"event_id": 1, "publisher": "p", "published_us": at_us, "host": host}
            for host in sorted({host for host, _, _ in spans})
        ),
    )
    wanted = pd.DataFrame(spans, columns=["host", "from_us", "until_us"]).assign(event_id=1)
    said = [] if done_us is None else [(done_us, "p", "event_done", {"event_id": 1})]
    said.append((0, "p", "event_done", {"event_id": 2}))
    frame = pd.DataFrame(ends, columns=["host", "end_us"])
    judged = owed_in_custody(
        matches, wanted, frame, done_times(records_of(*said)), SETTLE_US, END_US
    )
    return {row.host: (row.is_owed, row.is_steady) for row in judged.itertuples()}


def test_a_host_stays_from_before_the_event_until_a_delivery_time_later() -> None:
    early, late = AT_US - SETTLE_US, AT_US + STAY_US
    found = judge(
        [("a", early, late), ("b", early + 1, END_US), ("c", 0, late - 1), ("d", 0, END_US),
         ("e", 0, AT_US + 1), ("e", AT_US + 2, END_US)]
    )  # fmt: skip
    assert {host for host, (_, stayed) in found.items() if stayed} == {"a", "d"}


def test_a_host_stays_until_a_slow_event_is_done_or_the_run_ends() -> None:
    slow_us = AT_US + 3 * STAY_US
    found = judge([("a", 0, slow_us), ("b", 0, slow_us - 1)], done_us=slow_us)
    assert (found["a"][1], found["b"][1]) == (True, False)
    assert judge([("a", 0, END_US)], at_us=END_US - 1, done_us=END_US)["a"] == (True, True)


def test_an_event_is_owed_unless_its_publisher_ended_before_it_was_done() -> None:
    spans, done_us = [("a", 0, END_US)], AT_US + 1_000
    assert judge(spans, ends=(("p", done_us + 1), ("p", AT_US - 1)))["a"] == (True, True)
    assert judge(spans, None, ends=(("p", done_us + 1),))["a"] == (False, True)
    assert judge(spans, None)["a"] == (True, True)


def test_an_agent_is_up_once_it_has_a_position_after_each_start() -> None:
    wanted = pd.DataFrame(
        [(1, "a", 10, 50), (2, "a", 70, 90), (3, "a", 85, 90), (4, "b", 10, 90), (5, "a", 95, 99)],
        columns=["event_id", "host", "from_us", "until_us"],
    )
    said = [
        (time_us, host, what, {})
        for time_us, host, what in [
            (10, "a", "agent_started"), (20, "a", "placed"), (30, "a", "placed"),
            (70, "a", "agent_started"), (80, "a", "placed"), (95, "a", "agent_started"),
            (10, "b", "agent_started"), (10, "b", "placed"),
        ]
    ]  # fmt: skip
    found = while_placed(wanted, records_of(*said)).sort_values("event_id")
    assert found.to_numpy().tolist() == [
        [1, "a", 20, 50], [2, "a", 80, 90], [3, "a", 85, 90], [4, "b", 10, 90],
    ]  # fmt: skip
    assert while_placed(wanted, records_of(*said[:1])) is wanted


def test_a_restarted_agent_is_a_new_incarnation() -> None:
    got = pd.DataFrame(
        [(1, "a", 10), (1, "a", 30), (1, "a", 31), (1, "b", 10), (1, "b", 20), (2, "a", 40)],
        columns=["event_id", "host", "time_us"],
    )
    ends = pd.DataFrame([("a", 15), ("c", 11)], columns=["host", "end_us"])
    assert count_repeats(got, ends).tolist() == [1, 1, 2, 1, 2, 1]
