"""Reads many packets from packet sockets with few system calls, and converts them to pcapng blocks.

The kernel writes each packet into a slot of one large array, after space for its block's
header; NumPy then fills in all headers at once. Python's work for each packet is one
slice.
"""

import ctypes
import errno
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.runtime.held_clock import HeldClock
from testbed.emulation.capture_times import take_out_stops
from testbed.emulation.pcapng import ENHANCED_PACKET, PACKET_FRAME_BYTES, PACKET_HEADER_BYTES

_SLOTS = 8_192
_FLAGS = 0x40 | 0x20  # MSG_DONTWAIT, MSG_TRUNC
_MMSGHDR = np.dtype(
    [
        ("name", "u8"), ("name_bytes", "u8"), ("iov", "u8"), ("iov_count", "u8"),
        ("control", "u8"), ("control_bytes", "u8"), ("flags", "u8"), ("length", "u4"), ("", "u4"),
    ]
)  # fmt: skip
_IOVEC = np.dtype([("base", "u8"), ("bytes", "u8")])
_TIMESTAMP = np.dtype([("bytes", "u8"), ("level", "i4"), ("type", "i4"), ("s", "i8"), ("ns", "i8")])

_recvmmsg = ctypes.CDLL(None, use_errno=True).recvmmsg
_recvmmsg.argtypes = [
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p,
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Blocks:
    """Packets as pcapng blocks in the order of their times, with interface and length of each."""

    blocks: list[memoryview]
    interfaces: NDArray[np.int64]
    lengths: NDArray[np.int64]


class PacketBatch:
    """Slots for some thousand packets, at most `snap_bytes` of each, timed by a network's clock."""

    def __init__(self, snap_bytes: int, clock: HeldClock) -> None:
        self._snap_bytes = snap_bytes
        self._clock = clock
        self._stride = (PACKET_FRAME_BYTES + snap_bytes + 3 + 7) & ~7
        self._bytes = np.zeros((_SLOTS, self._stride), np.uint8)
        self._words = self._bytes.view(np.uint32)
        self._flat = memoryview(self._bytes.reshape(-1))  # type: ignore[arg-type]
        self._times = np.zeros(_SLOTS, _TIMESTAMP)
        self._messages = np.zeros(_SLOTS, _MMSGHDR)
        slots = np.arange(_SLOTS, dtype=np.uint64)
        self._vectors = np.zeros(_SLOTS, _IOVEC)
        self._vectors["base"] = _address(self._bytes) + slots * self._stride + PACKET_HEADER_BYTES
        self._vectors["bytes"] = snap_bytes
        self._messages["iov"] = _address(self._vectors) + slots * _IOVEC.itemsize
        self._messages["iov_count"] = 1
        self._messages["control"] = _address(self._times) + slots * _TIMESTAMP.itemsize
        self._messages["control_bytes"] = _TIMESTAMP.itemsize
        self._first_message = _address(self._messages)
        self._filled = 0
        self._sources: list[tuple[int, int]] = []

    @property
    def is_full(self) -> bool:
        """Whether packets must be taken out before more are read."""
        return self._filled == _SLOTS

    def fill(self, descriptor: int, interface: int) -> None:
        """Read the packets that wait at a socket, up to the number of free slots."""
        place = self._first_message + self._filled * _MMSGHDR.itemsize
        # With MSG_TRUNC the length is that of the whole packet, not of the part in the slot.
        count = _recvmmsg(descriptor, place, _SLOTS - self._filled, _FLAGS, None)
        if count > 0:
            self._filled += count
            self._sources.append((interface, count))
        elif count < 0 and (error := ctypes.get_errno()) != errno.EAGAIN:
            if error not in (errno.ENETDOWN, errno.EINTR):
                raise OSError(error, os.strerror(error))
            self.fill(descriptor, interface)  # an error that is reported once: the device went down

    def take(self) -> Blocks:
        """The content of the batch, which is empty afterwards; valid until the next `fill`."""
        count = self._filled
        interfaces, counts = np.array(self._sources, np.int64).reshape(-1, 2).T
        interfaces = np.repeat(interfaces, counts)
        stamps_ns = self._times["s"][:count] * 1_000_000_000 + self._times["ns"][:count]
        times_ns = take_out_stops(stamps_ns, self._clock)
        lengths = self._complete(interfaces, times_ns)
        order = np.argsort(stamps_ns, kind="stable")  # times are equal while a clock is paused
        starts = order * self._stride
        ends = starts + lengths[order]
        flat = self._flat
        pairs = zip(starts.tolist(), ends.tolist(), strict=True)
        blocks = [flat[start:end] for start, end in pairs]
        self._messages["control_bytes"][:count] = _TIMESTAMP.itemsize
        self._filled = 0
        self._sources.clear()
        return Blocks(blocks, interfaces[order], lengths[order])

    def _complete(
        self, interfaces: NDArray[np.int64], times_ns: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Write headers and ends of the blocks around the packets' data; returns their lengths."""
        count = len(interfaces)
        slots = np.arange(count)
        original = self._messages["length"][:count].astype(np.int64)
        captured = np.minimum(original, self._snap_bytes)
        padded = (captured + 3) & ~3
        lengths = padded + PACKET_FRAME_BYTES
        fields: tuple[NDArray[np.int64] | int, ...] = (
            ENHANCED_PACKET, lengths, interfaces, times_ns >> 32, times_ns & 0xFFFFFFFF,
            captured, original,
        )  # fmt: skip
        for column, values in enumerate(fields):
            self._words[:count, column] = values
        for byte in range(3):  # padding is zero; the length may overwrite some of it
            self._bytes[slots, PACKET_HEADER_BYTES + captured + byte] = 0
        self._words[slots, (PACKET_HEADER_BYTES + padded) >> 2] = lengths
        return lengths


def _address(array: NDArray[np.generic]) -> int:
    return int(array.ctypes.data)
