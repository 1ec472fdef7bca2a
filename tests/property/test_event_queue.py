"""The queue of a simulation, against a plain sorted list."""

import heapq

from hypothesis import given
from hypothesis import strategies as st

from agents.runtime.event_queue import Event, EventQueue

# How far in the future events are added, whenever one has happened; some within one slot.
DELAYS_US = st.lists(st.sampled_from([0, 1, 900, 4_095, 4_096, 5_000, 70_000, 2**33]), max_size=3)


def take_before(queue: EventQueue, time_us: int) -> list[Event]:
    """The events before a time, as the simulator takes them."""
    taken = []
    while queue.near or queue.approach(time_us):
        event = heapq.heappop(queue.near)
        if event[0] >= time_us:
            queue.add(event)
            break
        taken.append(event)
    return taken


@given(st.lists(st.integers(0, 40_000)), st.lists(DELAYS_US), st.lists(st.integers(0, 90_000)))
def test_events_come_by_time_and_then_as_they_were_added(
    first: list[int], later: list[list[int]], stops: list[int]
) -> None:
    queue, expected = EventQueue(), []
    now_us = 0
    for stop_us, delays_us in zip([0, *sorted(stops)], [first, *later], strict=False):
        due = sorted(event for event in expected if event[0] < stop_us)
        assert take_before(queue, stop_us) == due
        expected = [event for event in expected if event[0] >= stop_us]
        now_us = stop_us
        for delay_us in delays_us:
            event = (now_us + delay_us, next(queue.numbers), None, None, None)
            queue.add(event)
            expected.append(event)
    assert sorted(queue) == sorted(expected)
    queue.replace((time_us + 5, *rest) for time_us, *rest in expected)  # type: ignore[misc]
    assert [time_us - 5 for time_us, *_ in take_before(queue, 2**40)] == [
        event[0] for event in sorted(expected)
    ]
