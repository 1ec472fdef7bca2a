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
    header = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65_535, link_type)
    records = (record(packet, index, index, order) for index, packet in enumerate(packets))
    return header + b"".join(records)


def record(packet: bytes, seconds: int, fraction: int, order: str = "<", wire: int = 0) -> bytes:
    """A record of a pcap file."""
    header = (seconds, fraction, len(packet), wire or len(packet))
    return struct.pack(order + "IIII", *header) + packet


def block(kind: int, content: bytes, order: str = "<") -> bytes:
    """A block of a pcapng file."""
    content += bytes(-len(content) % 4)
    length = struct.pack(order + "I", len(content) + 12)
    return struct.pack(order + "I", kind) + length + content + length


def section(order: str = "<", minor_version: int = 0) -> bytes:
    """A section header block."""
    fields = (0x1A2B3C4D, 1, minor_version, -1)
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", *fields), order)


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


def service_header(following: int, kind: int = 2, words: int = 2) -> bytes:
    """A network service header (NSH) with metadata of zeros."""
    size = 24 if kind == 1 else words * 4
    return struct.pack(">HBBI", 0x0FC0 | words, kind, following, 0x1FF).ljust(size, b"\0")


PLAIN = ethernet(ipv4(udp(b"hello")))
# The link type and what stands before an IPv4 packet of 29 bytes.
SNAP = b"\xaa\xaa\3\0\0\0\x08\0"
LABEL, LAST_LABEL = b"\1\2\0\xff", b"\1\2\1\xff"
BEFORE_IPV4: dict[str, tuple[int, bytes]] = {
    "Ethernet": (1, ethernet(b"")),
    "VLAN": (1, ethernet(b"\0\5\x08\0", 0x8100)),
    "stacked VLANs": (1, ethernet(b"\0\5\x81\0\0\6\x91\0\0\7\x08\0", 0x88A8)),
    "MPLS": (1, ethernet(LABEL + LAST_LABEL, 0x8847)),
    "VLAN and MPLS": (1, ethernet(b"\0\5\x88\x47" + LAST_LABEL, 0x8100)),
    "802.1CB": (1, ethernet(b"\0\0\0\7\x08\0", 0xF1C1)),
    "VLAN and 802.1CB": (1, ethernet(b"\0\5\xf1\xc1\0\0\0\7\x08\0", 0x8100)),
    "HSR": (1, ethernet(b"\0\x30\0\7\x08\0", 0x892F)),
    "VN-Tag": (1, ethernet(b"\0\1\0\2\x08\0", 0x8926)),
    "802.1BR": (1, ethernet(b"\0\1\0\2\0\0\x08\0", 0x893F)),
    "Cisco metadata": (1, ethernet(b"\1\1\0\1\0\5\x08\0", 0x8909)),
    "802.1ah": (1, ethernet(b"\0\0\0\5" + ethernet(b""), 0x88E7)),
    "Ethernet in Ethernet": (1, ethernet(ethernet(b""), 0x6558)),
    "MACsec, authenticated": (1, ethernet(b"\0\0\0\0\0\1\x08\0", 0x88E5)),
    "MACsec with a channel": (1, ethernet(b"\x20\0\0\0\0\1" + bytes(8) + b"\x08\0", 0x88E5)),
    "NSH": (1, ethernet(service_header(1), 0x894F)),
    "NSH with fixed metadata": (1, ethernet(service_header(1, kind=1, words=6), 0x894F)),
    "NSH of a wrong length": (1, ethernet(service_header(1, kind=1, words=3), 0x894F)),
    "NSH with metadata": (1, ethernet(service_header(1, words=9), 0x894F)),
    "NSH with unknown metadata": (1, ethernet(service_header(1, kind=3, words=4), 0x894F)),
    "NSH and Ethernet": (1, ethernet(service_header(3) + ethernet(b""), 0x894F)),
    "NSH twice": (1, ethernet(service_header(4) + service_header(1), 0x894F)),
    "NSH and MPLS": (1, ethernet(service_header(5) + LAST_LABEL, 0x894F)),
    "PPPoE": (1, ethernet(b"\x11\0\0\1\0\x1f\0\x21", 0x8864)),
    "SNAP": (1, ethernet(SNAP, 37)),
    "SNAP, bridged": (1, ethernet(b"\xaa\xaa\3\0\0\xf8\x08\0", 37)),
    "VLAN and SNAP": (1, ethernet(b"\0\5\0\x25" + SNAP, 0x8100)),
    "LLC": (1, ethernet(b"\6\6\3", 32)),
    "raw": (101, b""),
    "raw, of BSD": (12, b""),
    "raw, of OpenBSD": (14, b""),
    "IPv4": (228, b""),
    "cooked": (113, bytes(14) + b"\x08\0"),
    "cooked, version 2": (276, b"\x08\0" + bytes(18)),
    "cooked with VLAN": (113, bytes(14) + b"\x81\0" + b"\0\5\x08\0"),
    "cooked with LLC": (113, bytes(14) + b"\0\4" + SNAP),
    "cooked with Ethernet": (113, bytes(14) + b"\0\3" + ethernet(b"")),
    "null, little-endian": (0, b"\2\0\0\0"),
    "null, big-endian": (0, b"\0\0\0\2"),
    "loop": (108, b"\0\0\0\2"),
    "PPP": (9, b"\xff\3\0\x21"),
    "PPP, short": (9, b"\x21"),
    "PPP with MPLS": (50, b"\xff\3\x02\x81" + LAST_LABEL),
    "HDLC": (104, b"\x0f\0\x08\0"),
    "HDLC with MPLS": (104, b"\x8f\0\x88\x47" + LAST_LABEL),
    "HDLC with Ethernet": (104, b"\x0f\0\x65\x58" + ethernet(b"")),
    "HDLC as PPP": (50, b"\x8f\0\x08\0"),
    "Frame Relay": (107, b"\x18\x41\3\xcc"),
    "Frame Relay, padded": (107, b"\x18\x41\3\0\xcc"),
    "Frame Relay, short address": (107, b"\x19\3\xcc"),
    "Frame Relay, long address": (107, b"\x18\x40\x40\x41\3\xcc"),
    "Frame Relay with SNAP": (107, b"\x18\x41\3\0\x80\0\0\0\x08\0"),
    "Frame Relay with PPP": (107, b"\x18\x41\3\xcf\0\x21"),
    "Frame Relay of Cisco": (107, b"\x18\x41\x08\0"),
    "Frame Relay of Cisco with MPLS": (107, b"\x18\x41\x88\x47" + LAST_LABEL),
}
