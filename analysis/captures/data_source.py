"""Captures in Spark: `spark.read.format("pcap").load("captures/")`, after `register(spark)`.

A path is a file, a pattern or a folder, and must be the same on all workers. The user's
`.schema(…)` chooses columns. Options:

    errors     true: the rows of `capture_errors` instead of `packets`
    port       only UDP and TCP packets from or to this port
    only_tdo   true: only packets with our own header
    from_ns    only packets at this time or later, in nanoseconds since the epoch
    until_ns   only packets before this time
    split_mb   how much of a file a task reads, 32 if not given
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from analysis.captures.packets import PACKETS_SCHEMA, packets_schema
from analysis.captures.problems import ERRORS_SCHEMA
from analysis.captures.reader import (
    SPLIT_BYTES,
    Choice,
    Split,
    find_captures,
    plan_parts,
    read_errors,
    read_split,
)
from analysis.errors import CaptureError

FORMAT = "pcap"
_MB = 1 << 20
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True)
class Options:
    """The options of a reader, checked."""

    path: str
    errors: bool = False
    port: int | None = None
    only_tdo: bool = False
    from_ns: int | None = None
    until_ns: int | None = None
    split_mb: int = SPLIT_BYTES // _MB

    @property
    def choice(self) -> Choice:
        """Which packets to keep."""
        return Choice(self.port, self.only_tdo, self.from_ns, self.until_ns)


class PcapSource(DataSource):
    """The data source `pcap`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def schema(self) -> StructType:
        """All columns of the selected table."""
        return from_arrow_schema(_table(read_options(self.options)))

    def reader(self, schema: StructType) -> "PcapReader":
        """A reader of the selected columns."""
        return PcapReader(read_options(self.options), schema)


@dataclass
class Part(InputPartition):
    """The splits that one task reads."""

    splits: list[Split]


class PcapReader(DataSourceReader):
    """Reads the parts of captures."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._columns = _wanted_columns(schema, _table(options))

    def partitions(self) -> list[InputPartition]:
        """The parts of all files, one for each task."""
        files = find_captures(self._options.path)
        return [Part(part) for part in plan_parts(files, self._options.split_mb * _MB)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one part."""
        assert isinstance(partition, Part)
        for split in partition.splits:
            if self._options.errors:
                for rows in read_errors(split):
                    yield rows.select(self._columns)
            else:
                yield from read_split(split, packets_schema(self._columns), self._options.choice)


def register(spark: SparkSession) -> None:
    """Register the format `pcap` in a session."""
    spark.dataSource.register(PcapSource)


def read_options(given: Mapping[str, str]) -> Options:
    """The options of a reader; an unknown or impossible one is an error."""
    known = {option.name: option.type for option in fields(Options)}
    values: dict[str, str | int | bool] = {}
    for name, text in given.items():
        if name not in known:
            raise CaptureError(
                f"option {name}: expected one of {', '.join(sorted(known))}, found {name!r}"
            )
        values[name] = text if known[name] is str else _value(name, text, known[name] is bool)
    if "path" not in values:
        raise CaptureError('captures: expected a path, found none; use .load("captures/")')
    return Options(**values)  # type: ignore[arg-type]


def _value(name: str, text: str, is_truth: bool) -> int | bool:
    if is_truth and text.lower() in _TRUTH:
        return _TRUTH[text.lower()]
    if not is_truth and text.removeprefix("-").isdecimal():
        number = int(text)
        if (name != "split_mb" or number >= 1) and (name != "port" or 0 <= number < 1 << 16):
            return number
    wanted = "true or false" if is_truth else "a whole number in range"
    raise CaptureError(f"option {name}: expected {wanted}, found {text!r}")


def _table(options: Options) -> pa.Schema:
    return ERRORS_SCHEMA if options.errors else PACKETS_SCHEMA


def _wanted_columns(schema: StructType, table: pa.Schema) -> list[str]:
    for wanted in schema.fields:
        if wanted.name not in table.names:
            raise CaptureError(
                f"column {wanted.name}: expected one of {', '.join(table.names)}, found none"
            )
    expected = from_arrow_schema(pa.schema([table.field(name) for name in schema.names]))
    for wanted, has in zip(schema.fields, expected.fields, strict=True):
        if wanted.dataType != has.dataType or not wanted.nullable:
            raise CaptureError(
                f"column {wanted.name}: expected the nullable type {has.dataType.simpleString()}, "
                f"found {wanted.dataType.simpleString()}"
            )
    return list(schema.names)
