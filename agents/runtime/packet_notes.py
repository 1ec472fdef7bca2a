"""Notes on the packets of a simulation, from which rows for each crossed link are made.

During the simulation a packet costs one list entry. Rows are made from many entries at a time, with
array operations.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.runtime.event_queue import Event
from agents.runtime.forwarding import Crossings, Forwarding
from agents.runtime.numbering import Numbers
from agents.runtime.packet import FIRST_TTL, Content, Packet

WRITE_AT = 1 << 15  # packets; about ten rows each


class _Entry(NamedTuple):
    """The channels that a packet has crossed, where they were computed during its transit."""

    packet: Packet
    ttl: int
    channels: list[int]
    entered_us: list[int]
    is_dropped: bool


class Packets(NamedTuple):
    """Some packets, a column for each of their properties."""

    source: Numbers
    target: Numbers
    ttl: Numbers
    is_icmp: NDArray[np.bool_]
    contents: Sequence[Content]


class PacketNotes(ABC):
    """Collects notes of packets, and passes on rows whenever there are many."""

    def __init__(self) -> None:
        # datagrams that crossed only plain channels, as they arrived: events of the simulator
        self.arrivals: list[Event] = []
        self._entries: list[_Entry] = []

    def add(
        self, packet: Packet, channels: list[int], entered_us: list[int], is_dropped: bool
    ) -> None:
        """Add the channels that a packet has crossed; a dropped one did not leave the last."""
        self._entries.append(_Entry(packet, packet.ttl, channels, entered_us, is_dropped))

    @property
    def is_full(self) -> bool:
        """Whether there are enough notes to write."""
        return len(self.arrivals) >= WRITE_AT or len(self._entries) >= WRITE_AT

    def write(self, forwarding: Forwarding) -> None:
        """Pass on all notes; routes must not have changed since the last time."""
        if self.arrivals:
            packets, crossings = _read_arrivals(self.arrivals, forwarding)
            self._take_rows(packets, crossings, np.zeros(len(crossings.packet), dtype=bool))
            self.arrivals.clear()
        if self._entries:
            self._take_rows(*_read_entries(self._entries))
            self._entries.clear()

    @abstractmethod
    def _take_rows(
        self, packets: Packets, crossings: Crossings, dropped: NDArray[np.bool_]
    ) -> None:
        """Process some packets with their crossings and the failed ones among them."""

    def close(self) -> None:  # noqa: B027  who only counts has nothing to do
        """Finish; no more notes follow."""


class CrossingCount(PacketNotes):
    """Counts how many packets entered a link in each second."""

    def __init__(self) -> None:
        super().__init__()
        self._by_second = np.zeros(0, dtype=np.int64)

    @property
    def by_second(self) -> list[int]:
        """The counts, from the first second to the last one with a packet."""
        found: list[int] = self._by_second.tolist()
        return found

    def _take_rows(
        self, _packets: Packets, crossings: Crossings, _dropped: NDArray[np.bool_]
    ) -> None:
        counts = np.bincount(crossings.entered_us // 1_000_000, minlength=len(self._by_second))
        counts[: len(self._by_second)] += self._by_second
        self._by_second = counts


def _read_arrivals(arrivals: list[Event], forwarding: Forwarding) -> tuple[Packets, Crossings]:
    """The packets of some arrivals, and their crossings."""
    arrived_us, slots, contents = zip(*arrivals, strict=True)
    sources = [content.sender for content in contents]
    node_at = forwarding.numbering.node_at
    crossings = forwarding.cross(
        np.array([node_at[source] for source in sources]),
        np.array([slot.node for slot in slots]),
        np.array(arrived_us),
    )
    packets = Packets(
        np.array(sources),
        np.array([slot.address for slot in slots]),
        np.full(len(arrivals), FIRST_TTL),
        np.zeros(len(arrivals), dtype=bool),
        contents,
    )
    return packets, crossings


def _read_entries(entries: list[_Entry]) -> tuple[Packets, Crossings, NDArray[np.bool_]]:
    """The packets of some entries, their crossings, and the failed crossings."""
    lengths = np.array([len(entry.channels) for entry in entries])
    ends = np.cumsum(lengths)
    number = np.repeat(np.arange(len(entries)), lengths)
    crossings = Crossings(
        number,
        np.arange(len(number)) - (ends - lengths)[number],
        np.array([channel for entry in entries for channel in entry.channels]),
        np.array([time_us for entry in entries for time_us in entry.entered_us]),
    )
    dropped = np.zeros(len(number), dtype=bool)
    dropped[ends - 1] = [entry.is_dropped for entry in entries]
    return _columns_of(entries), crossings, dropped


def _columns_of(entries: list[_Entry]) -> Packets:
    return Packets(
        np.array([entry.packet.source for entry in entries]),
        np.array([entry.packet.target for entry in entries]),
        np.array([entry.ttl for entry in entries]),
        np.array([entry.packet.is_icmp for entry in entries]),
        [entry.packet.content for entry in entries],
    )
