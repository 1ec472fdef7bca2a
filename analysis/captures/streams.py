"""Bytes of a capture in order, uncompressed if necessary, through a window of fixed size.

The length of a record gives the offset of the next one, so records are read in turn. To read many
stretches of a window in parallel, offsets of records are guessed. A guess is
proven when reading from the offset before it reaches it exactly. The first offset is known, and
each proven one is known in turn. From the first that is not proven, records are read one after
another. No record is missed or invented.
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

CHUNK_BYTES = 2 << 20  # size of the window: large, but within the processor's cache
# No packet is longer; a larger length is damage (Wireshark has the same limit).
MOST_CAPTURED_BYTES = 262_144

RECORDS_A_STRETCH = 64
_LEAST_STRETCHES = 16  # with fewer, reading one record after another is faster
_MOST_STEPS = 8 * RECORDS_A_STRETCH  # records vary in size; some guesses are wrong
_STEPS_A_LOOK = 8
_TRIES = 4  # for a guess


class Stream(Protocol):
    """The source of a window's bytes."""

    problem: Problem | None  # the problem that ended it early, if any

    def read_into(self, view: memoryview) -> int:
        """Fill a view from its beginning, and return the number of bytes; 0 at the end."""

    def skip(self, size: int) -> int:
        """Skip some bytes, and return the number of bytes skipped."""

    def close(self) -> None:
        """Close the file."""


class FileStream:
    """A file from an offset to another or to its end."""

    def __init__(self, path: Path, start: int = 0, end: int | None = None) -> None:
        self._file = path.open("rb", buffering=0)
        size = os.fstat(self._file.fileno()).st_size
        self._left = max((size if end is None else min(end, size)) - start, 0)
        self._file.seek(start)
        self.problem: Problem | None = None

    def read_into(self, view: memoryview) -> int:
        """Fill a view from its beginning, and return the number of bytes; 0 at the end."""
        # A file that grows meanwhile is read up to its size at the start.
        count = self._file.readinto(view[: self._left]) or 0 if self._left else 0
        self._left = self._left - count if count else 0
        return count

    def skip(self, size: int) -> int:
        """Skip some bytes, and return the number of bytes skipped."""
        skipped = min(size, self._left)
        self._file.seek(skipped, os.SEEK_CUR)
        self._left -= skipped
        return skipped

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class GzipStream:
    """The content of a gzip file of one or more parts, up to the first damage.

    Python's `gzip` would also lose the last bytes before the damage.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb", buffering=0)
        self._packed = b""
        self._member = zlib.decompressobj(_GZIP_BITS)
        self._is_over = False
        self._unpacked = 0
        self._step = _PIECE  # 1 after damage, to read as close to it as possible
        self.problem: Problem | None = None

    def read_into(self, view: memoryview) -> int:
        """Fill a view from its beginning, and return the number of bytes; 0 at the end."""
        while not self._is_over and len(view):
            self._packed = self._packed or self._file.read(_PIECE)
            # A bounded result: a few compressed bytes can contain gigabytes.
            found = self._unpack(len(view))
            if found:
                view[: len(found)] = found
                return len(found)
        return 0

    def skip(self, size: int) -> int:
        """Skip some bytes, and return the number of bytes skipped."""
        scratch, skipped = memoryview(bytearray(min(size, _PIECE))), 0
        while skipped < size:
            count = self.read_into(scratch[: size - skipped])
            if count == 0:
                break
            skipped += count
        return skipped

    def close(self) -> None:
        """Close the file."""
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
        """Continue after a complete part: with another one, zeros as padding, or the end."""
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
    """The bytes of a whole capture, uncompressed if it is a gzip file."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("expected a file, found something else")
    return GzipStream(path) if is_packed(path) else FileStream(path)


def is_packed(path: Path) -> bool:
    """Whether the content of a file is gzip, whatever its name."""
    with path.open("rb", buffering=0) as file:
        return file.read(len(GZIP_MAGIC)) == GZIP_MAGIC


class Window:
    """The bytes from `offset` on, `size` of them, in `data`.

    Results made from `data` must be copies: the next `move` overwrites it.
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
        """The buffer, with old bytes after `size`."""
        return self._view

    def move(self, consumed: int) -> bool:
        """Move the window by some bytes, and return whether it has new ones."""
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
    """Marked offsets that look valid, about `apart` bytes apart; the first one is known."""
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
    """The offsets of records from the first place on, and the last proven place.

    `following` returns the offsets of the next records after those at some offsets; they are
    within the data, whatever is there.
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
