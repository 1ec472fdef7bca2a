"""What the agents of a run recorded, from Parquet or from the logs that a dead run left."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.errors import AnalysisError

_COLUMNS = ["time_us", "host", "what", "values"]


class AgentRecord(NamedTuple):
    """Something that happened at a host."""

    time_us: int
    host: str
    what: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class AgentRecords:
    """Records in the order of their times, and what there is to say about where they are from."""

    rows: tuple[AgentRecord, ...]
    notes: tuple[str, ...] = ()


def read_agent_records(run: Path, kinds: Collection[str]) -> AgentRecords:
    """The records of some kinds that the agents of a run made.

    Records of one host and one time keep the order in which they were made.
    """
    table = run / "agents" / "records.parquet"
    logs = sorted((run / "agents").glob("*.jsonl"))
    try:
        return AgentRecords(_in_order(_read_table(table, kinds)))
    except (OSError, pa.ArrowInvalid) as error:
        if logs:
            return _read_logs(logs, kinds)
        raise AnalysisError(
            f"{run}: expected agents/records.parquet or agents/*.jsonl, found neither that can "
            f"be read: {error}"
        ) from error


def _in_order(rows: Iterator[AgentRecord]) -> tuple[AgentRecord, ...]:
    return tuple(sorted(rows, key=lambda row: row.time_us))


def _read_table(path: Path, kinds: Collection[str]) -> Iterator[AgentRecord]:
    wanted = pa.array(sorted(kinds), pa.string())
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(columns=_COLUMNS):
            few = batch.filter(pc.is_in(batch.column("what"), value_set=wanted))
            columns = (few.column(name).to_pylist() for name in _COLUMNS)
            for time_us, host, what, values in zip(*columns, strict=True):
                yield AgentRecord(time_us, host, what, msgspec.json.decode(values))


def _read_logs(logs: list[Path], kinds: Collection[str]) -> AgentRecords:
    """The records in the logs of agents, of which each may have been cut short anywhere."""
    rows: list[AgentRecord] = []
    broken = 0
    for log in logs:
        for line in log.read_bytes().splitlines(keepends=True):
            row = _read_line(line)
            broken += row is None
            if row is not None and row.what in kinds:
                rows.append(row)
    notes = ["the records were never gathered: these are the logs that the agents left"]
    if broken:
        notes.append(f"{broken} lines of these logs are not whole and were left out")
    return AgentRecords(_in_order(iter(rows)), tuple(notes))


def _read_line(line: bytes) -> AgentRecord | None:
    try:
        row = AgentRecord(**json.loads(line)) if line.endswith(b"\n") else None
    except (ValueError, TypeError):
        return None
    return row
