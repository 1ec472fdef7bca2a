"""Files of records: one JSON object a line, so that a truncated file loses at most one line."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

import msgspec

_to_json = msgspec.json.Encoder(order="sorted").encode


class RecordRow(msgspec.Struct, frozen=True):
    """A record; its values stay JSON until they are read."""

    time_us: int
    host: str
    what: str
    json: msgspec.Raw = msgspec.field(name="values")

    @property
    def values(self) -> dict[str, Any]:
        """The decoded values."""
        return dict(msgspec.json.decode(self.json))


_from_json = msgspec.json.Decoder(RecordRow).decode


class RecordLog:
    """Writes records to a text file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        """Add one record."""
        row = {"time_us": time_us, "host": host, "what": what, "values": dict(values)}
        self._file.write(_to_json(row).decode() + "\n")


def read_records(path: Path) -> Iterator[RecordRow]:
    """The records in a file, without an incomplete last line."""
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield _from_json(line)
