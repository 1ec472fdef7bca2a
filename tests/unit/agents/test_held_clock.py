"""The clock that pauses while the links are late."""

import stat
import time
from pathlib import Path

import numpy as np
import pytest

from agents.runtime import held_clock
from agents.runtime.held_clock import ClockKeeper, HeldClock
from testbed.emulation import capture_times
from testbed.emulation.capture_times import take_out_stops

MS = 1_000_000


class Moments:
    """A monotonic clock that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 5 * MS
        monkeypatch.setattr(held_clock, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)
        monkeypatch.setattr(time, "time_ns", lambda: self.now_ns + 7)


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> Moments:
    return Moments(monkeypatch)


def test_without_a_keeper_it_is_the_system_clock(moments: Moments) -> None:
    clock = HeldClock()
    assert (clock.now_ns(), clock.at_ns(3 * MS), clock.held_ns) == (5 * MS, 3 * MS, 0)
    stamps = np.array([1 * MS, 4 * MS])
    assert take_out_stops(stamps, clock).tolist() == stamps.tolist()
    moments.now_ns += MS
    assert clock.now_ns() == 6 * MS


def test_it_pauses_for_all_processes_at_the_end_of_the_granted_time(moments: Moments) -> None:
    keeper = ClockKeeper(granted_ns=2 * MS)
    clock = HeldClock(keeper.path)
    moments.now_ns = 6 * MS
    assert clock.now_ns() == keeper.now_ns() == 6 * MS
    moments.now_ns = 10 * MS
    assert clock.now_ns() == 7 * MS and clock.held_ns == 0  # The keeper has not continued it yet.
    assert keeper.now_ns() == clock.now_ns() == 7 * MS
    assert clock.held_ns == 3 * MS
    keeper.grant(9 * MS)
    keeper.grant(8 * MS)  # Granted time cannot be withdrawn.
    moments.now_ns = 11 * MS
    assert clock.now_ns() == keeper.now_ns() == 8 * MS
    moments.now_ns = 20 * MS
    assert clock.now_ns() == 9 * MS


def test_recent_times_before_during_and_after_a_pause_are_converted(moments: Moments) -> None:
    keeper = ClockKeeper(granted_ns=2 * MS)
    clock = HeldClock(keeper.path)
    moments.now_ns = 10 * MS  # paused from 7 to 10
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


def test_of_many_pauses_the_latest_are_stored(
    moments: Moments, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (held_clock, capture_times):
        monkeypatch.setattr(module, "KEPT_STOPS", 100)
    keeper = ClockKeeper(granted_ns=0)
    clock = HeldClock(keeper.path)
    times_ns = {}
    for _ in range(250):
        moments.now_ns += 2 * MS
        times_ns[moments.now_ns] = keeper.now_ns()
        times_ns[moments.now_ns - MS // 2] = keeper.now_ns()  # during a pause
        keeper.grant(keeper.now_ns() + MS)
    assert clock.kept_stops == range(151, 250)
    of_those_kept = dict(list(times_ns.items())[2 * 152 :])
    assert [clock.at_ns(moment_ns) for moment_ns in of_those_kept] == list(of_those_kept.values())
    stamps = np.array(list(of_those_kept)) + 7
    assert (take_out_stops(stamps, clock) - 7).tolist() == list(of_those_kept.values())
    oldest_ns = times_ns[5 * MS + 2 * 152 * MS]
    assert clock.at_ns(5 * MS + 2 * 100 * MS) <= oldest_ns  # no longer stored


def test_only_the_keeper_can_change_it() -> None:
    keeper = ClockKeeper(granted_ns=0)
    assert stat.S_IMODE(Path(keeper.path).stat().st_mode) == 0o600
    clock = HeldClock(keeper.path)
    with pytest.raises(TypeError):
        clock.words[0] = 1
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    HeldClock(keeper.path).close()
    assert len(list(descriptors.iterdir())) == before
