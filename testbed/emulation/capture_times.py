"""The send times of captured packets on the clock of their network."""

import time

import numpy as np
from numpy.typing import NDArray

from agents.runtime.held_clock import HEADER_WORDS, KEPT_STOPS, HeldClock

_Times = NDArray[np.int64]
_TRIES = 5


def take_out_stops(realtime_ns: _Times, clock: HeldClock) -> _Times:
    """Recent times on the real-time clock, minus all earlier pauses of a network's clock."""
    # An interruption between the two readings can only make the difference smaller.
    ahead_ns = max(time.time_ns() - time.monotonic_ns() for _ in range(_TRIES))
    moments_ns = realtime_ns - ahead_ns
    # Vectorised `HeldClock.at_ns`.
    granted_ns = clock.granted_ns
    ended_ns, held_ns = _kept_stops(clock)
    stops_before = np.searchsorted(ended_ns, moments_ns, side="right")
    held_before_ns = np.insert(held_ns, 0, 0)[stops_before]
    latest_ns = np.append(ended_ns - held_ns, granted_ns)[stops_before]
    times_ns: _Times = np.minimum(moments_ns - held_before_ns, latest_ns)
    return times_ns + ahead_ns


def _kept_stops(clock: HeldClock) -> tuple[_Times, _Times]:
    """The ends of recorded pauses, and the total length of pauses up to each."""
    words = np.frombuffer(clock.words, np.int64)[HEADER_WORDS:].reshape(-1, 2)
    ended_ns, held_ns = words[np.array(clock.kept_stops, np.int64) % KEPT_STOPS].T
    return ended_ns, held_ns
