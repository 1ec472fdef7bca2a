"""The future of a simulation: whatever is added when, events come in order."""

from hypothesis import given
from hypothesis import strategies as st

from agents.runtime.event_queue import SLOT_BITS, Event, EventQueue

END_US = 1 << 62
DELAYS_US = st.sampled_from([0, 1, 2, 100]) | st.integers(0, 5 << SLOT_BITS)


def pop(queue: EventQueue) -> Event | None:
    return queue.near.pop() if queue.near or queue.approach(END_US) else None


@given(st.lists(st.lists(DELAYS_US, max_size=4), max_size=60), st.booleans())
def test_events_come_by_time_and_then_as_added(batches: list[list[int]], replaces: bool) -> None:
    """Before each event is taken, some are added that are due after the one before."""
    queue, expected, now_us, number = EventQueue(), [], 0, 0
    for batch in batches:
        for delay_us in batch:
            queue.add((now_us + delay_us, None, number))
            expected.append((now_us + delay_us, number))
            number += 1
        if replaces:
            queue.replace(queue)
        event = pop(queue)
        if event is None:
            assert not expected
            continue
        now_us, _, content = event
        expected.sort()
        assert (now_us, content) == expected.pop(0)
    left = []
    while event := pop(queue):
        left.append((event[0], event[2]))
    assert left == sorted(expected)
