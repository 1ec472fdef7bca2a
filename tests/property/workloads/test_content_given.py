"""A subscription in an experiment file has the same form as in the output."""

from hypothesis import given
from hypothesis import strategies as st

from workloads.content.given import parse_subscriptions
from workloads.content.subscription import RANGES, subscribe


@given(st.dictionaries(st.integers(0, 4), st.sampled_from(RANGES)))
def test_a_printed_subscription_can_be_read(ranges: dict[int, tuple[int, int]]) -> None:
    wanted = subscribe(ranges)
    assert parse_subscriptions(f"h1: {wanted}", 5) == {"h1": (wanted,)}
