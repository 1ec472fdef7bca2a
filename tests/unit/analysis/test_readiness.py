"""The measured window: its begin, and the metrics in it."""

from typing import Any

import pytest

from analysis.agent_lives import read_lives
from analysis.readiness import NEVER_US, window_start_us
from tests.fixtures.event_frames import records_of

Row = tuple[int, str, str, dict[str, Any]]


def started(**times_us: int) -> list[Row]:
    return [(at_us, host, "agent_started", {}) for host, at_us in times_us.items()]


def ready(**times_us: int) -> list[Row]:
    return [(at_us, host, "ready", {}) for host, at_us in times_us.items()]


def start_of(
    rows: list[Row], ends: list[tuple[int, str]] | None = None, all_started_us: int = 5
) -> int | None:
    records = records_of(*sorted(rows, key=lambda row: row[0]))
    return window_start_us(records, read_lives(records, ends or []), all_started_us)


def test_the_window_begins_when_the_last_agent_is_ready() -> None:
    assert start_of(started(h1=0, h2=1, h3=2) + ready(h1=30, h2=50, h3=40)) == 50


def test_the_window_does_not_begin_before_the_last_planned_start() -> None:
    assert start_of(started(h1=0, h2=3) + ready(h1=1, h2=4), all_started_us=9) == 9


def test_an_agent_that_ended_before_it_was_ready_is_ignored() -> None:
    rows = started(h1=0, h2=0) + ready(h1=30)
    assert start_of(rows, ends=[(20, "h2")]) == 30
    assert start_of(rows, ends=[(70, "h2")]) == 70


def test_a_restarted_agent_does_not_move_the_window() -> None:
    rows = started(h1=0, h2=0) + ready(h1=30, h2=40)
    again = [*rows, (60, "h2", "agent_started", {}), (90, "h2", "ready", {})]
    assert start_of(again, ends=[(50, "h2")]) == 40


def test_without_a_time_when_all_are_ready_there_is_no_window() -> None:
    assert start_of(started(h1=0, h2=0) + ready(h1=30)) == NEVER_US


def test_without_records_of_readiness_the_window_is_unknown() -> None:
    assert start_of(started(h1=0, h2=0)) is None


@pytest.mark.parametrize("late", [7, 90])
def test_an_agent_started_late_by_a_fault_counts_only_if_it_runs_then(late: int) -> None:
    rows = started(h1=0, h2=0, h3=late) + ready(h1=30, h2=40, h3=late + 10)
    assert start_of(rows) == 40
