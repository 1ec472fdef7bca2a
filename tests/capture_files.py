"""Captures made byte by byte, and what our reader makes of them."""

import struct
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from analysis.captures import Split, read_errors, read_split

MICRO, NANO = 0xA1B2C3D4, 0xA1B23C4D
ETHERNET, RAW = 1, 101
SHARED_CAPTURES = Path(__file__).parents[2] / "shared" / "data" / "captures"


def rows(path: Path) -> list[dict[str, Any]]:
    """All packets of a capture."""
    return [row for batch in read_split(Split(str(path))) for row in batch.to_pylist()]


def errors(path: Path) -> list[tuple[int, str]]:
    """The offset and the reason of everything that could not be read."""
    found = [row for batch in read_errors(Split(str(path))) for row in batch.to_pylist()]
    return [(row["offset"], row["reason"]) for row in found]


def pcap(
    packets: Iterable[bytes], link_type: int = ETHERNET, order: str = "<", magic: int = MICRO
) -> bytes:
    """A pcap file; packet i came at i seconds and i ticks."""
    content = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65_535, link_type)
    for index, packet in enumerate(packets):
        content += record(packet, index, index, order)
    return content


def record(packet: bytes, seconds: int, fraction: int, order: str = "<", wire: int = 0) -> bytes:
    """A record of a pcap file."""
    header = (seconds, fraction, len(packet), wire or len(packet))
    return struct.pack(order + "IIII", *header) + packet


def block(kind: int, content: bytes, order: str = "<") -> bytes:
    """A block of a pcapng file."""
    content += bytes(-len(content) % 4)
    length = struct.pack(order + "I", len(content) + 12)
    return struct.pack(order + "I", kind) + length + content + length


def section(order: str = "<") -> bytes:
    """A section header block."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(
    link_type: int = ETHERNET, options: Iterable[tuple[int, bytes]] = (), order: str = "<",
    snaplen: int = 0,
) -> bytes:  # fmt: skip
    """An interface description block."""
    content = struct.pack(order + "HHI", link_type, 0, snaplen)
    for code, value in options:
        content += struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
    return block(1, content, order)


def enhanced(packet: bytes, ticks: int = 0, number: int = 0, order: str = "<") -> bytes:
    """An enhanced packet block."""
    header = (number, ticks >> 32, ticks & 0xFFFFFFFF, len(packet), len(packet))
    return block(6, struct.pack(order + "IIIII", *header) + packet, order)


def ethernet(content: bytes, ether_type: int = 0x0800) -> bytes:
    """An Ethernet frame."""
    return bytes(range(12)) + struct.pack(">H", ether_type) + content


def ipv4(
    content: bytes, protocol: int = 17, options: bytes = b"", fragment: int = 0, ttl: int = 61,
    length: int | None = None,
) -> bytes:  # fmt: skip
    """A packet from 10.0.0.1 to 10.0.0.2 with the id 4660."""
    size = 20 + len(options)
    total = size + len(content) if length is None else length
    head = (0x40 | size // 4, 0, total, 4660, fragment, ttl, protocol, 0)
    addresses = IPv4Address("10.0.0.1").packed + IPv4Address("10.0.0.2").packed
    return struct.pack(">BBHHHBBH", *head) + addresses + options + content


def ipv6(content: bytes, following: int = 17, length: int | None = None) -> bytes:
    """A packet from 2001:db8::1 to 2001:db8::2."""
    head = (6 << 28, len(content) if length is None else length, following, 63)
    ends = IPv6Address("2001:db8::1").packed + IPv6Address("2001:db8::2").packed
    return struct.pack(">IHBB", *head) + ends + content


def udp(content: bytes = b"", source: int = 5000, target: int = 53) -> bytes:
    """A UDP datagram."""
    return struct.pack(">HHHH", source, target, 8 + len(content), 0) + content


PLAIN = ethernet(ipv4(udp(b"hello")))
