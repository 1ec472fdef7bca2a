"""The progress of a sweep or a computation, and the number of attempts."""

import time
from collections.abc import Callable

from testbed.sweeps.rows import Row

ATTEMPTS = 3


class Progress:
    """Prints after each run or point how many are done, and the estimated time of the others."""

    def __init__(self, total: int, done_before: int, say: Callable[[str], None]) -> None:
        self._total, self._done_before, self._done_now = total, done_before, 0
        self._start: float | None = None
        self._say = say

    def tell(self, what: str, row: Row) -> None:
        """Print that one more run or point has ended."""
        self._done_now += 1
        done = self._done_before + self._done_now
        if self._start is None:  # without the start of Spark, which happens once
            self._start = time.monotonic() - (row["wall_s"] or 0)
        left_s = (time.monotonic() - self._start) / self._done_now * (self._total - done)
        outcome = row["error"] or f"{row['verdict']} ({row['wall_s']:.1f} s)"
        left = f"; about {_duration(left_s)} left" if done < self._total else ""
        self._say(f"{done} of {self._total}: {what}: {outcome}{left}")


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
