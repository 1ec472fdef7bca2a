"""The effect of a channel on packets, without a network."""

import random

from hypothesis import given
from hypothesis import strategies as st

from topologies.channel_model import ChannelModel
from topologies.underlay import Channel


def channel(
    delay_us: int = 1_000, rate: float | None = None, loss: float = 0, queue: int = 10
) -> ChannelModel:
    return ChannelModel(Channel(delay_us, rate, loss, queue))


def test_a_plain_channel_only_delays() -> None:
    plain = channel(delay_us=250)
    assert plain.is_plain
    assert plain.due_ns(1_000, 1_500, random.Random(0)) == 251_000


def test_a_rate_sends_one_packet_after_another() -> None:
    slow = channel(delay_us=1_000, rate=8.0)  # one microsecond for each byte
    due = [slow.due_ns(0, 500, random.Random(0)) for _ in range(3)]
    assert due == [1_500_000, 2_000_000, 2_500_000]
    assert slow.due_ns(10_000_000, 500, random.Random(0)) == 11_500_000


def test_a_full_queue_drops_packets_and_recovers() -> None:
    slow = channel(rate=8.0, queue=2)
    due = [slow.due_ns(0, 1_000, random.Random(0)) for _ in range(5)]
    assert due[2:] == [4_000_000, "overflowed", "overflowed"]
    # The first packet has left after a millisecond, and one slot is free.
    assert slow.due_ns(1_000_000, 1_000, random.Random(0)) == 5_000_000
    assert slow.due_ns(1_000_000, 1_000, random.Random(0)) == "overflowed"


def test_loss_repeats_with_the_seed() -> None:
    def survivors(seed: int) -> list[bool]:
        lossy, chance = channel(loss=30.0), random.Random(seed)
        return [lossy.due_ns(0, 100, chance) != "lost" for _ in range(1_000)]

    assert survivors(1) == survivors(1) != survivors(2)
    assert 200 < survivors(1).count(False) < 400


@given(
    st.lists(st.tuples(st.integers(0, 5_000_000), st.integers(20, 1_500)), min_size=1, max_size=60),
    st.sampled_from([None, 0.5, 8.0, 1_000.0]),
    st.integers(1, 20),
)
def test_packets_stay_in_order_and_wait_at_least_the_delay(
    packets: list[tuple[int, int]], rate: float | None, queue: int
) -> None:
    tested = channel(rate=rate, queue=queue)
    arrivals = sorted(packets)
    due = [tested.due_ns(at_ns, size, random.Random(0)) for at_ns, size in arrivals]
    kept = [
        (at_ns, time)
        for (at_ns, _), time in zip(arrivals, due, strict=True)
        if isinstance(time, int)
    ]
    assert all(time >= at_ns + 1_000_000 for at_ns, time in kept)
    assert [time for _, time in kept] == sorted(time for _, time in kept)
    assert len(kept) + due.count("overflowed") == len(arrivals)
