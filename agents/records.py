"""What agents record, one JSON object a line, so that a file cut short loses one line at most."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO


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
        fields = json.dumps(values, sort_keys=True)
        self._file.write(f'{{"time_us": {time_us}, "host": "{host}", "what": "{what}", ')
        self._file.write(f'"values": {fields}}}\n')


def read_records(path: Path) -> Iterator[RecordRow]:
    """The records in a file, up to the first line that is not whole."""
    with path.open() as file:
        for line in file:
            if not line.endswith("\n"):
                return
            try:
                yield RecordRow(**json.loads(line))
            except (json.JSONDecodeError, TypeError):
                return
