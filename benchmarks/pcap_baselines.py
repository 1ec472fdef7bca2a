"""Common readers of captures that read the same fields as ours.

Each returns the number of packets and a sum over their fields. The benchmark compares only readers
that agree on both.
"""

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# The names of fields in our reader.
FIELDS = (
    "time_ns", "captured_bytes", "wire_bytes", "source", "target", "protocol", "ttl", "ip_id",
    "fragment_offset", "source_port", "target_port", "udp_length",
)  # fmt: skip
_TSHARK_FIELDS = (
    "frame.time_epoch", "frame.cap_len", "frame.len", "ip.src", "ip.dst", "ip.proto", "ip.ttl",
    "ip.id", "ip.frag_offset", "udp.srcport", "udp.dstport", "udp.length",
)  # fmt: skip


class Seen(NamedTuple):
    """The result of a reader."""

    packets: int
    total: int  # sums of lengths, TTLs and ports
    cpu_s: float


class _Fields(NamedTuple):
    time_ns: int
    captured_bytes: int
    wire_bytes: int
    source: int
    target: int
    protocol: int
    ttl: int
    ip_id: int
    fragment_offset: int
    source_port: int
    target_port: int
    udp_length: int


def read_with_dpkt(path: Path) -> Seen:
    """Read with dpkt as in its examples."""
    return _timed(_dpkt(path))


def read_with_scapy(path: Path) -> Seen:
    """Read with Scapy, packet by packet."""
    return _timed(_scapy(path))


def read_with_tshark(path: Path) -> Seen:
    """Read with tshark, which prints text; the time to parse the text is not included."""
    wanted = [word for field in _TSHARK_FIELDS for word in ("-e", field)]
    text = path.with_suffix(".txt")
    with text.open("wb") as out:
        command = ["tshark", "-n", "-r", str(path), "-T", "fields", *wanted]
        before = os.times()
        subprocess.run(command, stdout=out, stderr=subprocess.DEVNULL, check=True)
        after = os.times()
    packets = total = 0
    for line in text.read_text().splitlines():
        fields = line.split("\t")
        packets += 1
        total += sum(int(fields[at]) for at in (1, 2, 6, 9, 10, 11))
    text.unlink()
    cpu_s = after.children_user + after.children_system
    return Seen(packets, total, cpu_s - before.children_user - before.children_system)


def _timed(packets: Iterator[_Fields]) -> Seen:
    before = os.times()
    found = list(packets)
    after = os.times()
    total = sum(
        p.captured_bytes + p.wire_bytes + p.ttl + p.source_port + p.target_port + p.udp_length
        for p in found
    )
    cpu_s = after.user + after.system - before.user - before.system
    return Seen(len(found), total, cpu_s)


def _dpkt(path: Path) -> Iterator[_Fields]:
    import dpkt  # imported here because only the benchmark requires it

    with path.open("rb") as file:
        for time_s, content in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(content).data
            datagram = ip.data
            yield _Fields(
                int(time_s * 10**9),
                len(content),
                len(content),
                int.from_bytes(ip.src, "big"),
                int.from_bytes(ip.dst, "big"),
                ip.p,
                ip.ttl,
                ip.id,
                ip.offset,
                datagram.sport,
                datagram.dport,
                datagram.ulen,
            )


def _scapy(path: Path) -> Iterator[_Fields]:
    from scapy.layers.inet import IP, UDP
    from scapy.utils import PcapReader

    with PcapReader(str(path)) as reader:
        for packet in reader:
            ip, datagram = packet[IP], packet[UDP]
            yield _Fields(
                int(packet.time * 10**9),
                len(packet),
                packet.wirelen or 0,
                int.from_bytes(socket.inet_aton(ip.src), "big"),
                int.from_bytes(socket.inet_aton(ip.dst), "big"),
                ip.proto,
                ip.ttl,
                ip.id,
                ip.frag,
                datagram.sport,
                datagram.dport,
                datagram.len,
            )
