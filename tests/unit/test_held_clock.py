"""The clock that stands still while links cannot keep up."""

import time
from itertools import pairwise

import numpy as np
import pytest

from agents.runtime import held_clock
from agents.runtime.held_clock import KEPT_STOPS, ClockKeeper, HeldClock
from testbed.emulation.capture_times import take_out_stops

MS = 1_000_000


class Moments:
    """A monotonic clock that moves when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 5 * MS
        monkeypatch.setattr(held_clock, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(time, "time_ns", lambda: self.now_ns + 7)


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    return Moments(monkeypatch)


def test_without_a_keeper_it_is_the_systems_clock(moments: Moments) -> None:
    clock = HeldClock()
    assert (clock.now_ns(), clock.at_ns(3 * MS), clock.held_ns) == (5 * MS, 3 * MS, 0)
    stamps = np.array([1 * MS, 4 * MS])
    assert take_out_stops(stamps, clock).tolist() == stamps.tolist()
    moments.now_ns += MS
    assert clock.now_ns() == 6 * MS


def test_it_stops_for_everybody_at_the_end_of_what_is_granted(moments: Moments) -> None:
    keeper = ClockKeeper(granted_ns=2 * MS)
    clock = HeldClock(keeper.path)
    moments.now_ns = 6 * MS
    assert clock.now_ns() == keeper.now_ns() == 6 * MS
    moments.now_ns = 10 * MS
    assert clock.now_ns() == 7 * MS and clock.held_ns == 0  # the keeper has not noticed yet
    assert keeper.now_ns() == clock.now_ns() == 7 * MS
    assert clock.held_ns == 3 * MS
    keeper.grant(9 * MS)
    keeper.grant(8 * MS)  # what is granted cannot be taken back
    moments.now_ns = 11 * MS
    assert clock.now_ns() == keeper.now_ns() == 8 * MS
    moments.now_ns = 20 * MS
    assert clock.now_ns() == 9 * MS


def test_times_of_late_are_told_from_before_during_and_after_a_stop(moments: Moments) -> None:
    keeper = ClockKeeper(granted_ns=2 * MS)
    clock = HeldClock(keeper.path)
    moments.now_ns = 10 * MS  # it stood still from 7 to 10
    keeper.now_ns()
    keeper.grant(8 * MS)
    moments.now_ns = 13 * MS  # and from 11 to 13
    keeper.now_ns()
    keeper.grant(20 * MS)
    moments.now_ns = 14 * MS
    at = {6: 6, 7: 7, 8: 7, 10: 7, 10.5: 7.5, 11: 8, 12: 8, 13: 8, 14: 9}
    assert [clock.at_ns(int(moment * MS)) / MS for moment in at] == list(at.values())
    stamps = np.array([int(moment * MS) + 7 for moment in at])  # on the real-time clock
    assert (take_out_stops(stamps, clock) - 7).tolist() == [int(t * MS) for t in at.values()]


def test_stops_that_follow_each_other_are_one(moments: Moments) -> None:
    keeper = ClockKeeper(granted_ns=0)
    clock = HeldClock(keeper.path)
    for _ in range(10):
        moments.now_ns += MS
        keeper.grant(keeper.now_ns() + 1_000)
    assert (clock.stops, clock.held_ns) == (1, 10 * MS - 9 * 1_000)


def test_of_many_stops_the_latest_are_remembered(moments: Moments) -> None:
    keeper = ClockKeeper(granted_ns=0)
    clock = HeldClock(keeper.path)
    begin_ns, times_ns = moments.now_ns, []
    for _ in range(KEPT_STOPS + 100):
        moments.now_ns += 2 * MS
        keeper.grant(keeper.now_ns() + MS)
        times_ns.append(moments.now_ns)
    assert clock.stops == KEPT_STOPS + 100
    latest = times_ns[-(KEPT_STOPS - 2) :]
    found = [clock.at_ns(moment_ns) for moment_ns in latest[:: KEPT_STOPS // 50]]
    assert all(later > earlier for earlier, later in pairwise(found))
    assert found[-1] - begin_ns == pytest.approx((latest[-1] - begin_ns) / 2, rel=0.02)
    together = take_out_stops(np.array(latest[:: KEPT_STOPS // 50]) + 7, clock) - 7
    assert together.tolist() == found
