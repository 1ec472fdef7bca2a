"""The future of a simulation: events, ordered by time and then by when they were added."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any

# An event is (time_us, sequence, seat, source, content), one flat tuple, because a simulation
# makes one for every message and every timer:
# - a datagram reaches a seat: the sender's address, the datagram;
# - a seat's timer runs out: None, its name;
# - anything else (no seat): None, a function that is called with the time.
Event = tuple[int, int, Any, int | None, Any]
Call = Callable[[int], None]


class EventQueue:
    """Events to come; two at one time happen in the order in which they were added."""

    def __init__(self) -> None:
        self.heap: list[Event] = []
        self.numbers = count()

    def call_at(self, time_us: int, call: Call) -> None:
        """Call a function with the time when that time has come."""
        heapq.heappush(self.heap, (time_us, next(self.numbers), None, None, call))
