"""The files of a capture: a new one when one is large, within the available disk space.

Each file is complete and describes every interface. Packets that cannot be written, for lack of
permission or space, are counted, and nothing is written after them, so the files have no gaps.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.emulation.packet_batch import Blocks


@dataclass
class CaptureFiles:
    """Files `packets-000.pcapng` and so on in an open folder; `preamble` begins each of them."""

    folder: int
    preamble: bytes
    file_bytes: int
    max_bytes: int
    spare_bytes: int  # reserved for the last blocks
    files: int = 0
    total_bytes: int = 0
    full: str | None = None
    _file: int | None = None
    _size: int = 0

    def open(self) -> None:
        """Begin the next file, or be full if there is no room for one."""
        if self._file is not None:
            os.close(self._file)
        name = f"packets-{self.files:03}.pcapng"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.open(name, flags, 0o644, dir_fd=self.folder)
        self._size = 0
        if self._write(self.preamble, [len(self.preamble)]):
            self.files += 1
        else:  # an empty file is no capture
            os.unlink(name, dir_fd=self.folder)
            os.close(self._file)
            self._file = None

    def add(self, packets: Blocks) -> NDArray[np.int64]:
        """Write packets; returns the interfaces of those that are now in a file."""
        done = 0
        while done < len(packets.blocks) and self.full is None:
            done += self._add_some(packets.blocks[done:], packets.lengths[done:])
        return packets.interfaces[:done]

    def close(self, last: bytes) -> None:
        """End the files with some last blocks."""
        if self._file is not None:
            self._write(last, [len(last)])
            os.close(self._file)
            self._file = None

    def _add_some(self, blocks: Sequence[memoryview], lengths: NDArray[np.int64]) -> int:
        """Write as much as the file holds, then begin another or be full; returns how many."""
        ends = np.cumsum(lengths)
        room = self.max_bytes - self.spare_bytes - self.total_bytes
        in_file = int(np.searchsorted(ends, self.file_bytes - self._size, side="right"))
        if self._size == len(self.preamble):
            in_file = max(in_file, 1)  # a file has at least one packet
        in_bounds = int(np.searchsorted(ends, room, side="right"))
        count = min(in_file, in_bounds)
        if count:
            count = self._write(b"".join(blocks[:count]), ends[:count])
        if count < len(blocks) and self.full is None:
            left = self.max_bytes - self.spare_bytes - self.total_bytes - len(self.preamble)
            if in_bounds <= in_file or lengths[count] > left:
                self.full = f"the limit of {self.max_bytes / 1e6:g} MB was reached"
            else:
                self._open_next()
        return count

    def _open_next(self) -> None:
        try:
            self.open()
        except OSError as error:
            self._file = None
            self.full = f"a file could not be opened ({error.strerror})"

    def _write(self, data: bytes, ends: Sequence[int] | NDArray[np.int64]) -> int:
        """Write blocks with these ends; returns how many the disk accepted."""
        assert self._file is not None
        done, count = 0, len(ends)
        try:
            while done < len(data):
                done += os.write(self._file, memoryview(data)[done:])
        except OSError as error:
            self.full = f"a file could not be written ({error.strerror})"
            count = int(np.searchsorted(ends, done, side="right"))
            done = int(ends[count - 1]) if count else 0
            os.ftruncate(self._file, self._size + done)
            os.lseek(self._file, 0, os.SEEK_END)
        self._size += done
        self.total_bytes += done
        return count
