"""The clock of an emulated network, which pauses while its links cannot keep up.

The process that carries packets keeps the clock: it repeatedly grants a little more time, never
much beyond the due time of the next packet. If it is too late, because it has too many packets or
the machine was descheduled, the clock pauses for all processes at the end of the granted time and
continues when the process is back. Therefore link delays are right on this clock, however busy the
machine is.

The clock is shared memory with 64-bit numbers in nanoseconds: the total time of all pauses, the
time until which the clock may run, the number of pauses, and for the latest pauses their end on the
system's monotonic clock and the total until then. The time of the clock is that of the monotonic
clock minus the total of the pauses.
"""

import mmap
import os
from bisect import bisect_right
from time import monotonic_ns

_HELD, _GRANTED, _STOPS = 0, 1, 2
HEADER_WORDS = 4
KEPT_STOPS = 1 << 18
_BYTES = 8 * (HEADER_WORDS + 2 * KEPT_STOPS)
_FOREVER_NS = (1 << 63) - 1


class HeldClock:
    """The clock as read by other processes; with a `path` of None it never pauses."""

    def __init__(self, path: str | None = None) -> None:
        self._map: mmap.mmap | None = None
        if path is None:
            self.words = memoryview(bytearray(8 * HEADER_WORDS)).cast("q")
            self.words[_GRANTED] = _FOREVER_NS
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._map = mmap.mmap(descriptor, _BYTES, prot=mmap.PROT_READ)
        os.close(descriptor)
        self.words = memoryview(self._map).cast("q")

    def close(self) -> None:
        """Close the shared memory."""
        self.words.release()
        if self._map is not None:
            self._map.close()

    @property
    def held_ns(self) -> int:
        """The total time of all pauses."""
        return self.words[_HELD]

    @property
    def granted_ns(self) -> int:
        """The time at which it pauses if no more is granted."""
        return self.words[_GRANTED]

    @property
    def kept_stops(self) -> range:
        """The numbers of the pauses in memory, without the one that may be overwritten now."""
        stops = self.words[_STOPS]
        return range(max(0, stops - KEPT_STOPS + 1), stops)

    def now_ns(self) -> int:
        """The time."""
        # The keeper changes the total before it grants more. In this order of reading, the result
        # is a time that the clock had after the first line.
        granted_ns = self.words[_GRANTED]
        held_ns = self.words[_HELD]
        return min(monotonic_ns() - held_ns, granted_ns)

    def at_ns(self, moment_ns: int) -> int:
        """The time of the clock at a recent time of the system's monotonic clock."""
        latest_ns = self.words[_GRANTED]
        stops = self.kept_stops
        if not stops:
            return min(moment_ns, latest_ns)
        ended_ns, held_ns = self._stop(stops[-1])
        if moment_ns < ended_ns:
            later = bisect_right(stops, moment_ns, key=lambda stop: self._stop(stop)[0])
            ended_ns, held_ns = self._stop(stops[later])
            latest_ns = ended_ns - held_ns
            held_ns = self._stop(stops[later - 1])[1] if later else 0
        return min(moment_ns - held_ns, latest_ns)

    def _stop(self, number: int) -> tuple[int, int]:
        """The end of a pause, and the total of all pauses until then."""
        at = HEADER_WORDS + 2 * (number % KEPT_STOPS)
        return self.words[at], self.words[at + 1]


class ClockKeeper:
    """The clock of the process that keeps it; others open it at `path` while this process lives."""

    def __init__(self, granted_ns: int) -> None:
        """A clock that runs for some nanoseconds from now, and then only if more is granted."""
        descriptor = os.memfd_create("clock")
        os.fchmod(descriptor, 0o600)  # for agents without privileges, which open it by its path
        os.ftruncate(descriptor, _BYTES)
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self._words = memoryview(mmap.mmap(descriptor, _BYTES)).cast("q")
        self.held_ns = 0
        self._granted_ns = self._words[_GRANTED] = monotonic_ns() + granted_ns

    def now_ns(self) -> int:
        """The time; if the granted time has passed, the clock pauses there until now."""
        now_ns = monotonic_ns() - self.held_ns
        if now_ns > self._granted_ns:
            self._hold(now_ns - self._granted_ns)
            return self._granted_ns
        return now_ns

    def grant(self, until_ns: int) -> None:
        """Let the clock run until a time, unless more is granted already."""
        if until_ns > self._granted_ns:
            self._granted_ns = self._words[_GRANTED] = until_ns

    def _hold(self, span_ns: int) -> None:
        """Record a pause that ends now; its data are complete before its number is visible."""
        words, stops = self._words, self._words[_STOPS]
        self.held_ns += span_ns
        at = HEADER_WORDS + 2 * (stops % KEPT_STOPS)
        words[at], words[at + 1] = self._granted_ns + self.held_ns, self.held_ns
        words[_STOPS], words[_HELD] = stops + 1, self.held_ns
