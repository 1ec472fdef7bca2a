"""The same answers as tshark, field for field, on real captures and on what its tools write."""

import gzip
import shutil
import struct
import subprocess
from pathlib import Path
from random import Random

import pytest

from tests.fixtures.capture_files import (
    NANO,
    SHARED_CAPTURES,
    errors,
    ethernet,
    ipv4,
    ipv6,
    pcap,
    rows,
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


def some_packet(chance: Random) -> bytes:
    # Ports that no other protocol of tshark's is known to use.
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
    tag = struct.pack(">HH", 7, protocol)
    return chance.choice([ethernet(ip, protocol), ethernet(tag + ip, 0x8100)])


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance, path = Random(4), tmp_path_factory.mktemp("mixed") / "mixed.pcap"
    path.write_bytes(pcap([some_packet(chance) for _ in range(2_000)]))
    return path


def test_packets_of_all_sorts(mixed: Path) -> None:
    assert_same(mixed)
    assert errors(mixed) == []


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
def test_what_editcap_writes(options: list[str], mixed: Path, tmp_path: Path) -> None:
    path = tmp_path / "edited"
    subprocess.run(["editcap", *options, str(mixed), str(path)], check=True, capture_output=True)
    ours, theirs = [in_common_words(row) for row in rows(path)], by_tshark(path)
    if "-s" in options:  # then headers are cut, see EXPLAINED
        names = ["number", "time_ns", "captured_bytes", "wire_bytes", "source", "protocol"]
        ours, theirs = ([{n: row[n] for n in names} for row in found] for found in (ours, theirs))
    assert ours == theirs
    assert errors(path) == []


def test_what_mergecap_writes(mixed: Path, tmp_path: Path) -> None:
    """Interfaces of several link types and resolutions in one file, packed."""
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
