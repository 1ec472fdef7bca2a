"""Stalls of the machine: times in which the hypervisor deschedules the virtual machine.

`python -m benchmarks.stalls PROCESSOR` repeatedly sleeps half a millisecond at the highest
priority, prints the start and end of each sleep that took far too long, and ends when its standard
input ends.
"""

import os
import select
import subprocess
import sys
import time

import numpy as np
from numpy.typing import NDArray

_NAP_S = 0.0005
_STALL_S = 0.0005


class StallWatch:
    """A context manager; afterwards `stalls` has the start and end of each stall, in seconds."""

    def __enter__(self) -> "StallWatch":
        self.stalls: NDArray[np.float64] = np.empty((0, 2))
        self._watchers = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.stalls", str(processor)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for processor in sorted(os.sched_getaffinity(0))
        ]
        return self

    def __exit__(self, *_: object) -> None:
        printed = "".join(watcher.communicate()[0] for watcher in self._watchers)
        self.stalls = np.array(printed.split(), dtype=np.float64).reshape(-1, 2)

    def overlaps(
        self, start_s: NDArray[np.float64], end_s: NDArray[np.float64]
    ) -> NDArray[np.bool]:
        """Which of the given intervals overlap a stall of a processor."""
        hits: NDArray[np.bool] = np.zeros(len(start_s), dtype=bool)
        for stall_start, stall_end in self.stalls:
            hits |= (start_s < stall_end) & (end_s > stall_start)
        return hits


def _watch(processor: int) -> None:
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    while not select.select([sys.stdin], [], [], 0)[0]:
        before = time.time()
        time.sleep(_NAP_S)
        after = time.time()
        if after - before > _NAP_S + _STALL_S:
            print(before, after)


if __name__ == "__main__":
    _watch(int(sys.argv[1]))
