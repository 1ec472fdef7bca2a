"""What agents record, one JSON object a line, so that a file cut short loses one line at most."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO

# `json.dumps` would make an encoder for each record.
_to_json = json.JSONEncoder(sort_keys=True).encode


class RecordRow(NamedTuple):
    """Something that happened at a host."""

    time_us: int
    host: str
    what: str
    values: Mapping[str, Any]


class RecordLog:
    """Writes records to a text file as they come."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        """Add one record."""
        row = {"time_us": time_us, "host": host, "what": what, "values": dict(values)}
        self._file.write(_to_json(row) + "\n")


def read_records(path: Path) -> Iterator[RecordRow]:
    """The records in a file; a last line that is not whole is left out."""
    with path.open() as file:
        for line in file:
            if not line.endswith("\n"):
                return
            yield RecordRow(**json.loads(line))
