"""The reader and tshark agree on all fields, for real captures and for output of its tools."""

import gzip
import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.fixtures.capture_files import (
    BEFORE_IPV4,
    LABEL,
    LAST_LABEL,
    NANO,
    PLAIN,
    SHARED_CAPTURES,
    block,
    enhanced,
    errors,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    rows,
    section,
    service_header,
    udp,
)
from tests.fixtures.tshark import assert_same, by_tshark, in_common_words

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="needs tshark: run scripts/setup"
)


@pytest.mark.skipif(not SHARED_CAPTURES.is_dir(), reason="needs the shared captures")
@pytest.mark.parametrize("path", sorted(SHARED_CAPTURES.glob("*")), ids=lambda path: path.name)
def test_real_captures(path: Path) -> None:
    assert_same(path)


IP_TYPES = (0x0800, 0x86DD)
NSH_NEXT = {0x0800: 1, 0x86DD: 2, 0x894F: 4, 0x8847: 5}


def some_packet(chance: Random) -> tuple[int, bytes]:
    """An IP packet, sometimes behind a VLAN tag, and its EtherType."""
    # Ports that tshark assigns to no other protocol.
    content = udp(chance.randbytes(chance.randrange(40)), 50_001, chance.randrange(40_000, 50_000))
    tcp = struct.pack(">HHIIBBHHH", 50_001, 50_002, 1, 1, 0x50, 0x10, 100, 0, 0)
    error = struct.pack(">BBHI", chance.choice([3, 11]), chance.randrange(3), 0, 0)
    destination_options = bytes([17, 0, 1, 4, 0, 0, 0, 0])
    fragment = struct.pack(">BBHI", 17, 0, chance.choice([1, 808]), 99)
    ip = chance.choice(
        [
            ipv4(content, ttl=chance.randrange(1, 256)),
            ipv4(content, options=b"\1" * chance.choice([4, 40])),
            ipv4(content, fragment=chance.choice([0x2000, 0x2010, 0x0020, 0x4000])),
            ipv4(tcp, 6),
            ipv4(error + ipv4(content, ttl=1), 1),
            ipv4(error + ipv4(content, options=b"\1" * 8), 1),
            ipv4(struct.pack(">BBHHH", 8, 0, 0, 1, 1), 1),
            ipv6(content),
            ipv6(tcp, 6),
            ipv6(destination_options + content, 60),
            ipv6(fragment + content, 44),
            ipv6(struct.pack(">BBHHH", 128, 0, 0, 1, 1), 58),
        ]
    )
    protocol = 0x0800 if ip[0] >> 4 == 4 else 0x86DD
    return chance.choice([(protocol, ip), (0x8100, struct.pack(">HH", 7, protocol) + ip)])


def tagged(chance: Random, protocol: int, content: bytes) -> tuple[int, bytes]:
    """A packet of a protocol behind another tag, and the EtherType of the tag."""
    kind, size = chance.choice([(0x8100, 2), (0x88A8, 2), (0xF1C1, 4), (0x88E7, 16), (0x6558, 12)])
    if protocol in NSH_NEXT and chance.random() < 0.3:
        return 0x894F, service_header(NSH_NEXT[protocol], words=chance.randrange(2, 9)) + content
    if protocol in IP_TYPES and chance.random() < 0.3:
        return 0x8847, LABEL * chance.randrange(3) + LAST_LABEL + content
    return kind, bytes(size) + struct.pack(">H", protocol) + content


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance, path = Random(4), tmp_path_factory.mktemp("mixed") / "mixed.pcap"
    packets = [some_packet(chance) for _ in range(2_000)]
    path.write_bytes(pcap([ethernet(content, protocol) for protocol, content in packets]))
    return path


def test_packets_of_all_types(mixed: Path) -> None:
    assert_same(mixed)
    assert errors(mixed) == []


def test_packets_behind_many_tags(tmp_path: Path) -> None:
    chance, path = Random(5), tmp_path / "capture"
    packets = [some_packet(chance) for _ in range(2_000)]
    for _ in range(4):
        packets = [chance.choice([packet, tagged(chance, *packet)]) for packet in packets]
    path.write_bytes(pcap([ethernet(content, protocol) for protocol, content in packets]))
    assert_same(path)
    assert errors(path) == []


@pytest.mark.parametrize(("link_type", "before"), BEFORE_IPV4.values(), ids=BEFORE_IPV4)
def test_link_types_and_the_headers_before_ip(
    link_type: int, before: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(pcap([before + ipv4(udp(b"x", 50_001, 50_002), ttl=9)] * 2, link_type))
    assert_same(path)
    assert [row["source"] for row in rows(path)] == [0x0A000001] * 2


def test_tshark_finds_no_ip_in_packets_skipped_without_error(tmp_path: Path) -> None:
    path, ip = tmp_path / "capture", ipv4(udp(b"x", 50_001, 50_002))
    path.write_bytes(pcap([ethernet(ip, ether_type) for ether_type in range(1 << 16)]))
    counted = {offset for offset, _ in errors(path)}
    offsets = range(24, 24 + (1 << 16) * (30 + len(ip)), 30 + len(ip))
    silent = [
        row["number"] - 1
        for row, offset in zip(rows(path), offsets, strict=True)
        if row["source"] is None and offset not in counted
    ]
    assert 20 < len(silent) < 50
    frames = [
        ethernet(bytes(size) + between + ip, ether_type)
        for ether_type in silent
        for size in range(0, 26, 2)
        for between in (b"", b"\x08\0")
    ]
    path.write_bytes(pcap(frames))
    assert {row["source"] for row in by_tshark(path)} == {None}


@pytest.mark.parametrize("minor_version", [0, 1, 2, 3])
def test_minor_versions(minor_version: int, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(section(minor_version=minor_version) + interface() + enhanced(PLAIN, 5))
    assert [in_common_words(row) for row in rows(path)] == by_tshark(path)


@pytest.mark.parametrize("kind", [5, 0x0BAD, 0x40000BAD])
def test_blocks_that_tshark_counts_as_packets_are_counted(kind: int, tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(section() + interface() + block(kind, bytes(12)) + enhanced(PLAIN, 5))
    assert len(rows(path)) + len(errors(path)) == len(by_tshark(path))


@pytest.mark.parametrize(
    "options",
    [
        ["-F", "pcap"],
        ["-F", "nsecpcap"],
        ["-F", "pcapng"],
        ["-F", "pcapng", "-s", "70"],
        ["-F", "pcap", "-s", "38"],
        ["-F", "pcapng", "-t", "3600.123456789"],
        ["-F", "pcapng", "-a", "3:a remark", "--capture-comment", "all of it"],
    ],
    ids=" ".join,
)
def test_captures_written_by_editcap(options: list[str], mixed: Path, tmp_path: Path) -> None:
    path = tmp_path / "edited"
    subprocess.run(["editcap", *options, str(mixed), str(path)], check=True, capture_output=True)
    ours, theirs = [in_common_words(row) for row in rows(path)], by_tshark(path)
    if "-s" in options:  # Headers are then cut, see EXPLAINED.
        names = ["number", "time_ns", "captured_bytes", "wire_bytes", "source", "protocol"]
        ours, theirs = ([{n: row[n] for n in names} for row in found] for found in (ours, theirs))
    assert ours == theirs
    assert errors(path) == []


def test_captures_written_by_mergecap(mixed: Path, tmp_path: Path) -> None:
    """One compressed file has interfaces of several link types and resolutions."""
    others = []
    for name, link_type in (("raw", 101), ("cooked", 113)):
        before = bytes(14) + b"\x08\0" if link_type == 113 else b""
        packets = [before + ipv4(udp(bytes(size), 50_001, 50_002)) for size in range(50)]
        others.append(tmp_path / name)
        others[-1].write_bytes(pcap(packets, link_type, ">", NANO))
    path = tmp_path / "merged.pcapng"
    command = ["mergecap", "-F", "pcapng", "-w", str(path), str(mixed), *map(str, others)]
    subprocess.run(command, check=True, capture_output=True)
    assert_same(path)
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert_same(path)
    assert len({row["interface"] for row in rows(path)}) == 3
