"""Captures that are cut, damaged, mislabelled or hostile: rows that are read, and the errors."""

import gzip
import os
import struct
import zlib
from pathlib import Path

import pytest

from analysis.captures import Split, plan_splits, read_both
from tests.fixtures.capture_files import (
    LAST_LABEL,
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

TWO_GB = 2_000_000_000
NG = section() + interface()


def claims(length: int) -> bytes:
    """A record header with a given length."""
    return struct.pack("<IIII", 1, 1, length, length)


@pytest.mark.parametrize(
    ("content", "packets", "found"),
    [
        (b"", 0, [(0, "empty file")]),
        (b"\xd4", 0, [(0, "not a capture")]),
        (b"hello world, this is no capture", 0, [(0, "not a capture")]),
        (pcap([])[:23], 0, [(0, "cut short")]),
        (pcap([])[:4], 0, [(0, "cut short")]),
        (pcap([]), 0, []),
        (pcap([])[:4] + b"\x03\0" + pcap([])[6:], 0, [(4, "unknown version")]),
        (pcap([PLAIN])[:-1], 0, [(24, "cut short")]),
        (pcap([PLAIN, PLAIN])[:-1], 1, [(87, "cut short")]),
        (pcap([PLAIN]) + bytes(15), 1, [(87, "cut short")]),
        (pcap([PLAIN]) + claims(TWO_GB), 1, [(87, "impossible length")]),
        (pcap([PLAIN]) + claims(262_145) + bytes(2 << 20), 1, [(87, "impossible length")]),
        (pcap([PLAIN]) + claims(262_144) + bytes(1_000), 1, [(87, "cut short")]),
        (pcap([bytes(262_144), PLAIN]), 2, []),
        (pcap([PLAIN], 147), 1, [(20, "unknown link type")]),
        (pcap([])[:6] + b"\x05\0" + pcap([PLAIN])[8:], 1, [(6, "unknown version")]),
        (pcap([])[:6] + b"\x02\0" + pcap([PLAIN])[8:], 1, [(6, "unknown version")]),
    ],
)
def test_pcap(content: bytes, packets: int, found: list[tuple[int, str]], tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content)
    assert (len(rows(path)), errors(path)) == (packets, found)


def ng_block(kind: int, length: int, content: bytes, end: int | None = None) -> bytes:
    """A block with any stated lengths."""
    return struct.pack("<II", kind, length) + content + struct.pack("<I", end or length)


BIG = struct.pack("<IIIII", 0, 0, 0, 100, 100)
SIZE = len(NG)
STRANGER, TOO_LONG, BAD_OPTION = "unknown interface", "impossible length", "bad option"


@pytest.mark.parametrize(
    ("content", "packets", "found"),
    [
        (section(), 0, []),
        (section()[:20], 0, [(0, "cut short")]),
        (section()[:10], 0, [(0, "cut short")]),
        (section()[:8] + b"ABCD" + section()[12:], 0, [(0, "bad block")]),
        (section()[:12] + b"\x09" + section()[13:], 0, [(0, "unknown version")]),
        (section(minor_version=1) + interface() + enhanced(PLAIN), 0, [(0, "unknown version")]),
        (section(">", 3) + interface(order=">"), 0, [(0, "unknown version")]),
        (section(minor_version=2) + interface() + enhanced(PLAIN), 1, []),  # means 1.0
        (NG + enhanced(PLAIN) + section(minor_version=9), 1, [(SIZE + 80, "unknown version")]),
        # Invalid options are ignored.
        (section() + interface(options=[(9, b"\x09\0")]) + enhanced(PLAIN), 1, [(28, BAD_OPTION)]),
        (section() + interface(options=[(14, b"\1")]) + enhanced(PLAIN), 1, [(28, BAD_OPTION)]),
        (section() + block(1, b"\1" + bytes(7) + b"\2\0\x09\0" + bytes(4)), 0, [(28, BAD_OPTION)]),
        (NG + enhanced(PLAIN)[:-1], 0, [(SIZE, "cut short")]),
        (NG + enhanced(PLAIN) + bytes(3), 1, [(SIZE + 80, "cut short")]),
        # Invalid blocks are left out.
        (NG + block(0x77, b"what") + enhanced(PLAIN), 1, [(SIZE, "unknown block")]),
        # Wireshark counts these as packets.
        (NG + block(9, b"A=B\n"), 0, [(SIZE, "unknown block")]),
        (NG + block(0x0BAD, bytes(8)), 0, [(SIZE, "unknown block")]),
        (NG + enhanced(PLAIN, number=1) + enhanced(PLAIN), 1, [(SIZE, STRANGER)]),
        (NG + block(6, BIG) + enhanced(PLAIN), 1, [(SIZE, "impossible length")]),
        (NG + block(6, b"") + enhanced(PLAIN), 1, [(SIZE, "impossible length")]),
        (NG + block(6, bytes(600_000)) + enhanced(PLAIN), 1, [(SIZE, "impossible length")]),
        (section() + enhanced(PLAIN) + interface() + enhanced(PLAIN), 1, [(28, STRANGER)]),
        (section() + block(3, bytes(8)), 0, [(28, STRANGER)]),
        (section() + interface(147) + enhanced(PLAIN), 1, [(28, "unknown link type")]),
        # The ends of blocks are no longer known.
        (NG + ng_block(6, 0, bytes(40)) + enhanced(PLAIN), 0, [(SIZE, "impossible length")]),
        (NG + ng_block(6, 33, bytes(40)) + enhanced(PLAIN), 0, [(SIZE, "impossible length")]),
        (NG + ng_block(5, 24, bytes(12), 28) + enhanced(PLAIN), 0, [(SIZE, "bad block")]),
        (NG + enhanced(PLAIN) + enhanced(PLAIN)[:-4] + bytes(4), 1, [(SIZE + 80, "bad block")]),
        (NG + ng_block(6, TWO_GB, bytes(60)), 0, [(SIZE, TOO_LONG), (SIZE + 72, "cut short")]),
        (NG + ng_block(10, TWO_GB, bytes(60)), 0, [(SIZE + 72, "cut short")]),
        (NG + ng_block(1, TWO_GB, bytes(60)), 0, [(SIZE, "impossible length")]),
        (section() + block(1, b""), 0, [(28, "impossible length")]),
        (section() + block(1, b"") + NG, 0, [(28, "impossible length")]),
    ],
)  # fmt: skip
def test_pcapng(content: bytes, packets: int, found: list[tuple[int, str]], tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(content)
    assert (len(rows(path)), errors(path)) == (packets, found)


def test_very_many_interfaces(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(section() + interface() * 70_000 + enhanced(PLAIN))
    assert errors(path) == [(28 + 65_536 * 20, "bad block")]


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (ethernet(b"\x55" + ipv4(udp())[1:]), "bad IP version"),
        (ethernet(ipv6(udp())), "bad IP version"),
        (ethernet(b"\x44" + ipv4(udp())[1:]), "bad IP length"),
        (ethernet(ipv4(udp(), length=19)), "bad IP length"),
        (ethernet(ipv4(udp()))[:33], "packet ends within a header"),
        (ethernet(ipv4(udp()))[:40], "packet ends within a header"),
        (ethernet(b""), "packet ends within a header"),
        (ethernet(ipv4(b"\x0b", 1)), "packet ends within a header"),
        (ethernet(ipv6(udp())[:39], 0x86DD), "packet ends within a header"),
        (ethernet(ipv6(bytes([17, 200]) + bytes(6), 0), 0x86DD), "packet ends within a header"),
        (ethernet(ipv6(bytes(40 * 8), 0), 0x86DD), "too many headers"),
        (ethernet(b"\0\1\x81\0" * 100, 0x8100), "too many headers"),
        (ethernet(b"\0\1", 0x8100), "packet ends within a header"),
        (ethernet(ipv4(udp(b"TD\x02" + bytes(37), 7001, 7001))), "unknown version of our header"),
        (ethernet(bytes(5), 0xF1C1), "packet ends within a header"),
        (ethernet(service_header(1, words=9)[:-1], 0x894F), "packet ends within a header"),
        (ethernet(service_header(1)[:3], 0x894F), "packet ends within a header"),
        (ethernet(b"\xaa\xaa\3\0\0", 5), "packet ends within a header"),
        (ethernet(LAST_LABEL, 0x8847), "packet ends within a header"),
        (ethernet(service_header(4) * 65, 0x894F), "too many headers"),
    ],
)
def test_invalid_packets(packet: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap([PLAIN, packet, PLAIN]))
    assert [row["captured_bytes"] for row in rows(path)] == [47, len(packet), 47]
    assert errors(path) == [(87, reason)]
    # A packet that was cut by the snap length is no error; other missing bytes are.
    path.write_bytes(pcap([]) + record(packet, 1, 1, wire=len(packet) + 1))
    assert [found for _, found in errors(path)] == [reason] * (not reason.startswith("packet"))


@pytest.mark.parametrize(
    ("link_type", "before", "what"),
    [
        (1, ethernet(b"", 0x88B5), "EtherType 0x88b5"),
        (1, ethernet(b"", 0x05DD), "EtherType 0x05dd"),
        (1, ethernet(b"\0\5\xda\xda", 0x8100), "EtherType 0xdada"),
        (1, ethernet(b"", 0x8899), "EtherType 0x8899"),  # the tag of a switch
        (
            1,
            ethernet(b"\x2c\0\0\0\0\1" + bytes(10), 0x88E5),
            "MACsec that is encrypted or of another version (TCI 0x2c)",
        ),
        (1, ethernet(b"\4\0\0\0\0\1\0\0", 0x88E5), "(TCI 0x04)"),
        (1, ethernet(b"\x80\0\0\0\0\1\x08\0", 0x88E5), "(TCI 0x80)"),  # another version
        (1, ethernet(service_header(6), 0x894F), "NSH next protocol 6"),
        (1, ethernet(LAST_LABEL + bytes(4) + ethernet(b""), 0x8847), "begins with 0x00"),
        (1, ethernet(b"\x7e\x7e\3", 32), "LLC service access point 0x7e"),
        (1, ethernet(b"\xaa\xaa\3\0\x80\xc2\0\4", 37), "SNAP organisation 0x0080c2"),
        (0, b"\x63\0\0\0", "address family 99"),
        (9, b"\xff\3\0\x3d", "PPP protocol 0x003d"),
        (1, ethernet(b"\x11\0\0\1\0\x1f\0\xfd", 0x8864), "PPP protocol 0x00fd"),
        (104, b"\x0f\0\0\1", "HDLC protocol 0x0001"),
        (104, b"\x0f\0\x12\x34", "EtherType 0x1234"),
        (107, b"\x18\x41\3\xb1", "NLPID 0xb1"),
        (107, b"\x18\x40\x40\x40\x41\3\xcc", "unterminated Frame Relay address"),
        (113, bytes(14) + b"\0\5", "Linux packet type 0x0005"),
    ],
)
def test_packets_with_unsupported_layers_are_counted(
    link_type: int, before: bytes, what: str, tmp_path: Path
) -> None:
    """Nothing in these packets is known to be IP, but they may contain IP."""
    path = tmp_path / "capture"
    path.write_bytes(pcap([b"", before + ipv4(udp(b"x"))], link_type))
    assert [row["source"] for row in rows(path)] == [None, None]
    found = [problem for _, problems in read_both(Split(str(path))) for problem in problems]
    (problem,) = [problem for problem in found if problem.reason == "unknown protocol"]
    assert problem.offset == 24 + 16
    assert problem.detail.startswith("packet 2: expected IP, found ") and what in problem.detail


def test_bytes_that_were_not_captured_are_no_error_of_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    behind = {0x88B5: b"", 0x894F: service_header(6), 0x8847: LAST_LABEL}
    begins = [ethernet(header, ether_type) for ether_type, header in behind.items()]
    path.write_bytes(pcap([]) + b"".join(record(begin, 1, 1, wire=999) for begin in begins))
    assert len(rows(path)) == 3
    assert errors(path) == []


@pytest.mark.parametrize(
    ("magic", "fraction"),
    [(MICRO, 1_000_000), (MICRO, 0xFFFFFFFF), (NANO, 1_000_000_000), (NANO, 0xFFFFFFFF)],
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_invalid_fractions_of_seconds(
    magic: int, fraction: int, order: str, tmp_path: Path
) -> None:
    path = tmp_path / "capture"
    times = [(5, 1), (5, fraction), (6, fraction - 1), (7, 2)]
    packets = [record(PLAIN, *time, order) for time in times]
    path.write_bytes(pcap([], order=order, magic=magic) + b"".join(packets))
    tick_ns = 1_000 if magic == MICRO else 1
    last_ns = 6 * 10**9 + (fraction - 1) * tick_ns if fraction < 0xFFFFFFFF else None
    expected = [5 * 10**9 + tick_ns, None, last_ns, 7 * 10**9 + 2 * tick_ns]
    assert [row["time_ns"] for row in rows(path)] == expected
    assert {row["target_port"] for row in rows(path)} == {53}
    lost = [24 + at * len(packets[0]) for at, time_ns in enumerate(expected) if time_ns is None]
    assert errors(path) == [(offset, "impossible time") for offset in lost]
    found = [problem for _, problems in read_both(Split(str(path))) for problem in problems]
    assert found[0].detail == f"expected less than a second, found {fraction} ticks of it"


@pytest.mark.parametrize(
    ("options", "ticks"),
    [
        ([], (1 << 64) - 1),
        ([(9, b"\x1d")], 5),  # 10^-29 s
        ([(9, b"\xc0")], 5),  # 2^-64 s
        ([(14, struct.pack("<q", 1 << 60))], 5),
        ([(14, struct.pack("<q", 1 << 32))], (1 << 63) // 1_000 - 1),
    ],
)
def test_impossible_times(options: list[tuple[int, bytes]], ticks: int, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    head = section() + interface(options=options)
    path.write_bytes(head + enhanced(PLAIN, ticks))
    (row,) = rows(path)
    assert (row["time_ns"], row["target_port"]) == (None, 53)
    assert errors(path) == [(len(head), "impossible time")]


def test_damaged_gzip_gives_the_data_before_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "capture.gz"
    content = pcap([ethernet(ipv4(udp(os.urandom(200)))) for _ in range(1_000)])
    packed = gzip.compress(content)
    path.write_bytes(packed[: len(packed) // 2])
    assert 400 < len(rows(path)) < 600
    assert [reason for _, reason in errors(path)] == ["cut short", "damaged gzip"]
    path.write_bytes(packed[:-8] + bytes(8))  # the checksum
    assert len(rows(path)) == 1_000
    assert errors(path) == [(len(content), "damaged gzip")]
    path.write_bytes(packed + b"something else")
    assert len(rows(path)) == 1_000
    assert errors(path) == [(len(content), "damaged gzip")]
    path.write_bytes(packed[:1])
    assert errors(path) == [(0, "not a capture")]
    path.write_bytes(packed[:2])
    assert [reason for _, reason in errors(path)] == ["empty file", "damaged gzip"]


def test_a_gzip_bomb_is_unpacked_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "capture.gz"
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(NG + struct.pack("<II", 10, 400 << 20))  # more than follows
    zeros = bytes(1 << 20)
    packed += b"".join(packer.compress(zeros) for _ in range(200)) + packer.flush()
    path.write_bytes(packed)
    assert len(packed) < 1 << 20
    before = resident_mb()
    assert errors(path) == [(SIZE + 8 + (200 << 20), "cut short")]
    assert resident_mb() - before < 50


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4_096 / (1 << 20)


def test_files_that_are_no_captures(tmp_path: Path) -> None:
    assert errors(tmp_path / "missing") == [(0, "cannot be opened")]
    assert errors(tmp_path) == [(0, "cannot be opened")]
    os.mkfifo(tmp_path / "pipe")
    assert errors(tmp_path / "pipe") == [(0, "cannot be opened")]
    assert errors(Path("/dev/zero")) == [(0, "cannot be opened")]
    assert plan_splits(str(tmp_path / "missing")) == [Split(str(tmp_path / "missing"))]


def test_packets_and_errors_are_returned_together(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap([PLAIN, ethernet(ipv6(udp()))], RAW) + b"rest")
    found = list(read_both(Split(str(path))))
    assert sum(batch.num_rows for batch, _ in found if batch is not None) == 2
    problems = [problem.reason for _, problems in found for problem in problems]
    assert problems == ["bad IP version", "bad IP version", "cut short"]
