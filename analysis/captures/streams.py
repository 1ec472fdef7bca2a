"""Bytes of a capture in order: from a file or unpacked, through a window of fixed size.

Only a record says where the next one begins, so a walk goes from one to the next. To walk many
stretches of a window side by side, places are guessed where records seem to begin. A guess is
proven when the walk from the place before it comes to exactly there: the first place is known, and
each one that is proven is known in turn. From the first that is not, one record is walked after
another. So it is certain that no record is missed or made up.
"""

import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from analysis.captures.layouts import SLACK, Bytes, Ints
from analysis.captures.problems import DAMAGED_GZIP, Problem

GZIP_MAGIC = b"\x1f\x8b"
_PIECE = 1 << 16
_GZIP_BITS = 31  # zlib: a gzip header and its checksum

CHUNK_BYTES = 2 << 20  # what is worked on at a time: much, and still in the processor's cache
# No packet is longer; more than this in a header is damage (Wireshark has the same limit).
MOST_CAPTURED_BYTES = 262_144

RECORDS_A_STRETCH = 64
_LEAST_STRETCHES = 16  # with fewer, one record after another is quicker
_MOST_STEPS = 8 * RECORDS_A_STRETCH  # records are not all of one size, and guesses not all right
_STEPS_A_LOOK = 8
_TRIES = 4  # for a guess


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


class Window:
    """The bytes from `offset` on, `size` of them, in `data`.

    What is made from `data` must be a copy: the next `move` overwrites it.
    """

    def __init__(self, stream: Stream, offset: int = 0, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._stream = stream
        self._buffer = bytearray(chunk_bytes + SLACK)
        self._view = memoryview(self._buffer)
        self._chunk_bytes = chunk_bytes
        self.data: Bytes = np.frombuffer(self._buffer, dtype=np.uint8)
        self.offset = offset
        self.size = 0
        self.move(0)

    @property
    def view(self) -> memoryview:
        """The same bytes, for `struct`."""
        return self._view[: self.size]

    @property
    def buffer(self) -> bytearray:
        """The buffer itself, to search in."""
        return self._buffer

    @property
    def whole_view(self) -> memoryview:
        """The buffer, with what may be left over behind `size`."""
        return self._view

    def move(self, consumed: int) -> bool:
        """Go on by some bytes, and return whether there are any that were not there before."""
        if consumed > self.size:
            skipped = self._stream.skip(consumed - self.size)
            self.offset += self.size + skipped
            self.size = 0
        else:
            left = self.size - consumed
            self._view[:left] = bytes(self._view[consumed : self.size])
            self.offset, self.size = self.offset + consumed, left
        before = self.size
        while self.size < self._chunk_bytes:
            count = self._stream.read_into(self._view[self.size : self._chunk_bytes])
            if count == 0:
                break
            self.size += count
        return self.size > before


def guess_places(
    data: bytearray,
    mark: bytes,
    looks_right: Callable[[int], bool],
    first: int,
    apart: int,
    end: int,
) -> list[int]:
    """Places that are marked and look right, about so many bytes apart, the first of them known."""
    places, tried = [first], 0
    at = data.find(mark, first + apart, end)
    while at >= 0:
        tried += 1
        if looks_right(at):
            places.append(at)
        elif tried < _TRIES:
            at = data.find(mark, at + 1, end)
            continue
        at, tried = data.find(mark, at + apart, end), 0
    return places


def walk_abreast(places: Ints, following: Callable[[Ints], Ints]) -> tuple[Ints, int]:
    """Where records begin from the first place on, and the last place that is proven.

    `following` says where the records behind those at some places begin, and stays within the
    data wherever these are.
    """
    if len(places) <= _LEAST_STRETCHES:
        return places[:0], int(places[0])
    steps, at, stop = [places[:-1]], places[:-1], places[1:]
    while len(steps) < _MOST_STEPS and (at < stop).any():
        for _ in range(_STEPS_A_LOOK):
            at = following(at)
            steps.append(at)
    walked = np.stack(steps)
    is_before = walked < stop
    arrived = np.minimum(is_before.sum(axis=0), len(steps) - 1)
    is_proven = walked[arrived, np.arange(len(stop))] == stop
    proven = len(stop) if is_proven.all() else int(np.argmin(is_proven))
    return walked.T[:proven][is_before.T[:proven]], int(places[proven])
