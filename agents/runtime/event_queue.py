"""The event queue of a simulation, ordered by time and then by insertion.

Only the events of the next few milliseconds are sorted. Later events are kept unsorted in buckets
by time and are sorted when their bucket is reached. Therefore the cost of an event does not grow
with the number of timers of all agents.
"""

from bisect import insort_left
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import Any

# An event is (time_us, slot, content), a plain tuple, because a simulation creates one for every
# message and every timer. Its content determines its meaning:
# - a datagram arrives at a slot;
# - the name of a timer of the slot, which expires;
# - without a slot, a function that is called with the time.
Event = tuple[int, Any, Any]
Call = Callable[[int], None]

TIME = itemgetter(0)
BUCKET_BITS = 12  # a bucket is 2**12 microseconds wide, 4 ms


class EventQueue:
    """Events in the future; events with the same time happen in the order of insertion."""

    def __init__(self) -> None:
        self.near: list[Event] = []  # those of the current bucket in order, the next one at the end
        self.later: dict[int, list[Event]] = {}  # by bucket
        self._near_bucket = -1
        self._buckets: list[int] = []  # a heap of the buckets with later events

    def __iter__(self) -> Iterator[Event]:
        """All events; events with the same time are in the order of insertion."""
        return chain(reversed(self.near), *self.later.values())

    def call_at(self, time_us: int, call: Call) -> None:
        """Call a function with the time, at that time."""
        self.add((time_us, None, call))

    def add(self, event: Event) -> None:
        """Add an event."""
        bucket = event[0] >> BUCKET_BITS
        events = self.later.get(bucket)
        if events is not None:
            events.append(event)
        elif bucket <= self._near_bucket:
            insort_left(self.near, event, key=_latest_first)
        else:
            self.later[bucket] = [event]
            heappush(self._buckets, bucket)

    def approach(self, time_us: int) -> bool:
        """Advance to the next bucket, if it begins before a time and the current one is empty."""
        if not self._buckets or self._buckets[0] << BUCKET_BITS >= time_us:
            return False
        self._near_bucket = heappop(self._buckets)
        self.near += self.later.pop(self._near_bucket)
        self.near.sort(key=TIME)
        self.near.reverse()
        return True

    def replace(self, events: Iterable[Event]) -> None:
        """Replace all events."""
        found = list(events)
        self.near.clear()
        self.later.clear()
        self._buckets.clear()
        for event in found:
            self.add(event)


def _latest_first(event: Event) -> int:
    return -event[0]
