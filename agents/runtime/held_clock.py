"""The clock of an emulated network, which stands still while its links cannot keep up.

Whoever carries packets keeps the clock: again and again it grants some more time, never much beyond
what the next packet is due. If it cannot do so in time, as other packets take it too long or
the machine itself stood still, the clock stops for everybody at the end of what was granted, and
goes on when it is back. So delays on links hold for all who measure time with this clock, however
busy the machine is.

It is shared memory with 64-bit numbers: the time that it has stood still in all, the time granted,
how often it stood still, and for the latest times when each ended and how much it was by then.
All times are nanoseconds of the monotonic clock, less what was held.
"""

import mmap
import os
from time import monotonic_ns

_HELD, _GRANTED, _STOPS = 0, 1, 2
HEADER_WORDS = 4
KEPT_STOPS = 1 << 15
_BYTES = 8 * (HEADER_WORDS + 2 * KEPT_STOPS)
_FOREVER_NS = (1 << 63) - 1
_SAME_STOP_NS = 50_000


class HeldClock:
    """The clock as others than its keeper see it; at a `path` of None is one that never stops."""

    def __init__(self, path: str | None = None) -> None:
        if path is None:
            self.words = memoryview(bytearray(8 * HEADER_WORDS)).cast("q")
            self.words[_GRANTED] = _FOREVER_NS
            return
        descriptor = os.open(path, os.O_RDONLY)
        self.words = memoryview(mmap.mmap(descriptor, _BYTES, prot=mmap.PROT_READ)).cast("q")
        os.close(descriptor)

    @property
    def held_ns(self) -> int:
        """How long it has stood still in all."""
        return self.words[_HELD]

    @property
    def granted_ns(self) -> int:
        """The time at which it will stop if no more is granted."""
        return self.words[_GRANTED]

    @property
    def stops(self) -> int:
        """How often it has stood still."""
        return self.words[_STOPS]

    def now_ns(self) -> int:
        """The time."""
        granted_ns = self.words[_GRANTED]  # first: the keeper changes it last
        return min(monotonic_ns() - self.words[_HELD], granted_ns)

    def at_ns(self, moment_ns: int) -> int:
        """The time that it was at a moment of late on the system's monotonic clock."""
        words, latest_ns, stops = self.words, self.words[_GRANTED], self.words[_STOPS]
        for stop in range(stops - 1, max(-1, stops - KEPT_STOPS), -1):
            at = HEADER_WORDS + 2 * (stop % KEPT_STOPS)
            ended_ns, held_ns = words[at], words[at + 1]
            if ended_ns <= moment_ns:
                return min(moment_ns - held_ns, latest_ns)
            latest_ns = ended_ns - held_ns
        return min(moment_ns, latest_ns)


class ClockKeeper:
    """The clock as its keeper sees it; others find it at `path` while the keeper lives."""

    def __init__(self, granted_ns: int) -> None:
        """A clock that goes on for some nanoseconds from now, and then only if granted more."""
        descriptor = os.memfd_create("clock")
        os.ftruncate(descriptor, _BYTES)
        self.path = f"/proc/{os.getpid()}/fd/{descriptor}"
        self._words = memoryview(mmap.mmap(descriptor, _BYTES)).cast("q")
        self._held_ns = 0
        self._granted_ns = self._words[_GRANTED] = monotonic_ns() + granted_ns

    def now_ns(self) -> int:
        """The time; if what was granted is over, that is where it stands still until now."""
        now_ns = monotonic_ns() - self._held_ns
        if now_ns > self._granted_ns:
            self._hold(now_ns - self._granted_ns)
            return self._granted_ns
        return now_ns

    def grant(self, until_ns: int) -> None:
        """Let it go on until then, if it may not go further already."""
        if until_ns > self._granted_ns:
            self._granted_ns = self._words[_GRANTED] = until_ns

    def _hold(self, span_ns: int) -> None:
        """Note a standstill that ends now; one that follows upon another is part of that."""
        words, stops = self._words, self._words[_STOPS]
        self._held_ns += span_ns
        now_ns = self._granted_ns + self._held_ns
        latest = HEADER_WORDS + 2 * ((stops - 1) % KEPT_STOPS)
        if not stops or now_ns - span_ns - words[latest] > _SAME_STOP_NS:
            latest = HEADER_WORDS + 2 * (stops % KEPT_STOPS)
            stops += 1
        words[latest], words[latest + 1] = now_ns, self._held_ns
        words[_STOPS], words[_HELD] = stops, self._held_ns
