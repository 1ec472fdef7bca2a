"""The table `packets`: its columns, and how each is made from the layers of packets.

Every number is signed and every column nullable, as Spark wants them. A value is null where it
does not apply or was not captured.

    file             the capture, as it was named
    interface        where the packet was captured: a name if the capture has one, else its number
    number           of the packet in its file, from 1, as in Wireshark
    time_ns          nanoseconds since the epoch
    captured_bytes   how much of the packet the capture has
    wire_bytes       how long the packet was
    ip_version       4 or 6
    source, target   IPv4 addresses as numbers
    source_v6, target_v6   IPv6 addresses as text
    protocol         what IP carries; in IPv6, behind all extension headers
    ttl              or the hop limit
    ip_id            of IPv6, only of fragments
    fragment_offset  in bytes; of IPv6, only of fragments
    more_fragments   of IPv6, only of fragments
    source_port, target_port   of UDP and TCP, in the first fragment
    udp_length       as the UDP header says
    icmp_type, icmp_code       of ICMP and ICMPv6
    quoted_source … quoted_target_port   the packet that an IPv4 ICMP error complains about
    kind … sent_us   our own header, as in `agents/wire/codec.py`; `event_id` is its 64 bits as a
                     signed number
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.captures.arrays import Flags, Values
from analysis.captures.packets import Packets

Found = tuple[Values, Flags | None] | None  # None: null in all rows


@dataclass(frozen=True)
class Column:
    """A column: its type and, if it holds numbers, its values with what is not null of them."""

    type: pa.DataType
    read: Callable[[Packets], Found] | None = None


def _record(name: str, kind: pa.DataType) -> Column:
    return Column(kind, lambda packets: (getattr(packets.frames.records, name), None))


def _ip(name: str, flag: str, kind: pa.DataType) -> Column:
    return Column(kind, lambda packets: (getattr(packets.ip, name), getattr(packets.ip, flag)))


def _transport(name: str, flag: str, kind: pa.DataType) -> Column:
    def read(packets: Packets) -> Found:
        layer = packets.transport
        return layer.rows[name], getattr(layer, flag)

    return Column(kind, read)


def _quoted(name: str, kind: pa.DataType, rows: str = "rows", flag: str = "has_header") -> Column:
    def read(packets: Packets) -> Found:
        found = packets.quoted
        return None if found is None else (getattr(found, rows)[name], getattr(found, flag))

    return Column(kind, read)


def _number(packets: Packets) -> Found:
    first = packets.frames.number
    return np.arange(first, first + len(packets)), None


_I16, _I32, _I64, _TEXT = pa.int16(), pa.int32(), pa.int64(), pa.string()
COLUMNS: dict[str, Column] = {
    "file": Column(_TEXT),
    "interface": Column(_TEXT),
    "number": Column(_I64, _number),
    "time_ns": Column(_I64, lambda packets: packets.frames.time_ns),
    "captured_bytes": _record("captured", _I32),
    "wire_bytes": _record("wire", _I64),
    "ip_version": _ip("version", "has_version", _I16),
    "source": _ip("source", "is_v4", _I64),
    "target": _ip("target", "is_v4", _I64),
    "source_v6": Column(_TEXT),
    "target_v6": Column(_TEXT),
    "protocol": _ip("protocol", "has_header", _I16),
    "ttl": _ip("ttl", "has_header", _I16),
    "ip_id": _ip("id", "has_fragment", _I64),
    "fragment_offset": _ip("fragment_offset", "has_fragment", _I32),
    "more_fragments": Column(pa.bool_()),
    "source_port": _transport("source_port", "has_ports", _I32),
    "target_port": _transport("target_port", "has_ports", _I32),
    "udp_length": _transport("udp_length", "has_udp_length", _I32),
    "icmp_type": _transport("icmp_type", "has_icmp", _I16),
    "icmp_code": _transport("icmp_code", "has_icmp", _I16),
    "quoted_source": _quoted("source", _I64),
    "quoted_target": _quoted("target", _I64),
    "quoted_protocol": _quoted("protocol", _I16),
    "quoted_id": _quoted("id", _I64),
    "quoted_source_port": _quoted("source_port", _I32, "ports", "has_ports"),
    "quoted_target_port": _quoted("target_port", _I32, "ports", "has_ports"),
    "kind": _transport("kind", "is_own", _I16),
    "flags": _transport("flags", "is_own", _I16),
    "hop_count": _transport("hop_count", "is_own", _I16),
    "run_id": _transport("run_id", "is_own", _I64),
    "sender": _transport("sender", "is_own", _I64),
    "receiver": _transport("receiver", "is_own", _I64),
    "message_id": _transport("message_id", "is_own", _I64),
    "event_id": _transport("event_id", "is_own", _I64),
    "sent_us": _transport("sent_us", "is_own", _I64),
}
PACKETS_SCHEMA = pa.schema({name: column.type for name, column in COLUMNS.items()})
