"""Rows of `packets` and of `capture_errors` from parts of captures, as Arrow batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from analysis.captures.arrays import Flags
from analysis.captures.columns import PACKETS_SCHEMA
from analysis.captures.packets import Packets
from analysis.captures.problems import Problem, errors_batch
from analysis.captures.splits import Split, read_frames
from analysis.captures.table import TableMaker


@dataclass(frozen=True)
class Choice:
    """Which packets to keep; all of what is given must hold."""

    port: int | None = None  # of UDP or TCP, on either side
    only_tdo: bool = False  # has our own header
    from_ns: int | None = None
    until_ns: int | None = None  # and not at this time itself

    def keeps(self, packets: Packets) -> Flags | None:
        """Which packets to keep, or nothing if all are."""
        flags: list[Flags] = []
        if self.port is not None:
            layer = packets.transport
            ends = (layer.rows["source_port"], layer.rows["target_port"])
            flags += [layer.has_ports & ((ends[0] == self.port) | (ends[1] == self.port))]
        if self.only_tdo:
            flags += [packets.transport.is_own]
        if self.from_ns is not None or self.until_ns is not None:
            time_ns, known = packets.frames.time_ns
            flags += [known]
            flags += [time_ns >= self.from_ns] if self.from_ns is not None else []
            flags += [time_ns < self.until_ns] if self.until_ns is not None else []
        return np.logical_and.reduce(flags) if flags else None


ALL = Choice()


def read_split(
    split: Split, schema: pa.Schema = PACKETS_SCHEMA, choice: Choice = ALL
) -> Iterator[pa.RecordBatch]:
    """The packets of a part as rows of `packets`, or of those columns that the schema has."""
    maker = TableMaker(split.path, schema)
    for packets in _packets(split):
        if not isinstance(packets, Problem) and len(packets):
            yield _rows(packets, maker, choice)


def read_errors(split: Split) -> Iterator[pa.RecordBatch]:
    """What could not be read of a part, as rows of `capture_errors`."""
    for packets in _packets(split):
        problems = [packets] if isinstance(packets, Problem) else packets.problems()
        if problems:
            yield errors_batch(split.path, problems)


def read_both(
    split: Split, schema: pa.Schema = PACKETS_SCHEMA
) -> Iterator[tuple[pa.RecordBatch | None, Sequence[Problem]]]:
    """The packets of a part as rows, with what could not be read of it, in one go."""
    maker = TableMaker(split.path, schema)
    for packets in _packets(split):
        if isinstance(packets, Problem):
            yield None, [packets]
        else:
            rows = _rows(packets, maker, ALL) if len(packets) else None
            yield rows, packets.problems()


def _packets(split: Split) -> Iterator[Packets | Problem]:
    for frames in read_frames(split):
        yield frames if isinstance(frames, Problem) else Packets(frames)


def _rows(packets: Packets, maker: TableMaker, choice: Choice) -> pa.RecordBatch:
    rows, kept = maker.batch(packets), choice.keeps(packets)
    return rows if kept is None else rows.filter(pa.array(kept))
