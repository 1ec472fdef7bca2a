"""The future of a simulation: events, ordered by time and then by when they were added.

Only the events of the next few milliseconds are kept in order. Later ones lie unordered in the
slot of their time until it comes and they are sorted, so that what an event costs does not grow
with the number of timers that all agents have set.
"""

from bisect import insort_left
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import chain
from operator import itemgetter
from typing import Any

# An event is (time_us, seat, content), a plain tuple, because a simulation makes one for every
# message and every timer. What it is follows from the content:
# - a datagram reaches a seat;
# - the name of a seat's timer, which runs out;
# - without a seat, a function that is called with the time.
Event = tuple[int, Any, Any]
Call = Callable[[int], None]

TIME = itemgetter(0)
SLOT_BITS = 12  # a slot is 2**12 microseconds wide, 4 ms


class EventQueue:
    """Events to come; two at one time happen in the order in which they were added."""

    def __init__(self) -> None:
        self.near: list[Event] = []  # those of a slot, in order, the next one at the end
        self.later: dict[int, list[Event]] = {}  # by slot
        self._near_slot = -1
        self._slots: list[int] = []  # a heap of the slots with later events

    def __iter__(self) -> Iterator[Event]:
        """All events; two at one time in the order in which they were added."""
        return chain(reversed(self.near), *self.later.values())

    def call_at(self, time_us: int, call: Call) -> None:
        """Call a function with the time when that time has come."""
        self.add((time_us, None, call))

    def add(self, event: Event) -> None:
        """Add an event."""
        slot = event[0] >> SLOT_BITS
        events = self.later.get(slot)
        if events is not None:
            events.append(event)
        elif slot <= self._near_slot:
            insort_left(self.near, event, key=_latest_first)
        else:
            self.later[slot] = [event]
            heappush(self._slots, slot)

    def approach(self, time_us: int) -> bool:
        """Turn to the next slot, now that nothing is near, if it begins before a time."""
        if not self._slots or self._slots[0] << SLOT_BITS >= time_us:
            return False
        self._near_slot = heappop(self._slots)
        self.near += self.later.pop(self._near_slot)
        self.near.sort(key=TIME)
        self.near.reverse()
        return True

    def replace(self, events: Iterable[Event]) -> None:
        """Have these events instead of those so far."""
        found = list(events)
        self.near.clear()
        self.later.clear()
        self._slots.clear()
        for event in found:
            self.add(event)


def _latest_first(event: Event) -> int:
    return -event[0]
