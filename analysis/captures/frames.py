"""Packets as records of a capture file: offset, length and time.

The time of a packet is in the units of the interface where it was captured.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.captures.layouts import Bytes, Flags, Ints, Values
from analysis.captures.problems import BAD_TIME, Problem
from analysis.captures.streams import Window

NEVER = np.uint64((1 << 64) - 1)  # ticks that are no valid time in any unit
_MOST_NS = (1 << 63) - 1
_MOST_OFFSET_S = 1 << 33  # the sum with a time fits 64 bits of nanoseconds
_MOST_DECIMAL, _MOST_BINARY = 28, 63
_EXACT_BINARY = 34  # a fraction of this many bits times 10^9 fits 64 bits


@dataclass(frozen=True, slots=True)
class Clock:
    """Ticks of base^-exponent seconds, counted from the epoch plus an offset."""

    base: Literal[2, 10] = 10
    exponent: int = 6
    offset_s: int = 0

    @property
    def is_usable(self) -> bool:
        """Whether its times can be nanoseconds in 64 bits."""
        most = _MOST_DECIMAL if self.base == 10 else _MOST_BINARY
        return self.exponent <= most and abs(self.offset_s) < _MOST_OFFSET_S

    def nanoseconds(self, ticks: NDArray[np.uint64]) -> tuple[Ints, Flags]:
        """Nanoseconds since the epoch, and which of them are valid."""
        if not self.is_usable:
            return np.zeros(len(ticks), np.int64), np.zeros(len(ticks), np.bool_)
        room_ns = _MOST_NS - max(self.offset_s, 0) * 10**9
        if self.base == 10:
            elapsed_ns, possible = self._decimal(ticks, room_ns)
        else:
            elapsed_ns, possible = self._binary(ticks, room_ns)
        elapsed_ns[~possible] = 0
        return elapsed_ns.astype(np.int64) + self.offset_s * 10**9, possible

    def _decimal(self, ticks: NDArray[np.uint64], room_ns: int) -> tuple[NDArray[np.uint64], Flags]:
        if self.exponent > 9:
            elapsed_ns = ticks // np.uint64(10 ** (self.exponent - 9))
            return elapsed_ns, elapsed_ns <= room_ns
        factor = 10 ** (9 - self.exponent)
        return ticks * np.uint64(factor), ticks <= room_ns // factor

    def _binary(self, ticks: NDArray[np.uint64], room_ns: int) -> tuple[NDArray[np.uint64], Flags]:
        seconds = ticks >> np.uint64(self.exponent)
        fraction = ticks & np.uint64((1 << self.exponent) - 1)
        surplus = max(self.exponent - _EXACT_BINARY, 0)
        fraction_ns = ((fraction >> np.uint64(surplus)) * np.uint64(10**9)) >> np.uint64(
            self.exponent - surplus
        )
        return seconds * np.uint64(10**9) + fraction_ns, seconds < room_ns // 10**9


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface that a capture describes."""

    name: str
    link_type: int
    clock: Clock = Clock()
    most_captured_bytes: int = 0  # 0: no limit


@dataclass
class InterfaceTable:
    """The interfaces of a section, in the order of their numbers."""

    interfaces: list[Interface] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.interfaces)

    def add(self, interface: Interface) -> None:
        """Give an interface the next number."""
        self.interfaces.append(interface)
        for derived in ("names", "link_types", "clocks", "clock_numbers"):
            self.__dict__.pop(derived, None)

    @cached_property
    def names(self) -> list[str]:
        """The name of each interface."""
        return [interface.name for interface in self.interfaces]

    @cached_property
    def link_types(self) -> Ints:
        """The link type of each interface."""
        return np.array([interface.link_type for interface in self.interfaces], np.int64)

    @cached_property
    def clocks(self) -> list[Clock]:
        """All different clocks."""
        return list(dict.fromkeys(interface.clock for interface in self.interfaces))

    @cached_property
    def clock_numbers(self) -> Ints:
        """The index in `clocks` of each interface's clock."""
        number = {clock: index for index, clock in enumerate(self.clocks)}
        return np.array([number[interface.clock] for interface in self.interfaces], np.int64)

    def nanoseconds(self, ticks: NDArray[np.uint64], interface: Ints | None) -> tuple[Ints, Flags]:
        """The times of packets by the clocks of their interfaces, and which are valid."""
        if len(self.clocks) == 1 or interface is None:
            return self.clocks[0].nanoseconds(ticks)
        time_ns, possible = np.zeros(len(ticks), np.int64), np.zeros(len(ticks), np.bool_)
        numbers = self.clock_numbers[interface]
        for number, clock in enumerate(self.clocks):
            mine = numbers == number
            time_ns[mine], possible[mine] = clock.nanoseconds(ticks[mine])
        return time_ns, possible


Order = Literal["<", ">"]


@dataclass(frozen=True)
class Section:
    """The context of records: format, byte order and interfaces."""

    form: Literal["pcap", "pcapng"]
    order: Order
    table: InterfaceTable


@dataclass(frozen=True)
class Position:
    """A boundary between two records, where reading can start."""

    offset: int
    number: int  # number of the next packet; the first of a file is 1
    section: Section

    def as_of_now(self) -> "Position":
        """A copy that does not change when interfaces are added."""
        table = InterfaceTable(list(self.section.table.interfaces))
        return replace(self, section=replace(self.section, table=table))


class Records(NamedTuple):
    """The record headers of some packets."""

    start: Ints  # offset of the packet itself
    captured: Ints
    wire: Ints
    ticks: NDArray[np.uint64] | None  # None: the capture has no times
    fraction: Values | None  # ticks since the last full second; None unless one is a second or more
    interface: Ints | None  # None: all are of interface 0


@dataclass
class Frames:
    """Some consecutive packets; valid until the next ones are read.

    Record headers are decoded only when they are needed: to find out where a file
    can be split, it is enough to walk over them.
    """

    window: Window
    head: Ints  # offsets of the records in the window
    read_records: Callable[[Bytes, Ints], Records]
    table: InterfaceTable
    number: int
    end: Position  # position after these packets and problems
    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.head)

    @property
    def data(self) -> Bytes:
        """The bytes that all offsets refer to."""
        return self.window.data

    @cached_property
    def records(self) -> Records:
        """The record headers."""
        return self.read_records(self.window.data, self.head)

    @cached_property
    def time_ns(self) -> tuple[Ints, Flags]:
        """The times of the packets in nanoseconds since the epoch, and which of them are known."""
        ticks = self.records.ticks
        if ticks is None:
            return np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        return self.table.nanoseconds(ticks, self.records.interface)

    def time_problems(self) -> list[Problem]:
        """A problem for each packet with an invalid time."""
        ticks, known = self.records.ticks, self.time_ns[1]
        if ticks is None or known.all():
            return []
        return [
            Problem(self.file_offset(index), BAD_TIME, self._what_time(int(ticks[index]), index))
            for index in np.flatnonzero(~known).tolist()
        ]

    def _what_time(self, ticks: int, index: int) -> str:
        if ticks == NEVER and self.records.fraction is not None:
            return f"expected less than a second, found {self.records.fraction[index]} ticks of it"
        return f"found {ticks} ticks"

    @property
    def is_boundary(self) -> bool:
        """Whether reading can start at `end`; not if a problem ended it there."""
        return all(problem.offset < self.end.offset for problem in self.problems)

    def file_offset(self, index: int) -> int:
        """The offset of a packet's record in the file."""
        return self.window.offset + int(self.head[index])
