"""Every supported form of capture and packet, byte by byte."""

import gzip
import struct
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from agents.wire.codec import HEADER, MAGIC, VERSION
from analysis.captures.layouts import OWN_BYTES, TRANSPORT
from tests.fixtures.capture_files import (
    BEFORE_IPV4,
    ETHERNET,
    MICRO,
    NANO,
    PLAIN,
    RAW,
    block,
    enhanced,
    errors,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    record,
    rows,
    section,
    service_header,
    udp,
)

A, B = int(IPv4Address("10.0.0.1")), int(IPv4Address("10.0.0.2"))


def one(tmp_path: Path, content: bytes) -> dict[str, Any]:
    """The only packet of a capture without errors."""
    path = tmp_path / "capture"
    path.write_bytes(content)
    assert errors(path) == []
    (row,) = rows(path)
    return row


def from_packet(tmp_path: Path, packet: bytes, link_type: int = ETHERNET) -> dict[str, Any]:
    return one(tmp_path, pcap([packet], link_type))


def assert_has(row: dict[str, Any], **expected: object) -> None:
    assert {name: row[name] for name in expected} == expected


def test_every_field_of_a_plain_packet(tmp_path: Path) -> None:
    row = from_packet(tmp_path, PLAIN)
    expected = dict.fromkeys(row) | {
        "file": str(tmp_path / "capture"),
        "interface": "0",
        "number": 1,
        "time_ns": 0,
        "captured_bytes": 47,
        "wire_bytes": 47,
        "ip_version": 4,
        "source": A,
        "target": B,
        "protocol": 17,
        "ttl": 61,
        "ip_id": 4660,
        "fragment_offset": 0,
        "more_fragments": False,
        "source_port": 5000,
        "target_port": 53,
        "udp_length": 13,
    }
    assert row == expected


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(("magic", "tick_ns"), [(MICRO, 1_000), (NANO, 1)])
def test_pcap_in_both_byte_orders_and_resolutions(
    order: str, magic: int, tick_ns: int, tmp_path: Path
) -> None:
    path = tmp_path / "capture"
    content = pcap([], order=order, magic=magic)
    content += record(PLAIN, 1_700_000_000, 999_999, order)
    content += record(PLAIN[:30], 4_294_967_295, 1, order, wire=1_500)
    path.write_bytes(content)
    first, second = rows(path)
    assert_has(first, time_ns=1_700_000_000 * 10**9 + 999_999 * tick_ns, number=1, source=A)
    assert_has(second, time_ns=4_294_967_295 * 10**9 + tick_ns, number=2)
    assert_has(second, captured_bytes=30, wire_bytes=1_500, ip_version=4, source=None)
    assert errors(path) == []  # A packet that was cut by the snap length is no error.


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("options", "ticks", "time_ns"),
    [
        ([], 1_700_000_000_000_001, 1_700_000_000_000_001_000),
        ([(9, b"\x09")], 1_700_000_000_123_456_789, 1_700_000_000_123_456_789),
        ([(9, b"\x03")], 1_700_000_000_123, 1_700_000_000_123_000_000),
        ([(9, b"\x00")], 1_700_000_000, 1_700_000_000_000_000_000),
        ([(9, b"\x0c")], 1_700_000_000_123_456 * 1_000, 1_700_000_000_123_456),
        ([(9, b"\x8a")], (5 << 10) + 512, 5_500_000_000),
        ([(9, b"\xa0")], (5 << 32) + (1 << 30), 5_250_000_000),
        ([(9, b"\xbc")], (5 << 60) + (1 << 58), 5_250_000_000),
    ],
)
def test_pcapng_times(
    order: str, options: list[tuple[int, bytes]], ticks: int, time_ns: int, tmp_path: Path
) -> None:
    head = section(order) + interface(options=options, order=order)
    row = one(tmp_path, head + enhanced(PLAIN, ticks, order=order))
    assert_has(row, time_ns=time_ns, source=A, target_port=53)
    offset = [*options, (14, struct.pack(order + "q", -3_600))]
    head = section(order) + interface(options=offset, order=order)
    row = one(tmp_path, head + enhanced(PLAIN, ticks, order=order))
    assert_has(row, time_ns=time_ns - 3_600 * 10**9)


def test_interfaces_have_separate_names_link_types_and_clocks(tmp_path: Path) -> None:
    named = interface(RAW, [(1, b"a comment"), (2, b"r1-r2"), (9, b"\x09")])
    content = section() + interface() + named
    content += enhanced(ipv4(udp()), 7, 1) + enhanced(PLAIN, 7, 0) + enhanced(ipv6(udp()), 8, 1)
    path = tmp_path / "capture"
    path.write_bytes(content)
    found = rows(path)
    assert [row["interface"] for row in found] == ["r1-r2", "0", "r1-r2"]
    assert [row["time_ns"] for row in found] == [7, 7_000, 8]
    assert [row["ip_version"] for row in found] == [4, 4, 6]
    assert errors(path) == []


def test_a_new_section_resets_interfaces_but_not_the_packet_count(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    little = section("<") + interface(options=[(2, b"one")]) + enhanced(PLAIN, 1)
    big = section(">") + interface(RAW, [(2, b"two")], ">") + enhanced(ipv4(udp()), 2, order=">")
    path.write_bytes(little + big + little)
    found = [(row["number"], row["interface"], row["target_port"]) for row in rows(path)]
    assert found == [(1, "one", 53), (2, "two", 53), (3, "one", 53)]
    assert errors(path) == []


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_other_packet_blocks(order: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    simple = block(3, struct.pack(order + "I", len(PLAIN)) + PLAIN, order)
    cut = block(3, struct.pack(order + "I", 1_500) + PLAIN + bytes(1), order)
    old_header = (1, 9, 0, 5, len(PLAIN), len(PLAIN))
    old = block(2, struct.pack(order + "HHIIII", *old_header) + PLAIN, order)
    ends = interface(order=order, snaplen=48) + interface(options=[(2, b"b")], order=order)
    path.write_bytes(section(order) + ends + simple + old + cut + enhanced(PLAIN, 6, 0, order))
    found = [
        (row["interface"], row["time_ns"], row["captured_bytes"], row["wire_bytes"], row["source"])
        for row in rows(path)
    ]
    assert found == [
        ("0", None, 47, 47, A),
        ("b", 5_000, 47, 47, A),
        ("0", None, 48, 1_500, A),
        ("0", 6_000, 47, 47, A),
    ]
    assert errors(path) == []


def test_blocks_without_packets_are_skipped(tmp_path: Path) -> None:
    between = b"".join(block(kind, b"whatever") for kind in (4, 5, 10))
    huge = block(10, bytes(3_000_000))
    content = section() + interface() + between + huge + enhanced(PLAIN) + between
    assert_has(one(tmp_path, content), source=A)


IP = ipv4(udp(b"x"))
LINKS = {name: (link_type, before + IP) for name, (link_type, before) in BEFORE_IPV4.items()}


@pytest.mark.parametrize(("link_type", "packet"), LINKS.values(), ids=LINKS)
def test_link_types(link_type: int, packet: bytes, tmp_path: Path) -> None:
    row = from_packet(tmp_path, packet, link_type)
    assert_has(row, ip_version=4, source=A, target=B, ttl=61, source_port=5000, udp_length=9)


@pytest.mark.parametrize(
    ("link_type", "before"),
    [
        (1, ethernet(b"", 0x86DD)),
        (1, ethernet(b"\0\0\0\7\x86\xdd", 0xF1C1)),
        (1, ethernet(service_header(2), 0x894F)),
        (101, b""),
        (229, b""),
        (0, b"\x1e\0\0\0"),
        (9, b"\0\x57"),
        (104, b"\x0f\0\x86\xdd"),
        (107, b"\x18\x41\3\x8e"),
        (107, b"\x18\x41\x86\xdd"),
    ],
)
def test_link_types_with_ipv6(link_type: int, before: bytes, tmp_path: Path) -> None:
    row = from_packet(tmp_path, before + ipv6(udp()), link_type)
    assert_has(row, ip_version=6, source=None, source_v6="2001:db8::1", target_v6="2001:db8::2")
    assert_has(row, protocol=17, ttl=63, ip_id=None, fragment_offset=None, more_fragments=None)
    assert_has(row, source_port=5000, target_port=53, udp_length=8)


@pytest.mark.parametrize(
    ("link_type", "before"),
    [
        (1, ethernet(b"", 0x0806)),  # ARP
        (1, ethernet(b"\0\5\x88\xcc", 0x8100)),  # LLDP behind a VLAN tag
        (1, ethernet(b"\x42\x42\3", 38)),  # spanning tree
        (1, ethernet(b"\xaa\xaa\3\0\0\x0c\x20\0", 38)),  # Cisco Discovery Protocol
        (1, ethernet(b"\x11\0\0\1\0\x1f\xc0\x21", 0x8864)),  # PPPoE discovery
        (1, ethernet(service_header(0), 0x894F)),  # NSH without content
        (0, b"\7\0\0\0"),  # OSI
        (9, b"\xff\3\x80\x21"),  # PPP setup
        (104, b"\x8f\0\x80\x35"),  # SLARP
        (104, b"\x8f\0\x20\0"),  # Cisco Discovery Protocol
        (107, b"\0\1\x08\0"),  # signalling on circuit 0
        (107, b"\0\1\3\x08"),  # management
        (107, b"\x18\x41\xaf"),  # identification
        (113, bytes(14) + b"\0\1"),  # IPX
    ],
)
def test_a_packet_without_ip_has_a_row_without_fields(
    link_type: int, before: bytes, tmp_path: Path
) -> None:
    row = from_packet(tmp_path, before + IP, link_type)
    assert_has(row, captured_bytes=len(before + IP), ip_version=None, source=None, protocol=None)


def test_unusual_packets_do_not_affect_plain_ones(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    odd = [packet for link_type, packet in LINKS.values() if link_type == 1]
    odd += [ethernet(ipv6(udp()), 0x86DD), ethernet(bytes(28), 0x0806), b""]
    path.write_bytes(pcap([PLAIN, *odd, PLAIN]))
    found = rows(path)
    first, last = ({**found[at], "number": 0, "time_ns": 0} for at in (0, -1))
    assert first == last
    assert [row["target_port"] for row in found] == [53] * (len(odd) - 1) + [None, None, 53]


def test_ip_options_shift_the_payload(tmp_path: Path) -> None:
    row = from_packet(tmp_path, ethernet(ipv4(udp(b"abc"), options=bytes(40))))
    assert_has(row, source_port=5000, target_port=53, udp_length=11, protocol=17)


def test_fragments(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    pieces = [ipv4(udp(bytes(16)), fragment=0x2000), ipv4(bytes(16), fragment=3)]
    path.write_bytes(pcap([ethernet(piece) for piece in pieces]))
    first, second = rows(path)
    assert_has(first, fragment_offset=0, more_fragments=True, source_port=5000, ip_id=4660)
    assert_has(second, fragment_offset=24, more_fragments=False, source_port=None, protocol=17)


def test_ipv6_extension_headers(tmp_path: Path) -> None:
    hop_by_hop = bytes([43, 0]) + bytes(6)
    routing = bytes([60, 1]) + bytes(14)
    destination = bytes([51, 0]) + bytes(6)
    authentication = bytes([44, 4]) + bytes(22)
    fragment = struct.pack(">BBHI", 17, 0, 1, 123_456_789)
    headers = hop_by_hop + routing + destination + authentication + fragment
    row = from_packet(tmp_path, ipv6(headers + udp(), 0), RAW)
    assert_has(row, protocol=17, source_port=5000, fragment_offset=0, more_fragments=True)
    assert_has(row, ip_id=123_456_789)
    later = struct.pack(">BBHI", 17, 0, 1_480, 5)
    row = from_packet(tmp_path, ipv6(later + udp(), 44), RAW)
    assert_has(row, protocol=17, source_port=None, fragment_offset=1_480, more_fragments=False)
    row = from_packet(tmp_path, ipv6(b"", 59), RAW)
    assert_has(row, protocol=59, source_port=None)


def test_tcp_has_ports_and_no_udp_length(tmp_path: Path) -> None:
    row = from_packet(tmp_path, ethernet(ipv4(udp(bytes(12)), 6)))
    assert_has(row, protocol=6, source_port=5000, target_port=53, udp_length=None, icmp_type=None)


def test_icmp_quotes_the_packet_that_caused_the_error(tmp_path: Path) -> None:
    quoted = ipv4(udp(b"", 33_000, 33_435), ttl=1)
    row = from_packet(tmp_path, ethernet(ipv4(b"\x0b\0" + bytes(6) + quoted, 1)))
    assert_has(row, icmp_type=11, icmp_code=0, source_port=None, udp_length=None, protocol=1)
    assert_has(row, quoted_source=A, quoted_target=B, quoted_protocol=17, quoted_id=4660)
    assert_has(row, quoted_source_port=33_000, quoted_target_port=33_435)


def test_icmp_quotes_with_options_of_echoes_and_too_short_ones(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    quotes = [
        ipv4(udp(b"", 1, 2), options=bytes(8)),
        ipv4(b"\x08\0" + bytes(6), 1),
        ipv4(udp(b"", 1, 2), fragment=9),
        ipv4(b"")[:19],
        b"",
    ]
    path.write_bytes(pcap([ethernet(ipv4(b"\3\1" + bytes(6) + quote, 1)) for quote in quotes]))
    found = [
        (row["icmp_code"], row["quoted_source"], row["quoted_protocol"], row["quoted_target_port"])
        for row in rows(path)
    ]
    expected = [(1, A, 17, 2), (1, A, 1, None), (1, A, 17, None), (1, None, None, None)]
    assert found == [*expected, (1, None, None, None)]


def test_icmp_messages_that_are_no_errors_quote_nothing(tmp_path: Path) -> None:
    row = from_packet(tmp_path, ethernet(ipv4(b"\x08\0" + bytes(6) + ipv4(udp()), 1)))
    assert_has(row, icmp_type=8, icmp_code=0, quoted_source=None)
    row = from_packet(tmp_path, ipv6(b"\x80\5" + bytes(6), 58), RAW)
    assert_has(row, icmp_type=128, icmp_code=5, protocol=58)
    # In IPv6 the protocol number of ICMP has no meaning, and vice versa.
    assert_has(from_packet(tmp_path, ipv6(bytes(8), 1), RAW), icmp_type=None)
    assert_has(from_packet(tmp_path, ipv4(bytes(8), 58), RAW), icmp_type=None)


OWN = {
    "kind": 9,
    "flags": 1,
    "hop_count": 3,
    "run_id": 0xFFFFFFFE,
    "sender": A,
    "receiver": B,
    "message_id": 4_000_000_000,
    "event_id": -2,
    "sent_us": 1_234_567_890_123,
}


def own_header(magic: int = MAGIC, version: int = VERSION) -> bytes:
    values = list(OWN.values())
    values[-2] &= (1 << 64) - 1
    return HEADER.pack(magic, version, *values[:3], 2, *values[3:])


@pytest.mark.parametrize(("source", "target"), [(7001, 7001), (7001, 9), (9, 7001)])
def test_our_own_header(source: int, target: int, tmp_path: Path) -> None:
    datagram = udp(own_header() + b"ab", source, target)
    assert_has(from_packet(tmp_path, ethernet(ipv4(datagram))), **OWN)
    assert_has(from_packet(tmp_path, ethernet(ipv4(datagram, options=bytes(4)))), **OWN)
    assert_has(from_packet(tmp_path, ethernet(ipv6(datagram), 0x86DD)), **OWN)


@pytest.mark.parametrize(
    "packet",
    [
        ipv4(udp(own_header(), 5000, 7002)),  # not our port
        ipv4(udp(own_header(magic=0x5445), 7001, 7001)),
        ipv4(udp(own_header()[:-1], 7001, 7001)),  # too short
        ipv4(udp(own_header(), 7001, 7001), 6),  # not UDP
        ipv4(udp(own_header(), 7001, 7001), fragment=5),
        ipv4(b"\3\3" + bytes(6) + ipv4(udp(own_header(), 7001, 7001)), 1),  # only quoted
    ],
)
def test_data_that_resembles_our_header(packet: bytes, tmp_path: Path) -> None:
    assert_has(from_packet(tmp_path, ethernet(packet)), **dict.fromkeys(OWN))


def test_the_layout_of_our_header_is_that_of_the_codec() -> None:
    assert HEADER.size == OWN_BYTES
    for at, name in enumerate(OWN):
        values = [0] * 12
        values[at + 2 + (at > 2)] = 1
        packed = bytes(8) + HEADER.pack(*values)
        number = int.from_bytes(packed, "big")
        fields = TRANSPORT.fields
        assert fields is not None
        kind, offset = fields[name][:2]
        assert number == 1 << 8 * (TRANSPORT.itemsize - offset - kind.itemsize)


def test_gzip_is_read_with_any_file_name(tmp_path: Path) -> None:
    assert_has(one(tmp_path, gzip.compress(pcap([PLAIN]))), source=A)
    parts = gzip.compress(pcap([])) + gzip.compress(record(PLAIN, 1, 1)) + bytes(600)
    assert_has(one(tmp_path, parts), source=A, time_ns=1_000_001_000)
    assert_has(one(tmp_path, gzip.compress(section() + interface() + enhanced(PLAIN))), source=A)


def test_padding_is_not_part_of_the_ip_payload(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    padded = ethernet(ipv4(b"", 17, length=20) + b"\1\2\3\4\5\6\7\x08" * 4)
    path.write_bytes(pcap([padded]))
    (row,) = rows(path)
    assert_has(row, protocol=17, source_port=None, udp_length=None)


def test_a_packet_with_length_zero_was_captured_before_segmentation(tmp_path: Path) -> None:
    assert_has(from_packet(tmp_path, ethernet(ipv4(udp(), length=0))), source_port=5000)
    assert_has(from_packet(tmp_path, ipv6(udp(), length=0), RAW), source_port=5000)
