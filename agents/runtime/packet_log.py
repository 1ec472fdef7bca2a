"""The packets of a simulation as Parquet: one row for each link that each packet crossed.

`SCHEMA` is the layout:

    time_us      when the packet entered the link
    link         the link's name in the underlay
    direction    "ab" from the link's first end to its second, or "ba"
    source       IPv4 address of the sender, as a number; of an ICMP error, its router or host
    target       IPv4 address of the receiver
    protocol     "udp" or "icmp"
    ttl          on this link
    size_bytes   with the IP and UDP or ICMP headers
    dropped      whether it was lost on this link: by loss, a full queue or a cut

The other columns are the fields of the message header as in `agents.wire.codec`. They are null for
packets without the header (probes and their answers). `event_id` is the 64 bits of the header as a
signed number.
"""

import struct
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from agents.errors import AgentFailed
from agents.runtime.forwarding import Crossings
from agents.runtime.numbering import Numbers
from agents.runtime.packet import HEADERS_BYTES, Content, size_of
from agents.runtime.packet_notes import PacketNotes, Packets
from agents.wire.codec import HEADER, MAGIC, VERSION, Datagram, encode
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

# columns with few values, stored as dictionaries
_FEW_VALUES = ["link", "direction", "protocol", "ttl", "size_bytes", "kind", "flags", "hop_count",
               "run_id", "event_id"]  # fmt: skip
_DIRECTIONS, _PROTOCOLS = ("ab", "ba"), ("udp", "icmp")
_HEADER = np.dtype(
    [
        ("magic", ">u2"), ("version", "u1"), ("kind", "u1"), ("flags", "u1"), ("hop_count", "u1"),
        ("length", ">u2"), ("run_id", ">u4"), ("sender", ">u4"), ("receiver", ">u4"),
        ("message_id", ">u4"), ("event_id", ">u8"), ("sent_us", ">u8"),
    ]
)  # fmt: skip


class PacketLog(PacketNotes):
    """Writes the rows to a file."""

    def __init__(self, folder: Path, underlay: Underlay) -> None:
        super().__init__()
        self.rows = 0
        # Imported here: the first Arrow array imports pandas, which runs without a log do not need.
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
            write_page_checksum=True,
        )

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()

    def _take_rows(
        self, packets: Packets, crossings: Crossings, dropped: NDArray[np.bool_]
    ) -> None:
        packet, channel = crossings.packet, crossings.channel
        sizes_bytes, headers = _read_contents(packets.contents)
        columns = [
            pa.array(crossings.entered_us),
            _name(channel // 2, self._links),
            _name(channel % 2, self._directions),
            pa.array(packets.source[packet]),
            pa.array(packets.target[packet]),
            _name(packets.is_icmp[packet], self._protocols),
            pa.array((packets.ttl[packet] - crossings.step).astype(np.int16)),
            pa.array(sizes_bytes[packet]),
            pa.array(dropped),
            *_header_columns(headers, packet),
        ]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=SCHEMA))
        self.rows += len(packet)


def _read_contents(contents: Sequence[Content]) -> tuple[NDArray[np.int32], NDArray[np.void]]:
    """The sizes of packets, and their headers, empty for packets without one."""
    sizes_bytes, headers = [], []
    for content in contents:
        if isinstance(content, Datagram):
            data = _encode(content)
            sizes_bytes.append(HEADERS_BYTES + len(data))
            headers.append(data[: HEADER.size])
        else:
            sizes_bytes.append(size_of(content))
            headers.append(bytes(HEADER.size))
    return np.array(sizes_bytes, np.int32), np.frombuffer(b"".join(headers), _HEADER)


def _encode(datagram: Datagram) -> bytes:
    try:
        return encode(datagram)
    except (struct.error, ValueError) as error:
        sender, time_s = IPv4Address(datagram.sender), datagram.sent_us / 1e6
        kind = type(datagram.content).__name__
        raise AgentFailed(f"agent {sender} at {time_s:.6f} s: {kind}: {error}") from error


def _header_columns(headers: NDArray[np.void], packet: Numbers) -> list[pa.Array]:
    """The header fields for each row, null for packets without a header."""
    missing = ((headers["magic"] != MAGIC) | (headers["version"] != VERSION))[packet]
    mask = missing if missing.any() else None
    columns = []
    for name, kind in _HEADER_FIELDS.items():
        values = headers[name].astype(np.uint64).view(np.int64)
        columns.append(pa.array(values.astype(kind.to_pandas_dtype())[packet], mask=mask))
    return columns


def _name(number: NDArray[np.integer] | NDArray[np.bool_], names: pa.Array) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(number.astype(np.int32), names)
