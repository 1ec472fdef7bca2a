"""When events are published: one after another at a constant rate."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Schedule(NamedTuple):
    """The first event is at `start_s`; events are counted from 0."""

    start_s: float
    rate_per_s: float

    def times_us(self, events: int) -> NDArray[np.int64]:
        """The times of the first so many events."""
        offsets_us = (np.arange(events) * 1e6 / self.rate_per_s).astype(np.int64)
        return int(self.start_s * 1e6) + offsets_us

    def before_s(self, event: int) -> float:
        """A time half-way between an event and the one before it."""
        return self.start_s + (event - 0.5) / self.rate_per_s
