"""The blocks of a pcapng file, as bytes (draft-ietf-opsawg-pcapng).

A block is type, length, body and again length; numbers are in the byte order
of this machine, which is in the section header. Times are nanoseconds since 1970.
"""

import struct

_SECTION, _INTERFACE, _STATISTICS = 0x0A0D0D0A, 1, 5
ENHANCED_PACKET = 6
PACKET_HEADER_BYTES = 28  # fields before the data in an enhanced packet block
PACKET_FRAME_BYTES = PACKET_HEADER_BYTES + 4  # with the length that ends the block
_BYTE_ORDER = 0x1A2B3C4D
_RAW_IP = 101
_NANOSECONDS = bytes([9])
_COMMENT, _IF_NAME, _IF_DESCRIPTION, _IF_TSRESOL = 1, 2, 3, 9
_SHB_OS, _SHB_USERAPPL = 3, 4
_ISB_IFRECV, _ISB_IFDROP, _ISB_USRDELIV = 4, 5, 8


def section_header(system: str, application: str, comment: str) -> bytes:
    """The block that begins a file."""
    body = struct.pack("=IHHq", _BYTE_ORDER, 1, 0, -1)
    options = (
        (_COMMENT, comment.encode()),
        (_SHB_OS, system.encode()),
        (_SHB_USERAPPL, application.encode()),
    )
    return _block(_SECTION, body + _options(*options))


def interface_description(name: str, description: str, snap_bytes: int) -> bytes:
    """The block of an interface whose packets begin with their IP header."""
    body = struct.pack("=HHI", _RAW_IP, 0, snap_bytes)
    options = (
        (_IF_NAME, name.encode()),
        (_IF_DESCRIPTION, description.encode()),
        (_IF_TSRESOL, _NANOSECONDS),
    )
    return _block(_INTERFACE, body + _options(*options))


def interface_statistics(
    interface: int, time_ns: int, received: int, dropped: int, delivered: int
) -> bytes:
    """The block with the counts of an interface: packets seen, dropped, and in the files."""
    body = struct.pack("=III", interface, time_ns >> 32, time_ns & 0xFFFFFFFF)
    counts = ((_ISB_IFRECV, received), (_ISB_IFDROP, dropped), (_ISB_USRDELIV, delivered))
    options = [(code, struct.pack("=Q", count)) for code, count in counts]
    return _block(_STATISTICS, body + _options(*options))


def _options(*options: tuple[int, bytes]) -> bytes:
    coded = [struct.pack("=HH", code, len(value)) + _padded(value) for code, value in options]
    return b"".join([*coded, bytes(4)])


def _padded(value: bytes) -> bytes:
    return value + bytes(-len(value) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("=I", len(body) + 12)
    return struct.pack("=I", kind) + length + body + length
