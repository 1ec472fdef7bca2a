"""The blocks of pcapng: those that describe sections and interfaces, and those that hold packets.

See draft-ietf-opsawg-pcapng.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from struct import Struct
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from analysis.captures.frames import Clock, Interface, InterfaceTable, Order, Records
from analysis.captures.layouts import Bytes, Flags, Ints, gather, layout
from analysis.captures.streams import MOST_CAPTURED_BYTES

Words = NDArray[np.uint32]

SECTION_HEADER = 0x0A0D0D0A
INTERFACE = 1
PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 2, 3, 6
# Names, statistics, secrets, events of other tools: no packets. Journals and custom blocks are not
# among them, because Wireshark counts those as packets.
OF_NO_INTEREST = frozenset({4, 5, 7, 8, 10, 0x80000001})

_LENGTH_WORD, _INTERFACE_WORD = 1, 2  # offsets of these fields in blocks with a packet
_TRAILER_BYTES = 4

MAGIC = b"\x0a\x0d\x0d\x0a"
_ORDERS: dict[bytes, Order] = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
LEAST_BLOCK_BYTES, LEAST_SECTION_BYTES, LEAST_INTERFACE_BYTES = 12, 28, 20
VERSIONS = {(1, 0), (1, 2)}  # 1.2 is the same format; some tools write it by mistake
_END_OF_OPTIONS, _NAME, _RESOLUTION, _TIME_OFFSET = 0, 2, 9, 14
_OPTION_BYTES = {_RESOLUTION: 1, _TIME_OFFSET: 8}
_BINARY = 0x80  # the resolution is a power of 2, not of 10


def section_order(block: memoryview) -> Order | None:
    """The byte order of the section that starts with this block, or None without a mark."""
    return _ORDERS.get(bytes(block[8:12]))


def read_interface(block: memoryview, order: Order, number: int) -> tuple[Interface, list[str]]:
    """The interface that a block describes, and the problems of its options."""
    link_type, most = Struct(order + "8xH2xI").unpack_from(block)
    options, rest = _options(block[16:-4], order)
    oddities = [rest] if rest else []
    found: dict[int, bytes] = {}
    for code, value in options:
        if len(value) != _OPTION_BYTES.get(code, len(value)):
            wanted = _OPTION_BYTES[code]
            oddities.append(f"option {code}: expected {wanted} bytes, found {len(value)}; ignored")
        else:
            found[code] = value
    name = found.get(_NAME, b"").rstrip(b"\0").decode(errors="replace") or str(number)
    return Interface(name, link_type, _clock(found, order), most), oddities


def _clock(options: dict[int, bytes], order: Order) -> Clock:
    (resolution,) = options.get(_RESOLUTION, b"\x06")
    (offset_s,) = Struct(order + "q").unpack(options.get(_TIME_OFFSET, bytes(8)))
    base: Literal[2, 10] = 2 if resolution & _BINARY else 10
    return Clock(base, resolution & ~_BINARY, offset_s)


def _options(content: memoryview, order: Order) -> tuple[list[tuple[int, bytes]], str]:
    """The options of a block, and the problem that ends them early, if any."""
    header, at = Struct(order + "HH"), 0
    options: list[tuple[int, bytes]] = []
    while at + header.size <= len(content):
        code, length = header.unpack_from(content, at)
        at += header.size
        if code == _END_OF_OPTIONS:
            return options, ""
        if at + length > len(content):
            left = len(content) - at
            return options, f"option {code}: expected {length} bytes, found {left}; ignored"
        options.append((code, bytes(content[at : at + length])))
        at += (length + 3) & ~3
    return options, ""


@dataclass(frozen=True)
class PacketForm:
    """The format of one type of packet block; `_at` is the offset of a field in bytes."""

    header_bytes: int
    wire_at: int
    captured_at: int | None = None  # None: all bytes, up to the interface's limit
    interface_bytes: Literal[0, 2, 4] = 4  # 0: no field; the first interface
    ticks_at: int | None = None  # two words, the upper one first; None: no field

    @property
    def least_bytes(self) -> int:
        """The length of a block with an empty packet."""
        return self.header_bytes + _TRAILER_BYTES

    def check(
        self, words: Words, heads: Ints, order: Order, interfaces: int
    ) -> tuple[Flags, Flags]:
        """Which packets fit into their blocks, and which have a described interface."""
        if self.interface_bytes == 0:
            knows = np.full(len(heads), interfaces > 0)
        else:
            interface = words[heads + _INTERFACE_WORD]
            if self.interface_bytes == 2:
                half = np.uint32(16)
                interface = interface & np.uint32(0xFFFF) if order == "<" else interface >> half
            knows = interface < interfaces
        if self.captured_at is None:
            return np.full(len(heads), True), knows
        room = words[heads + _LENGTH_WORD] - np.uint32(self.least_bytes)
        captured = words[heads + (self.captured_at >> 2)]
        return (captured <= room) & (captured <= MOST_CAPTURED_BYTES), knows

    def reader(self, order: Order, table: InterfaceTable) -> Callable[[Bytes, Ints], Records]:
        """The reader of the packets of such blocks in a section."""
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
    ENHANCED_PACKET: PacketForm(28, wire_at=24, captured_at=20, ticks_at=12),
    SIMPLE_PACKET: PacketForm(12, wire_at=8, interface_bytes=0),
    PACKET: PacketForm(28, wire_at=24, captured_at=20, interface_bytes=2, ticks_at=12),
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
    return Records(head + form.header_bytes, captured, wire, ticks, None, interface)
