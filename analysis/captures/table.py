"""Rows of `packets` as Arrow batches, in the types that Spark and Parquet want."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from analysis.captures.addresses import ipv6_texts
from analysis.captures.arrays import Flags, Values
from analysis.captures.columns import COLUMNS, PACKETS_SCHEMA
from analysis.captures.packets import Packets

_NAMES = pa.dictionary(pa.int32(), pa.string())  # each text once, however many rows have it


def packets_schema(columns: Iterable[str], as_dictionaries: bool = False) -> pa.Schema:
    """The table's schema with some columns; texts that repeat may be kept once only."""
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
