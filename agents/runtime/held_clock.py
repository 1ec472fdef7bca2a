"""The clock of an emulated network, which stands still while its links cannot keep up.

Whoever carries packets keeps the clock: again and again it grants some more time, never much beyond
what the next packet is due. If it cannot do so in time, because other packets take it too long or
the machine itself stood still, the clock stops for everybody at the end of what was granted, and
goes on when it is back. So delays on links hold for all who measure time with this clock, however
busy the machine is.

It is shared memory with 64-bit numbers, in nanoseconds: how long the clock has stood still in all,
the time until which it may go on, how many stops there were, and of the latest of them when they
ended, on the system's monotonic clock, and how long it had stood still by then. Its time is that
of the monotonic clock, less what it has stood still.
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
    """The clock as others than its keeper see it; at a `path` of None is one that never stops."""

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
        """Look at it no more."""
        self.words.release()
        if self._map is not None:
            self._map.close()

    @property
    def held_ns(self) -> int:
        """How long it has stood still in all."""
        return self.words[_HELD]

    @property
    def granted_ns(self) -> int:
        """The time at which it will stop if no more is granted."""
        return self.words[_GRANTED]

    @property
    def kept_stops(self) -> range:
        """The numbers of the stops that are remembered, but for one that may be overwritten now."""
        stops = self.words[_STOPS]
        return range(max(0, stops - KEPT_STOPS + 1), stops)

    def now_ns(self) -> int:
        """The time."""
        # In this order, as the keeper changes what is held before it grants more: whatever happens
        # in between, this is a time that the clock had since the first line.
        granted_ns = self.words[_GRANTED]
        held_ns = self.words[_HELD]
        return min(monotonic_ns() - held_ns, granted_ns)

    def at_ns(self, moment_ns: int) -> int:
        """The time that it was at a recent moment on the system's monotonic clock."""
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
        """When a stop ended, and how long the clock had stood still by then."""
        at = HEADER_WORDS + 2 * (number % KEPT_STOPS)
        return self.words[at], self.words[at + 1]


class ClockKeeper:
    """The clock as its keeper sees it; others find it at `path` while the keeper lives."""

    def __init__(self, granted_ns: int) -> None:
        """A clock that goes on for some nanoseconds from now, and then only if granted more."""
        descriptor = os.memfd_create("clock")
        os.fchmod(descriptor, 0o600)  # for an agent without privileges to read what it has open
        os.ftruncate(descriptor, _BYTES)
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self._words = memoryview(mmap.mmap(descriptor, _BYTES)).cast("q")
        self.held_ns = 0
        self._granted_ns = self._words[_GRANTED] = monotonic_ns() + granted_ns

    def now_ns(self) -> int:
        """The time; if what was granted is over, that is where it stands still until now."""
        now_ns = monotonic_ns() - self.held_ns
        if now_ns > self._granted_ns:
            self._hold(now_ns - self._granted_ns)
            return self._granted_ns
        return now_ns

    def grant(self, until_ns: int) -> None:
        """Let it go on until then, if it may not go further already."""
        if until_ns > self._granted_ns:
            self._granted_ns = self._words[_GRANTED] = until_ns

    def _hold(self, span_ns: int) -> None:
        """Note a stop that ends now; others see all of it before they see that there is one."""
        words, stops = self._words, self._words[_STOPS]
        self.held_ns += span_ns
        at = HEADER_WORDS + 2 * (stops % KEPT_STOPS)
        words[at], words[at + 1] = self._granted_ns + self.held_ns, self.held_ns
        words[_STOPS], words[_HELD] = stops + 1, self.held_ns
