"""Where packets were captured: a name, a link type, and a clock with its own units."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.captures.arrays import Flags, Ints

_MOST_NS = (1 << 63) - 1
_MOST_OFFSET_S = 1 << 33  # with room for the time itself in 64 bits of nanoseconds
_MOST_DECIMAL, _MOST_BINARY = 28, 63
_EXACT_BINARY = 34  # a fraction of so many bits times 10^9 still fits into 64


@dataclass(frozen=True, slots=True)
class Clock:
    """Ticks of base^-exponent seconds, counted from the epoch plus an offset."""

    base: Literal[2, 10] = 10
    exponent: int = 6
    offset_s: int = 0

    @property
    def is_usable(self) -> bool:
        """Whether its times are any that nanoseconds in 64 bits can tell."""
        most = _MOST_DECIMAL if self.base == 10 else _MOST_BINARY
        return self.exponent <= most and abs(self.offset_s) < _MOST_OFFSET_S

    def nanoseconds(self, ticks: NDArray[np.uint64]) -> tuple[Ints, Flags]:
        """Nanoseconds since the epoch, and which of them are possible."""
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
    """What a capture says about where its packets come from."""

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
        """The name of each."""
        return [interface.name for interface in self.interfaces]

    @cached_property
    def link_types(self) -> Ints:
        """The link type of each."""
        return np.array([interface.link_type for interface in self.interfaces], np.int64)

    @cached_property
    def clocks(self) -> list[Clock]:
        """The different clocks."""
        return list(dict.fromkeys(interface.clock for interface in self.interfaces))

    @cached_property
    def clock_numbers(self) -> Ints:
        """Which of the different clocks each interface has."""
        number = {clock: index for index, clock in enumerate(self.clocks)}
        return np.array([number[interface.clock] for interface in self.interfaces], np.int64)

    def nanoseconds(self, ticks: NDArray[np.uint64], interface: Ints | None) -> tuple[Ints, Flags]:
        """The times of packets by the clocks of their interfaces, and which are possible."""
        if len(self.clocks) == 1 or interface is None:
            return self.clocks[0].nanoseconds(ticks)
        time_ns, possible = np.zeros(len(ticks), np.int64), np.zeros(len(ticks), np.bool_)
        numbers = self.clock_numbers[interface]
        for number, clock in enumerate(self.clocks):
            mine = numbers == number
            time_ns[mine], possible[mine] = clock.nanoseconds(ticks[mine])
        return time_ns, possible
