"""The records of the agents of a run, from Parquet or from the logs of an incomplete run."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.errors import AnalysisError
from analysis.parquet_files import DAMAGE, read_columns

_SCHEMA = pa.schema(
    [("time_us", pa.int64()), ("host", pa.string()), ("what", pa.string()), ("values", pa.string())]
)


class AgentRecord(NamedTuple):
    """A record of an agent."""

    time_us: int
    host: str
    what: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class AgentRecords:
    """All records of a run in the order of their times, and notes on their source.

    Records with the same time keep the order in which they were made. The columns of `table` are
    `time_us`, `host`, `what` and `values`, a JSON object.
    """

    table: pa.Table
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[AgentRecord], notes: tuple[str, ...] = ()) -> "AgentRecords":
        """The records of some rows."""
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        columns[3] = tuple(json.dumps(values) for values in columns[3])
        return cls(_in_order(pa.table(list(map(pa.array, columns)), _SCHEMA)), notes)

    def rows(self, *kinds: str) -> list[AgentRecord]:
        """The records of some kinds."""
        few = self._of(kinds)
        columns = (few[name].to_pylist() for name in _SCHEMA.names)
        return [
            AgentRecord(time_us, host, what, _decode(values))
            for time_us, host, what, values in zip(*columns, strict=True)
        ]

    def frame(self, kind: str, fields: Mapping[str, str]) -> pd.DataFrame:
        """The records of one kind: `time_us`, `host`, and the given fields of their values.

        `fields` are names and pandas types. A field may be missing if its type has room for that,
        as `Int64` has; `int64` means that every such record has it.
        """
        few = self._of((kind,))
        held = [_decode(values) for values in few["values"].to_pylist()]
        frame = few.select(["time_us", "host"]).to_pandas()
        for name, dtype in fields.items():
            try:
                frame[name] = pd.array([values.get(name) for values in held], dtype=dtype)
            except (TypeError, ValueError) as error:
                raise AnalysisError(
                    f"records {kind}: expected {name} as {dtype} in each, found: {error}"
                ) from error
        return frame

    def last_us(self) -> dict[str, int]:
        """The time of the last record of each host."""
        last = self.table.group_by("host").aggregate([("time_us", "max")])
        return dict(zip(last["host"].to_pylist(), last["time_us_max"].to_pylist(), strict=True))

    def until(self, time_us: int) -> "AgentRecords":
        """The records that were made until a time."""
        return AgentRecords(self.table.filter(pc.field("time_us") <= time_us), self.notes)

    def _of(self, kinds: Iterable[str]) -> pa.Table:
        wanted = pa.array(sorted(kinds), pa.string())
        return self.table.filter(pc.is_in(self.table["what"], value_set=wanted))


def read_agent_records(run: Path) -> AgentRecords:
    """All records of the agents of a run."""
    file = run / "agents" / "records.parquet"
    logs = sorted((run / "agents").glob("*.jsonl"))
    try:
        return AgentRecords(_in_order(read_columns(file, _SCHEMA.names).cast(_SCHEMA)))
    except DAMAGE as error:
        if logs:
            return _read_logs(logs)
        raise AnalysisError(
            f"{run}: expected agents/records.parquet or agents/*.jsonl, found neither that can "
            f"be read: {error}"
        ) from error


def _in_order(table: pa.Table) -> pa.Table:
    return table.take(pc.sort_indices(table["time_us"]))


def _decode(values: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(values, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise AnalysisError(
            f"agents/records.parquet: expected JSON objects as values, found {values[:60]!r}"
        ) from error


def _read_logs(logs: list[Path]) -> AgentRecords:
    """The records in the logs of agents, each of which may be truncated."""
    lines = [line for log in logs for line in log.read_bytes().splitlines(keepends=True)]
    rows = [row for row in map(_read_line, lines) if row is not None]
    notes = ["the records were never gathered: they are read from the agents' logs"]
    if len(rows) < len(lines):
        notes.append(f"{len(lines) - len(rows)} lines of these logs are incomplete and left out")
    return AgentRecords.of(rows, tuple(notes))


def _read_line(line: bytes) -> AgentRecord | None:
    try:
        row = AgentRecord(**json.loads(line)) if line.endswith(b"\n") else None
    except (ValueError, TypeError):
        return None
    return row
