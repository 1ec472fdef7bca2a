"""The three blocks of pcapng that hold a packet: enhanced, simple, and the obsolete one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.captures import pcapng_blocks as blocks
from analysis.captures.arrays import Bytes, Flags, Ints, gather, layout
from analysis.captures.frames import Order, Records
from analysis.captures.interfaces import InterfaceTable
from analysis.captures.window import MOST_CAPTURED_BYTES

Words = NDArray[np.uint32]
_LENGTH, _INTERFACE = 1, 2  # where all of them have these, in words of 4 bytes
_TRAILER_BYTES = 4


@dataclass(frozen=True)
class PacketForm:
    """How one type of block holds a packet; `_at` is the place of a field in bytes."""

    header_bytes: int
    wire_at: int
    captured_at: int | None = None  # None: as much as there was, up to the interface's limit
    interface_bytes: Literal[0, 2, 4] = 4  # 0: it does not say, and means the first
    ticks_at: int | None = None  # two words, the upper one first; None: it does not say

    @property
    def least_bytes(self) -> int:
        """The length of a block with an empty packet."""
        return self.header_bytes + _TRAILER_BYTES

    def check(
        self, words: Words, heads: Ints, order: Order, interfaces: int
    ) -> tuple[Flags, Flags]:
        """Which packets fit into their blocks, and of which the interface was described."""
        if self.interface_bytes == 0:
            knows = np.full(len(heads), interfaces > 0)
        else:
            interface = words[heads + _INTERFACE]
            if self.interface_bytes == 2:
                half = np.uint32(16)
                interface = interface & np.uint32(0xFFFF) if order == "<" else interface >> half
            knows = interface < interfaces
        if self.captured_at is None:
            return np.full(len(heads), True), knows
        room = words[heads + _LENGTH] - np.uint32(self.least_bytes)
        captured = words[heads + (self.captured_at >> 2)]
        return (captured <= room) & (captured <= MOST_CAPTURED_BYTES), knows

    def reader(self, order: Order, table: InterfaceTable) -> Callable[[Bytes, Ints], Records]:
        """What reads the packets of such blocks in a section."""
        limit = table.interfaces[0].most_captured_bytes if len(table) else 0
        most = min(limit or MOST_CAPTURED_BYTES, MOST_CAPTURED_BYTES)
        return partial(_read_records, self, self._layout(order), most)

    def _layout(self, order: Order) -> np.dtype[np.void]:
        word = order + "u4"
        fields: dict[str, tuple[str | np.dtype[np.void], int]] = {
            "length": (word, 4),
            "wire": (word, self.wire_at),
        }
        if self.interface_bytes:
            fields["interface"] = (f"{order}u{self.interface_bytes}", 8)
        if self.captured_at is not None:
            fields["captured"] = (word, self.captured_at)
        if self.ticks_at is not None:
            fields |= {"upper": (word, self.ticks_at), "lower": (word, self.ticks_at + 4)}
        return layout(self.header_bytes, **fields)


FORMS = {
    blocks.ENHANCED_PACKET: PacketForm(28, wire_at=24, captured_at=20, ticks_at=12),
    blocks.SIMPLE_PACKET: PacketForm(12, wire_at=8, interface_bytes=0),
    blocks.PACKET: PacketForm(28, wire_at=24, captured_at=20, interface_bytes=2, ticks_at=12),
}


def _read_records(
    form: PacketForm, form_layout: np.dtype[np.void], most: int, data: Bytes, head: Ints
) -> Records:
    rows = gather(data, head, form_layout)
    wire = rows["wire"].astype(np.int64)
    if form.captured_at is None:
        room = rows["length"].astype(np.int64) - form.least_bytes
        captured = np.minimum(np.minimum(wire, most), room)
    else:
        captured = rows["captured"].astype(np.int64)
    ticks = None
    if form.ticks_at is not None:
        ticks = rows["upper"].astype(np.uint64) << np.uint64(32) | rows["lower"]
    interface = rows["interface"].astype(np.int64) if form.interface_bytes else None
    return Records(head + form.header_bytes, captured, wire, ticks, interface)
