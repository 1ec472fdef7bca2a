"""A window that moves over a stream: some of its bytes in a buffer that is never enlarged."""

import numpy as np

from analysis.captures.arrays import SLACK, Bytes
from analysis.captures.streams import Stream

CHUNK_BYTES = 2 << 20  # what is worked on at a time: much, and still in the processor's cache
# No packet is longer; more than this in a header is damage (Wireshark has the same limit).
MOST_CAPTURED_BYTES = 262_144


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
