"""The effect of a channel on packets: the same computation for emulated and simulated links."""

from collections import deque
from random import Random
from typing import Literal

from topologies.underlay import Channel

Fate = Literal["lost", "overflowed"]


class ChannelModel:
    """Loss, then a queue in front of a sender of limited rate, then delay.

    It counts in nanoseconds: a small packet on a fast link takes less than a microsecond.
    """

    __slots__ = ("_departures", "_free_at_ns", "_loss", "_ns_per_byte", "_queue_packets",
                 "delay_ns", "is_plain")  # fmt: skip

    def __init__(self, channel: Channel) -> None:
        self._free_at_ns = 0
        self._departures: deque[int] = deque()
        self.configure(channel)

    def configure(self, channel: Channel) -> None:
        """Set loss, rate, queue and delay from now on."""
        self.delay_ns = channel.delay_us * 1000
        self.is_plain = is_plain(channel)
        self._ns_per_byte = 8000 / channel.rate_mbit if channel.rate_mbit else 0.0
        self._loss = channel.loss_percent / 100
        self._queue_packets = channel.queue_packets

    def due_ns(self, arrived_ns: int, size_bytes: int, chance: Random) -> int | Fate:
        """The time when a packet leaves the channel, or the reason why it is dropped."""
        if self._loss and chance.random() < self._loss:
            return "lost"
        if not self._ns_per_byte:
            return arrived_ns + self.delay_ns
        departures = self._departures
        while departures and departures[0] <= arrived_ns:
            departures.popleft()
        if (
            len(departures) > self._queue_packets
        ):  # the first one is being sent and is not in the queue
            return "overflowed"
        start_ns = max(self._free_at_ns, arrived_ns)
        self._free_at_ns = start_ns + int(size_bytes * self._ns_per_byte)
        departures.append(self._free_at_ns)
        return self._free_at_ns + self.delay_ns


def is_plain(channel: Channel) -> bool:
    """Whether a channel only delays packets."""
    return channel.rate_mbit is None and channel.loss_percent == 0
