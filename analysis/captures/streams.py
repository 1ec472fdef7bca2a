"""Bytes of a capture in order, a bounded number at a time, unpacked if it is compressed."""

import os
import stat
import zlib
from pathlib import Path
from typing import Protocol

from analysis.captures.problems import DAMAGED_GZIP, Problem

GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 16
_GZIP_BITS = 31  # zlib: a gzip header and its checksum


class Stream(Protocol):
    """Where a window gets its bytes from."""

    problem: Problem | None  # why it ended early, if it did

    def read_into(self, view: memoryview) -> int:
        """Fill some of a view and return how much; 0 at the end."""

    def skip(self, size: int) -> int:
        """Leave out some bytes and return how many there were."""

    def close(self) -> None:
        """Let go of the file."""


class FileStream:
    """A file from an offset to another or to its end."""

    def __init__(self, path: Path, start: int = 0, end: int | None = None) -> None:
        self._file = path.open("rb", buffering=0)
        size = os.fstat(self._file.fileno()).st_size
        self._left = max((size if end is None else min(end, size)) - start, 0)
        self._file.seek(start)
        self.problem: Problem | None = None

    def read_into(self, view: memoryview) -> int:
        """Fill some of a view and return how much; 0 at the end."""
        # A file that grows while it is read ends for us where it did when we came.
        count = self._file.readinto(view[: self._left]) or 0 if self._left else 0
        self._left = self._left - count if count else 0
        return count

    def skip(self, size: int) -> int:
        """Leave out some bytes and return how many there were."""
        skipped = min(size, self._left)
        self._file.seek(skipped, os.SEEK_CUR)
        self._left -= skipped
        return skipped

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class GzipStream:
    """What a gzip file unpacks to, as far as it can be unpacked; one of several parts, too.

    Not Python's `gzip`: at damage it also loses what it had unpacked just before.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._packed = b""
        self._member = zlib.decompressobj(_GZIP_BITS)
        self._is_over = False
        self._unpacked = 0
        self._step = _PIECE  # 1 once there was damage, to come as close to it as can be
        self.problem: Problem | None = None

    def read_into(self, view: memoryview) -> int:
        """Fill some of a view and return how much; 0 at the end."""
        while not self._is_over and len(view):
            self._packed = self._packed or self._file.read(_PIECE)
            # A bounded result: a few packed bytes can unpack to gigabytes.
            found = self._unpack(len(view))
            if found:
                view[: len(found)] = found
                return len(found)
        return 0

    def skip(self, size: int) -> int:
        """Leave out some bytes and return how many there were."""
        scratch, skipped = memoryview(bytearray(min(size, _PIECE))), 0
        while skipped < size:
            count = self.read_into(scratch[: size - skipped])
            if count == 0:
                break
            skipped += count
        return skipped

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _unpack(self, most: int) -> bytes:
        if not self._packed:
            self._end("expected more, found the end of the file")
            return b""
        before, rest = self._member.copy(), self._packed[self._step :]
        try:
            found = self._member.decompress(self._packed[: self._step], most)
        except zlib.error as error:
            if self._step == 1:
                self._end(f"expected gzip data, found {error}")
            self._member, self._step = before, 1
            return b""
        self._unpacked += len(found)
        self._packed = self._member.unconsumed_tail + rest
        if self._member.eof:
            self._next_member(self._member.unused_data + rest)
        return found

    def _next_member(self, rest: bytes) -> None:
        """Go on with what follows a complete part: another one, zeros as padding, or nothing."""
        rest = (rest or self._file.read(_PIECE)).lstrip(b"\0")
        while not rest:
            piece = self._file.read(_PIECE)
            if not piece:
                self._is_over = True
                return
            rest = piece.lstrip(b"\0")
        if len(rest) < len(GZIP_MAGIC):
            rest += self._file.read(_PIECE)
        if not rest.startswith(GZIP_MAGIC):
            self._end("expected the end or another gzip part, found other bytes; they are unread")
            return
        self._packed, self._member = rest, zlib.decompressobj(_GZIP_BITS)

    def _end(self, detail: str) -> None:
        self._is_over = True
        self.problem = Problem(self._unpacked, DAMAGED_GZIP, detail)


def open_stream(path: Path) -> Stream:
    """The bytes of a whole capture, unpacked if its first bytes say that it is packed."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("expected a file, found something else")
    return GzipStream(path) if is_packed(path) else FileStream(path)


def is_packed(path: Path) -> bool:
    """Whether a file starts as gzip files do, whatever its name."""
    with path.open("rb", buffering=0) as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
