"""The blocks of pcapng that describe: sections and interfaces, with their options.

See draft-ietf-opsawg-pcapng.
"""

from collections.abc import Iterator
from struct import Struct
from typing import Literal

from analysis.captures.frames import Order
from analysis.captures.interfaces import Clock, Interface

SECTION_HEADER = 0x0A0D0D0A
INTERFACE = 1
PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 2, 3, 6
# Names, statistics, journals, secrets, events of other tools: nothing of it is a packet.
OF_NO_INTEREST = frozenset({4, 5, 7, 8, 9, 10, 0x80000001, 0x0BAD, 0x40000BAD})

MAGIC = b"\x0a\x0d\x0d\x0a"
_ORDERS: dict[bytes, Order] = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
LEAST_BLOCK_BYTES, LEAST_SECTION_BYTES, LEAST_INTERFACE_BYTES = 12, 28, 20
VERSION = 1
_END_OF_OPTIONS, _NAME, _RESOLUTION, _TIME_OFFSET = 0, 2, 9, 14


def section_order(block: memoryview) -> Order | None:
    """The byte order of the section that starts with this block, if it says one."""
    return _ORDERS.get(bytes(block[8:12]))


def read_interface(block: memoryview, order: Order, number: int) -> Interface:
    """The interface that a whole block describes; options that make no sense are left out."""
    link_type, most = Struct(order + "8xH2xI").unpack_from(block)
    name, base, exponent, offset_s = str(number), 10, 6, 0
    for code, value in _options(block[16:-4], order):
        if code == _NAME and value:
            name = value.rstrip(b"\0").decode(errors="replace") or name
        elif code == _RESOLUTION and len(value) == 1:
            base, exponent = (2, value[0] & 0x7F) if value[0] & 0x80 else (10, value[0])
        elif code == _TIME_OFFSET and len(value) == 8:
            (offset_s,) = Struct(order + "q").unpack(value)
    wanted: Literal[2, 10] = 2 if base == 2 else 10
    return Interface(name, link_type, Clock(wanted, exponent, offset_s), most)


def _options(content: memoryview, order: Order) -> Iterator[tuple[int, bytes]]:
    header, at = Struct(order + "HH"), 0
    while at + header.size <= len(content):
        code, length = header.unpack_from(content, at)
        at += header.size
        if code == _END_OF_OPTIONS or at + length > len(content):
            return
        yield code, bytes(content[at : at + length])
        at += (length + 3) & ~3
