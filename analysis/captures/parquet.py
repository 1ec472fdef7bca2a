"""Converts captures to Parquet, for repeated queries.

The tasks write the files themselves. Rows that pass through the Java machine on their way to
Parquet are converted twice, which takes most of the time.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from analysis.captures.packets import PACKETS_SCHEMA, packets_schema
from analysis.captures.problems import ERRORS_SCHEMA, errors_batch
from analysis.captures.reader import SPLIT_BYTES, Split, Where, find_captures, plan_parts, read_both
from analysis.errors import CaptureError

PACKETS, ERRORS = "packets", "capture_errors"
_ROWS_A_GROUP = 1 << 17
_MOST_PART_BYTES = 64 << 20
# Dictionaries suit repeated values; differences suit values that grow from row to row.
_GROWING = ("number", "time_ns", "ip_id", "message_id", "sent_us")
_REPEATING = [name for name in PACKETS_SCHEMA.names if name not in (*_GROWING, "event_id")]
# Statistics of these columns let queries skip row groups; those of others only cost time.
_WITH_EXTREMES = ("file", "interface", "number", "time_ns", "event_id")


@dataclass(frozen=True)
class Written:
    """How many rows were written."""

    packets: int
    errors: int


def write_packets(
    spark: SparkSession, captures: Where, out: str | Path, split_bytes: int | None = None
) -> Written:
    """Write the tables `packets` and `capture_errors` as two folders in `out`.

    `out` is not there before, and is complete when it is there. It is a path that all workers
    share, as the captures are. Unless told how large parts are, all cores get as many.
    """
    folder = Path(out).absolute()
    if folder.exists():
        raise CaptureError(
            f"{folder}: expected no such folder, found one; remove it or name another"
        )
    draft = folder.with_name(folder.name + ".partial")
    shutil.rmtree(draft, ignore_errors=True)
    for table in (PACKETS, ERRORS):
        (draft / table).mkdir(parents=True)
    files = [Path(file).absolute() for file in find_captures(captures)]
    cores = spark.sparkContext.defaultParallelism
    parts = plan_parts(map(str, files), split_bytes or _even_bytes(files, cores))
    tasks, write = list(enumerate(parts)), partial(write_part, str(draft))
    if len(tasks) == 1:  # starting a Python worker takes longer than this
        counts = [write(tasks[0])]
    else:
        counts = spark.sparkContext.parallelize(tasks, len(tasks)).map(write).collect()
    draft.rename(folder)
    return Written(sum(count.packets for count in counts), sum(count.errors for count in counts))


def _even_bytes(files: Sequence[Path], cores: int) -> int:
    """The size of parts that gives each core the same number of parts, and few of them."""
    total = sum(file.stat().st_size for file in files if file.is_file())
    rounds = ceil(total / (cores * _MOST_PART_BYTES)) or 1
    return max(ceil(total / (cores * rounds)), SPLIT_BYTES)


def write_part(draft: str, task: tuple[int, Sequence[Split]]) -> Written:
    """Write one file of each table into the folder of that table."""
    number, splits = task
    name = f"part-{number:05}.parquet"
    schema = packets_schema(PACKETS_SCHEMA.names, as_dictionaries=True)
    # An empty table has a file, too: it defines the columns.
    is_first = number == 0
    with (
        _Rows(Path(draft, PACKETS, name), schema, is_first) as packets,
        _Rows(Path(draft, ERRORS, name), ERRORS_SCHEMA, is_first) as errors,
    ):
        for split in splits:
            for rows, problems in read_both(split, schema):
                if rows is not None:
                    packets.add(rows)
                if problems:
                    errors.add(errors_batch(split.path, problems))
    return Written(packets.count, errors.count)


class _Rows:
    """Rows to be written to a file, which is created with the first ones."""

    def __init__(self, path: Path, schema: pa.Schema, always: bool) -> None:
        self._path, self._schema = path, schema
        self._writer = self._open() if always else None
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_count = 0
        self.count = 0

    def __enter__(self) -> "_Rows":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._write()
        if self._writer:
            self._writer.close()

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows, and write a row group when there are enough."""
        self._waiting.append(rows)
        self._waiting_count += rows.num_rows
        self.count += rows.num_rows
        if self._waiting_count >= _ROWS_A_GROUP:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            self._writer = self._writer or self._open()
            table = pa.Table.from_batches(self._waiting, self._schema).unify_dictionaries()
            self._writer.write_table(table, _ROWS_A_GROUP * 2)
            self._waiting, self._waiting_count = [], 0

    def _open(self) -> pq.ParquetWriter:
        return pq.ParquetWriter(
            self._path,
            self._schema,
            compression="snappy",  # with this encoding, stronger compression saves little
            use_dictionary=self._having(_REPEATING),
            column_encoding=dict.fromkeys(self._having(_GROWING), "DELTA_BINARY_PACKED"),
            write_statistics=self._having(_WITH_EXTREMES),
        )

    def _having(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if name in self._schema.names]
