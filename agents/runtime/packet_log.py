"""The packets of a simulation, one row for each link that each packet crossed, as Parquet.

While a simulation runs, a packet costs one entry in a list; rows are made from many entries at
a time, with array operations. `SCHEMA` is the layout:

    time_us      when the packet entered the link
    link         the link's name in the underlay
    direction    "ab" from the link's first end to its second, or "ba"
    source       IPv4 address of the sender, as a number; for an ICMP error, who complains
    target       IPv4 address of the receiver
    protocol     "udp" or "icmp"
    ttl          on this link
    size_bytes   with the IP and UDP or ICMP headers
    dropped      whether it got lost on this link: by chance, a full queue or a cut

and the fields of our header as in `agents.codec`, null where a packet has none (probes and the
answers to them). `event_id` is the 64 bits of the header as a signed number.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from agents.codec import HEADER, MAGIC, VERSION
from agents.runtime.event_queue import Event
from agents.runtime.forwarding import Crossings, Forwarding
from agents.runtime.numbering import Numbers
from agents.runtime.packet import FIRST_TTL, HEADERS_BYTES, Packet
from topologies.underlay import Underlay

_NAMES = pa.dictionary(pa.int32(), pa.string())
_HEADER_FIELDS = {
    "kind": pa.int16(),
    "flags": pa.int16(),
    "hop_count": pa.int16(),
    "run_id": pa.int64(),
    "sender": pa.int64(),
    "receiver": pa.int64(),
    "message_id": pa.int64(),
    "event_id": pa.int64(),
    "sent_us": pa.int64(),
}
SCHEMA = pa.schema(
    {
        "time_us": pa.int64(),
        "link": _NAMES,
        "direction": _NAMES,
        "source": pa.int64(),
        "target": pa.int64(),
        "protocol": _NAMES,
        "ttl": pa.int16(),
        "size_bytes": pa.int32(),
        "dropped": pa.bool_(),
        **_HEADER_FIELDS,
    }
)
FILE_NAME = "packets.parquet"

# Columns of few values, for which a dictionary is worth its price.
_FEW_VALUES = ["link", "direction", "protocol", "ttl", "size_bytes", "kind", "flags", "hop_count",
               "run_id", "event_id"]  # fmt: skip
WRITE_AT = 1 << 15  # packets; some ten rows each
_DIRECTIONS, _PROTOCOLS = ("ab", "ba"), ("udp", "icmp")
_HEADER = np.dtype(
    [
        ("magic", ">u2"), ("version", "u1"), ("kind", "u1"), ("flags", "u1"), ("hop_count", "u1"),
        ("length", ">u2"), ("run_id", ">u4"), ("sender", ">u4"), ("receiver", ">u4"),
        ("message_id", ">u4"), ("event_id", ">u8"), ("sent_us", ">u8"),
    ]
)  # fmt: skip


class _Entry(NamedTuple):
    """What a packet has crossed, where that had to be worked out while it was under way."""

    packet: Packet
    ttl: int
    channels: list[int]
    entered_us: list[int]
    is_dropped: bool


class _Packets(NamedTuple):
    """Some packets, a column for each of their properties."""

    source: Numbers
    target: Numbers
    ttl: Numbers
    size_bytes: Numbers
    is_icmp: NDArray[np.bool_]
    datagrams: list[bytes]


class PacketLog:
    """Takes notes of packets, and writes rows whenever there are many."""

    def __init__(self, folder: Path, underlay: Underlay) -> None:
        # Datagrams that crossed plain channels only, as they arrived: the simulator's own events.
        self.arrivals: list[Event] = []
        self.rows = 0
        self._entries: list[_Entry] = []
        # Not above: the first Arrow array brings in all of pandas, also for who logs no packet.
        self._links = pa.array([link.name for link in underlay.links])
        self._directions, self._protocols = pa.array(_DIRECTIONS), pa.array(_PROTOCOLS)
        folder.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(
            folder / FILE_NAME,
            SCHEMA,
            compression="zstd",
            compression_level=1,
            use_dictionary=_FEW_VALUES,
            write_statistics=["time_us"],
        )

    def add(
        self, packet: Packet, channels: list[int], entered_us: list[int], is_dropped: bool
    ) -> None:
        """Note what a packet has crossed; one that was dropped did not leave the last channel."""
        self._entries.append(_Entry(packet, packet.ttl, channels, entered_us, is_dropped))

    @property
    def is_full(self) -> bool:
        """Whether it is time to write."""
        return len(self.arrivals) >= WRITE_AT or len(self._entries) >= WRITE_AT

    def write(self, forwarding: Forwarding) -> None:
        """Write what was noted; the ways of packets must not have changed since the last time."""
        if self.arrivals:
            packets, crossings = _read_arrivals(self.arrivals, forwarding)
            self._write_rows(packets, crossings, np.zeros(len(crossings.packet), dtype=bool))
            self.arrivals.clear()
        if self._entries:
            self._write_rows(*_read_entries(self._entries))
            self._entries.clear()

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()

    def _write_rows(
        self, packets: _Packets, crossings: Crossings, dropped: NDArray[np.bool_]
    ) -> None:
        packet, channel = crossings.packet, crossings.channel
        columns = [
            pa.array(crossings.entered_us),
            _name(channel // 2, self._links),
            _name(channel % 2, self._directions),
            pa.array(packets.source[packet]),
            pa.array(packets.target[packet]),
            _name(packets.is_icmp[packet], self._protocols),
            pa.array((packets.ttl[packet] - crossings.step).astype(np.int16)),
            pa.array(packets.size_bytes.astype(np.int32)[packet]),
            pa.array(dropped),
            *_header_columns(packets.datagrams, packet),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
        self.rows += len(packet)


def _read_arrivals(arrivals: list[Event], forwarding: Forwarding) -> tuple[_Packets, Crossings]:
    """The packets behind some arrivals, and what they crossed."""
    arrived_us, _, seats, sources, datagrams = zip(*arrivals, strict=True)
    node_at = forwarding.numbering.node_at
    crossings = forwarding.cross(
        np.array([node_at[source] for source in sources]),
        np.array([seat.node for seat in seats]),
        np.array(arrived_us),
    )
    packets = _Packets(
        np.array(sources),
        np.array([seat.address for seat in seats]),
        np.full(len(arrivals), FIRST_TTL),
        np.fromiter(map(len, datagrams), dtype=np.int64) + HEADERS_BYTES,
        np.zeros(len(arrivals), dtype=bool),
        list(datagrams),
    )
    return packets, crossings


def _read_entries(entries: list[_Entry]) -> tuple[_Packets, Crossings, NDArray[np.bool_]]:
    """The packets behind some entries, what they crossed, and which crossings came to nothing."""
    lengths = np.array([len(entry.channels) for entry in entries])
    ends = np.cumsum(lengths)
    number = np.repeat(np.arange(len(entries)), lengths)
    crossings = Crossings(
        number,
        np.arange(len(number)) - (ends - lengths)[number],
        np.array([channel for entry in entries for channel in entry.channels]),
        np.array([time_us for entry in entries for time_us in entry.entered_us]),
    )
    dropped = np.zeros(len(number), dtype=bool)
    dropped[ends - 1] = [entry.is_dropped for entry in entries]
    return _columns_of(entries), crossings, dropped


def _columns_of(entries: list[_Entry]) -> _Packets:
    contents = [entry.packet.content for entry in entries]
    return _Packets(
        np.array([entry.packet.source for entry in entries]),
        np.array([entry.packet.target for entry in entries]),
        np.array([entry.ttl for entry in entries]),
        np.array([entry.packet.size_bytes for entry in entries]),
        np.array([entry.packet.is_icmp for entry in entries]),
        [content if isinstance(content, bytes) else b"" for content in contents],
    )


def _header_columns(datagrams: list[bytes], packet: Numbers) -> list[pa.Array]:
    """The fields of our header for each row, null where a packet has none."""
    size = HEADER.size
    start = b"".join([datagram[:size].ljust(size, b"\0") for datagram in datagrams])
    headers = np.frombuffer(start, dtype=_HEADER)
    missing = ((headers["magic"] != MAGIC) | (headers["version"] != VERSION))[packet]
    mask = missing if missing.any() else None
    columns = []
    for name, kind in _HEADER_FIELDS.items():
        values = headers[name].astype(np.uint64).view(np.int64)
        columns.append(pa.array(values.astype(kind.to_pandas_dtype())[packet], mask=mask))
    return columns


def _name(number: NDArray[np.integer] | NDArray[np.bool_], names: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(number.astype(np.int32), names)
