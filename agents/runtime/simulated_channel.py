"""One direction of a simulated link that loses packets or has a rate.

It does to packets what the channels of the emulation's delay line do, packet by packet.
"""

from collections import deque
from random import Random
from typing import Literal

from topologies.underlay import Channel

Fate = Literal["lost", "overflowed"]


class SimulatedChannel:
    """Loss, then a queue in front of a sender of limited rate, then delay.

    It counts in nanoseconds inside: a small packet on a fast link takes less than a microsecond.
    """

    __slots__ = ("_chance", "_delay_us", "_departures", "_free_at_ns", "_loss", "_ns_per_byte",
                 "_queue_packets")  # fmt: skip

    def __init__(self, channel: Channel, chance: Random) -> None:
        self._chance = chance
        self._free_at_ns = 0
        self._departures: deque[int] = deque()
        self.configure(channel)

    def configure(self, channel: Channel) -> None:
        """Set what the channel does to packets from now on."""
        self._delay_us = channel.delay_us
        self._ns_per_byte = 8000 / channel.rate_mbit if channel.rate_mbit else 0.0
        self._loss = channel.loss_percent / 100
        self._queue_packets = channel.queue_packets

    def due_us(self, now_us: int, size_bytes: int) -> int | Fate:
        """When a packet that enters now comes out, or why it does not."""
        if self._loss and self._chance.random() < self._loss:
            return "lost"
        if not self._ns_per_byte:
            return now_us + self._delay_us
        now_ns, departures = now_us * 1000, self._departures
        while departures and departures[0] <= now_ns:
            departures.popleft()
        if len(departures) > self._queue_packets:  # the first one is being sent, not waiting
            return "overflowed"
        start_ns = max(self._free_at_ns, now_ns)
        self._free_at_ns = start_ns + int(size_bytes * self._ns_per_byte)
        departures.append(self._free_at_ns)
        return -(-self._free_at_ns // 1000) + self._delay_us


def is_plain(channel: Channel) -> bool:
    """Whether a channel only delays packets."""
    return channel.rate_mbit is None and channel.loss_percent == 0
