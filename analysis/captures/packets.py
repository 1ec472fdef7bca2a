"""Packets with all their layers, and the table `packets`.

Each layer is read when a column or a check asks for it and not before. Every number in the table is
signed and every column nullable, as Spark wants them. A value is null where it does not apply or
was not captured.

    file             the capture, as it was named
    interface        where the packet was captured: a name if the capture has one, else its number
    number           of the packet in its file, from 1, as in Wireshark
    time_ns          nanoseconds since the epoch
    captured_bytes   how much of the packet the capture has
    wire_bytes       how long the packet was
    ip_version       4 or 6
    source, target   IPv4 addresses as numbers
    source_v6, target_v6   IPv6 addresses as text
    protocol         protocol of the payload; in IPv6, after all extension headers
    ttl              or the hop limit
    ip_id            of IPv6, only of fragments
    fragment_offset  in bytes; of IPv6, only of fragments
    more_fragments   of IPv6, only of fragments
    source_port, target_port   of UDP and TCP, in the first fragment
    udp_length       as the UDP header says
    icmp_type, icmp_code       of ICMP and ICMPv6
    quoted_source … quoted_target_port   the packet that an IPv4 ICMP error quotes
    kind … sent_us   our own header, as in `agents/wire/codec.py`; `event_id` is its 64 bits as a
                     signed number
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from analysis.captures import problems as reasons
from analysis.captures.frames import Frames
from analysis.captures.ip_layer import IpLayer, ipv6_texts, read_ip_layer
from analysis.captures.layouts import Flags, Values
from analysis.captures.link_layer import LinkLayer, read_link_layer
from analysis.captures.problems import Problem
from analysis.captures.transport_layer import (
    Quoted,
    TransportLayer,
    read_quoted,
    read_transport_layer,
)

Found = tuple[Values, Flags | None] | None  # None: null in all rows
_NAMES = pa.dictionary(pa.int32(), pa.string())  # dictionary-encoded: each text once


class Packets:
    """Some consecutive packets of a capture; valid until the next ones are read."""

    def __init__(self, frames: Frames) -> None:
        self.frames = frames

    def __len__(self) -> int:
        return len(self.frames)

    @cached_property
    def link(self) -> LinkLayer:
        """The link layer."""
        return read_link_layer(self.frames)

    @cached_property
    def ip(self) -> IpLayer:
        """The network layer."""
        return read_ip_layer(self.frames.data, self.link)

    @cached_property
    def transport(self) -> TransportLayer:
        """The transport layer."""
        return read_transport_layer(self.frames.data, self.ip)

    @cached_property
    def quoted(self) -> Quoted | None:
        """The packets that ICMP errors quote, or None without ICMP errors."""
        return read_quoted(self.frames.data, self.ip, self.transport)

    def problems(self) -> list[Problem]:
        """The problems between these packets and in them."""
        if not len(self):
            return self.frames.problems
        inside = [problem for found in self._problems_inside() for problem in found]
        return self.frames.problems + self.frames.time_problems() + inside

    def _problems_inside(self) -> Iterator[Iterator[Problem]]:
        ip, transport = self.ip, self.transport
        records = self.frames.records
        # A truncated capture of a packet is not an error of the packet.
        is_whole = records.captured >= records.wire
        yield self._of(self.link.is_unknown, reasons.UNKNOWN_PROTOCOL, self._not_followed)
        yield self._of(ip.bad_version, reasons.BAD_IP_VERSION, "no field is read")
        yield self._of(ip.bad_length, reasons.BAD_IP_LENGTH, "its payload is not read")
        yield self._of(
            is_whole & (self.link.is_cut | ip.is_cut | transport.is_cut),
            reasons.PACKET_CUT_SHORT,
            "missing fields are null",
        )
        yield self._of(
            ip.too_many | self.link.too_many,
            reasons.TOO_MANY_HEADERS,
            "what follows them is not read",
        )
        yield self._of(transport.is_foreign, reasons.BAD_OWN_VERSION, "it is not read")

    def _not_followed(self, index: int) -> str:
        return f"expected IP, found {self.link.describe(index)}; its payload is not read"

    def _of(
        self, flags: Flags, reason: str, detail: str | Callable[[int], str]
    ) -> Iterator[Problem]:
        for index in np.flatnonzero(flags).tolist() if flags.any() else ():
            told = detail if isinstance(detail, str) else detail(index)
            text = f"packet {self.frames.number + index}: {told}"
            yield Problem(self.frames.file_offset(index), reason, text)


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


def packets_schema(columns: Iterable[str], as_dictionaries: bool = False) -> pa.Schema:
    """The table's schema with some columns; repeated texts may be dictionary-encoded."""
    fields = [PACKETS_SCHEMA.field(name) for name in columns]
    if as_dictionaries:
        fields = [f.with_type(_NAMES) if f.name in ("file", "interface") else f for f in fields]
    return pa.schema(fields)


class TableMaker:
    """Makes rows of `packets` from the packets of one file."""

    def __init__(self, file: str, schema: pa.Schema) -> None:
        self._file = pa.array([file])
        self._schema = schema

    def batch(self, packets: Packets) -> pa.RecordBatch:
        """One row for each packet."""
        validity = _Validity()
        arrays = [self._array(field.name, field.type, packets, validity) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _array(
        self, name: str, kind: pa.DataType, packets: Packets, validity: "_Validity"
    ) -> pa.Array:
        if name == "file":
            return _named(np.zeros(len(packets), np.int32), self._file, kind)
        if name == "interface":
            return _interfaces(packets, kind)
        if name == "more_fragments":
            ip = packets.ip
            return pa.array(ip.more_fragments, kind, mask=~ip.has_fragment)
        if name in ("source_v6", "target_v6"):
            return _ipv6(packets, name.removesuffix("_v6"))
        read = COLUMNS[name].read
        found = read(packets) if read else None
        if found is None:
            return pa.nulls(len(packets), kind)
        values, flags = found
        buffers = [validity.of(flags), _buffer(values, kind)]
        return pa.Array.from_buffers(kind, len(packets), buffers)


class _Validity:
    """Flags as Arrow's bitmaps; columns of one layer share theirs."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Flags, pa.Buffer | None]] = {}

    def of(self, flags: Flags | None) -> pa.Buffer | None:
        """The bitmap of flags; none if nothing is null."""
        if flags is None:
            return None
        if id(flags) not in self._known:
            bitmap = None if flags.all() else pa.py_buffer(np.packbits(flags, bitorder="little"))
            self._known[id(flags)] = flags, bitmap
        return self._known[id(flags)][1]


def _buffer(values: Values, kind: pa.DataType) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(values, dtype=kind.to_pandas_dtype()))


def _named(index: Values, names: pa.Array, kind: pa.DataType) -> pa.Array:
    texts = pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), names)
    return texts if pa.types.is_dictionary(kind) else texts.dictionary_decode()


def _interfaces(packets: Packets, kind: pa.DataType) -> pa.Array:
    index = packets.frames.records.interface
    if index is None:
        index = np.zeros(len(packets), np.int64)
    names = packets.frames.table.names
    return _named(index, pa.array(names, pa.string()), kind)


def _ipv6(packets: Packets, end: str) -> pa.Array:
    found = packets.ip.ipv6
    if found is None:
        return pa.nulls(len(packets), pa.string())
    row = np.full(len(packets), -1)
    row[found.index] = np.arange(len(found.index))
    texts = ipv6_texts(getattr(found, end))
    return texts.take(pa.array(row, mask=row < 0))
