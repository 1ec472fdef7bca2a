"""The text of an imported file, and errors with its line numbers."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from topologies.delays import whole_delay_us
from topologies.errors import TopologyError

_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LONGEST_QUOTE = 60
# BRITE's C++ engine ends the description of its model, before the nodes, with a NUL byte.
_BRITE_HEADER = re.compile(r"\A\s*Topology:[^\n]*\n.*?^Nodes:", re.MULTILINE | re.DOTALL)
_NUL_AT_LINE_END = re.compile(r"\x00+(?=[ \t\r]*$)", re.MULTILINE)


@dataclass(frozen=True)
class SourceFile:
    """A text file with its path, for messages with file, line, expected and found."""

    path: Path
    text: str

    @cached_property
    def lines(self) -> list[tuple[int, str]]:
        """The numbers and texts of all lines that are not blank."""
        numbered = enumerate(self.text.split("\n"), start=1)
        return [(number, text.strip()) for number, text in numbered if text.strip()]

    @property
    def last_line(self) -> int:
        """The number of the last line that is not blank."""
        return self.lines[-1][0]

    def error(self, line: int, expected: str, found: object, remedy: str = "") -> TopologyError:
        """An error about a line of this file, ready to be raised."""
        text = str(found)
        quoted = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
        message = f"{self.path}, line {line}: expected {expected}, found {' '.join(quoted.split())}"
        return TopologyError(f"{message}; {remedy}" if remedy else message)

    def whole_number(self, line: int, what: str, text: str) -> int:
        """The whole number in a text."""
        if not _WHOLE_NUMBER.fullmatch(text):
            raise self.error(line, f"{what} as a whole number", repr(text))
        return int(text)

    def number(self, line: int, what: str, text: str) -> float:
        """The finite number in a text."""
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not math.isfinite(value):
            raise self.error(line, f"{what} as a number", repr(text))
        return value

    def delay_us(self, line: int, what: str, text: str, us_per_unit: float) -> int:
        """The delay in a text, in whole microseconds."""
        value = self.number(line, what, text)
        try:
            return whole_delay_us(value * us_per_unit, text, what)
        except TopologyError as error:
            raise TopologyError(f"{self.path}, line {line}: {error}") from error

    def rows(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """The line number and the columns of every line from an index in `lines` on."""
        for line, text in self.lines[start:]:
            yield line, text.split()


def read_source(path: Path) -> SourceFile:
    """The file at a path, if it is a text file."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise TopologyError(
            f"{path}: expected a readable topology file, found: {error.strerror}; check the path"
        ) from error
    text = _BRITE_HEADER.sub(_without_nul, _decode(path, content), count=1)
    source = SourceFile(path, text)
    for line, text in source.lines:
        if match := _CONTROL_CHARACTER.search(text):
            raise source.error(
                line, "text", f"the byte 0x{ord(match[0]):02x}", "give a text file, not a binary"
            )
    if not source.lines:
        raise source.error(1, "a topology", "an empty file", "give a file that has one")
    return source


def _without_nul(header: re.Match[str]) -> str:
    return _NUL_AT_LINE_END.sub("", header[0])


def _decode(path: Path, content: bytes) -> str:
    if content.startswith(b"\x1f\x8b"):
        raise SourceFile(path, "").error(
            1, "text", "a gzip archive", f"unpack it first: gunzip {path.name}"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SourceFile(path, "").error(
            line,
            "text in UTF-8",
            f"the byte 0x{content[error.start]:02x}",
            "give a text file, or convert it: iconv -f latin1 -t utf-8",
        ) from error
