"""The same answers as tshark, field for field, on real captures and on what its tools write."""

import gzip
import shutil
import struct
import subprocess
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.capture_files import (
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

pytestmark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="needs tshark: run scripts/setup"
)

FIELDS = {
    "number": "frame.number",
    "time_ns": "frame.time_epoch",
    "captured_bytes": "frame.cap_len",
    "wire_bytes": "frame.len",
    "source": "ip.src",
    "target": "ip.dst",
    "source_v6": "ipv6.src",
    "target_v6": "ipv6.dst",
    "ttl": "ip.ttl",
    "ip_id": "ip.id",
    "fragment_offset": "ip.frag_offset",
    "more_fragments": "ip.flags.mf",
    "protocol": "ip.proto",
    "udp_source": "udp.srcport",
    "udp_target": "udp.dstport",
    "udp_length": "udp.length",
    "tcp_source": "tcp.srcport",
    "tcp_target": "tcp.dstport",
    "icmp_type": "icmp.type",
    "icmp_code": "icmp.code",
    "icmp6_type": "icmpv6.type",
    "icmp6_code": "icmpv6.code",
}
# With fragments put together, tshark shows the ports of a datagram in its last fragment.
SETTINGS = ["-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE"]
OF_QUOTED_IP = ["source", "target", "protocol"]
QUOTED = ["quoted_source", "quoted_target", "quoted_protocol", "quoted_id"]
QUOTED += ["quoted_source_port", "quoted_target_port"]
Row = dict[str, Any]


def by_tshark(path: Path) -> list[Row]:
    """What tshark says, in our words; of a field that a packet has twice, all of it."""
    wanted = [word for field in FIELDS.values() for word in ("-e", field)]
    command = ["tshark", "-n", "-r", str(path), *SETTINGS, "-T", "fields", "-E", "aggregator=;"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    return [_in_our_words(dict(zip(FIELDS, line, strict=True))) for line in lines]


def _in_our_words(line: dict[str, str]) -> Row:
    """The packet itself comes first, then the packet that it quotes if it is an ICMP error."""
    values = {name: text.split(";") for name, text in line.items()}
    row = {name: _number(name, texts[0]) for name, texts in values.items()}
    row |= dict.fromkeys(QUOTED)
    if row["icmp_type"] is not None and len(values["source"]) > 1:
        quoted = {name: texts[-1] for name, texts in values.items()}
        row |= {f"quoted_{name}": _number(name, quoted[name]) for name in OF_QUOTED_IP}
        row["quoted_id"] = _number("ip_id", quoted["ip_id"])
        for end in ("source", "target"):
            row[f"quoted_{end}_port"], row[f"udp_{end}"] = row[f"udp_{end}"], None
        row["udp_length"] = None
    return row


def _number(name: str, text: str) -> Any:
    if not text or name.endswith("_v6"):
        return text or None
    if name == "time_ns":
        seconds, _, fraction = text.partition(".")
        return int(seconds) * 10**9 + int(fraction.ljust(9, "0"))
    if name in ("source", "target"):
        return int(IPv4Address(text))
    if name == "more_fragments":
        return text == "1"
    return int(text, 0) * (8 if name == "fragment_offset" else 1)


def in_common_words(ours: Row) -> Row:
    """Our row in the words of `by_tshark`, where IPv4 and IPv6, UDP and TCP have fields apart."""
    row: Row = dict.fromkeys(FIELDS)
    row |= {name: ours[name] for name in (*FIELDS, *QUOTED) if name in ours}
    is_v4, protocol = ours["source"] is not None, ours["protocol"]
    if not is_v4:
        row |= dict.fromkeys(["ttl", "ip_id", "fragment_offset", "more_fragments", "protocol"])
    if protocol in (6, 17):
        name = "tcp" if protocol == 6 else "udp"
        row |= {f"{name}_source": ours["source_port"], f"{name}_target": ours["target_port"]}
    if protocol == 58:
        row |= {"icmp6_type": ours["icmp_type"], "icmp6_code": ours["icmp_code"]}
        row |= {"icmp_type": None, "icmp_code": None}
    return row


# Where we differ: tshark shows what there is of a header that is cut, we take it whole or not.
CUT_IPV4 = ["source", "ttl", "ip_id", "fragment_offset", "more_fragments", "protocol"]
EXPLAINED: dict[str, Row] = {
    "ipv4_invalid_length.pcap": dict.fromkeys(CUT_IPV4),
    "ipv6_39_byte_header.pcap": {"source_v6": None},
}


def assert_same(path: Path) -> None:
    ours, theirs = [in_common_words(row) for row in rows(path)], by_tshark(path)
    assert len(ours) == len(theirs) > 0
    for mine, their in zip(ours, theirs, strict=True):
        assert mine == their | EXPLAINED.get(path.name, {})


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
