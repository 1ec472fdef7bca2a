"""Packets as a capture file frames them: where they lie, how long they are, when they came."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from analysis.captures.arrays import Bytes, Flags, Ints
from analysis.captures.interfaces import InterfaceTable
from analysis.captures.problems import BAD_TIME, Problem
from analysis.captures.window import Window

Order = Literal["<", ">"]


@dataclass(frozen=True)
class Section:
    """What must be known to read records: the format, its byte order and its interfaces."""

    form: Literal["pcap", "pcapng"]
    order: Order
    table: InterfaceTable


@dataclass(frozen=True)
class Position:
    """A boundary between two records, where reading can start."""

    offset: int
    number: int  # of the packet that comes next; the first of a file is 1
    section: Section

    def as_of_now(self) -> "Position":
        """A copy that does not change when interfaces are added."""
        table = InterfaceTable(list(self.section.table.interfaces))
        return replace(self, section=replace(self.section, table=table))


class Records(NamedTuple):
    """The record headers of some packets."""

    start: Ints  # where the packet itself begins
    captured: Ints
    wire: Ints
    ticks: NDArray[np.uint64] | None  # None: the capture does not say when
    interface: Ints | None  # None: all are of interface 0


@dataclass
class Frames:
    """Some consecutive packets; valid until the next ones are asked for.

    Records are read from their headers only when they are asked for: to find out where a file
    can be split, it is enough to walk over them.
    """

    window: Window
    head: Ints  # where the records begin in the window
    read_records: Callable[[Bytes, Ints], Records]
    table: InterfaceTable
    number: int
    end: Position  # behind these packets and these problems
    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.head)

    @property
    def data(self) -> Bytes:
        """The bytes in which all places are."""
        return self.window.data

    @cached_property
    def records(self) -> Records:
        """The record headers."""
        return self.read_records(self.window.data, self.head)

    @cached_property
    def time_ns(self) -> tuple[Ints, Flags]:
        """When the packets came, in nanoseconds since the epoch, and for which that is known."""
        ticks = self.records.ticks
        if ticks is None:
            return np.zeros(len(self), np.int64), np.zeros(len(self), np.bool_)
        return self.table.nanoseconds(ticks, self.records.interface)

    def time_problems(self) -> list[Problem]:
        """A problem for each packet whose time cannot be."""
        ticks, known = self.records.ticks, self.time_ns[1]
        if ticks is None or known.all():
            return []
        return [
            Problem(self.file_offset(index), BAD_TIME, f"found {ticks[index]} ticks")
            for index in np.flatnonzero(~known).tolist()
        ]

    @property
    def is_boundary(self) -> bool:
        """Whether reading can start at `end`: at what made it stop, it would stop again."""
        return all(problem.offset < self.end.offset for problem in self.problems)

    def file_offset(self, index: int) -> int:
        """Where in the file a packet's record begins."""
        return self.window.offset + int(self.head[index])
