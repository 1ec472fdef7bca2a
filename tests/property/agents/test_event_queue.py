"""The order of calls in the simulator, compared with a sorted list."""

from functools import partial
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.runtime.simulator import Simulator
from tests.fixtures.scripted import line

# The delays of events that a call adds; some are in the same bucket.
DELAYS_US = st.lists(st.sampled_from([0, 1, 900, 4_095, 4_096, 5_000, 70_000, 2**33]))

Planned = tuple[int, int]  # the time, and the number of calls planned before


class Future:
    """Calls that a simulator is to make, and a list of the same calls."""

    def __init__(self, delays_us: list[int]) -> None:
        self.simulator = Simulator(line())
        self.expected: list[Planned] = []
        self._until_us = 0
        self._numbers = count()
        self._delays_us = iter(delays_us)

    def add(self, time_us: int) -> None:
        planned = (time_us, next(self._numbers))
        self.expected.append(planned)
        self.simulator.call_at(time_us, partial(self._happen, planned))

    def run(self, until_us: int) -> None:
        self._until_us = until_us
        self.simulator.run(until_us)
        assert all(time_us >= until_us for time_us, _ in self.expected)

    def _happen(self, planned: Planned, now_us: int) -> None:
        """Check that this call is due, and optionally add another."""
        assert planned == min(self.expected)
        assert now_us == planned[0] < self._until_us
        self.expected.remove(planned)
        if (delay_us := next(self._delays_us, None)) is not None:
            self.add(now_us + delay_us)


@settings(deadline=None)
@given(st.lists(st.integers(0, 40_000)), DELAYS_US, st.lists(st.integers(0, 90_000)))
def test_events_are_ordered_by_time_and_then_by_insertion(
    first: list[int], delays_us: list[int], stops: list[int]
) -> None:
    future = Future(delays_us)
    for time_us in first:
        future.add(time_us)
    for stop_us in sorted(stops):
        future.run(stop_us)
        future.add(stop_us)
        future.simulator.set_delay(stop_us, "r1", "r2", 2_000)  # which rebuilds the queue
    future.run(2**40)
    assert not future.expected
