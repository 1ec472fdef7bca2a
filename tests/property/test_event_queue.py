"""The queue of a simulation, against a plain sorted list."""

import heapq
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from agents.runtime.event_queue import Event, EventQueue

# How far in the future an event is added when one happens; some are in the same slot.
DELAYS_US = st.lists(st.sampled_from([0, 1, 900, 4_095, 4_096, 5_000, 70_000, 2**33]))


class Future:
    """The queue, and the same events in a list."""

    def __init__(self) -> None:
        self.queue = EventQueue()
        self.expected: list[Event] = []

    def add(self, time_us: int) -> None:
        event = (time_us, next(self.queue.numbers), None, None)
        self.queue.add(event)
        self.expected.append(event)

    def check_until(self, time_us: int, delays_us: Iterator[int]) -> None:
        """Take events as the simulator does, and let some of them add others."""
        queue, near, added = self.queue, self.queue.near, self.queue.added
        while near or added or queue.approach(time_us):
            if added and (not near or added[0] < near[-1]):
                event = heapq.heappop(added)
            else:
                event = near.pop()
            if event[0] >= time_us:
                queue.add(event)
                break
            assert event == min(self.expected)
            self.expected.remove(event)
            if (delay_us := next(delays_us, None)) is not None:
                self.add(event[0] + delay_us)
        assert all(event[0] >= time_us for event in self.expected)
        assert sorted(queue) == sorted(self.expected)


@given(st.lists(st.integers(0, 40_000)), DELAYS_US, st.lists(st.integers(0, 90_000)))
def test_events_come_by_time_and_then_as_they_were_added(
    first: list[int], delays_us: list[int], stops: list[int]
) -> None:
    future, delays = Future(), iter(delays_us)
    for time_us in first:
        future.add(time_us)
    for stop_us in sorted(stops):
        future.check_until(stop_us, delays)
        future.add(stop_us)
    queue = future.queue
    queue.replace((time_us + 5, *rest) for time_us, *rest in queue)  # type: ignore[misc]
    future.expected = [(event[0] + 5, *event[1:]) for event in future.expected]
    future.check_until(2**40, iter(()))
    assert not future.expected
