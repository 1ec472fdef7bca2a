"""Arrival times of packets by the kernel, so that a busy process does not make them late."""

import socket
import struct
import time
from collections.abc import Iterable

STAMP_BYTES = 64  # room for a stamp among a packet's ancillary data
_SO_TIMESTAMPNS = 35  # Linux; not in the socket module
_STAMP = struct.Struct("=qq")


def stamp_arrivals(opened: socket.socket) -> None:
    """Enable kernel time stamps for all packets that a socket receives."""
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)


def arrival_ns(ancillary: Iterable[tuple[int, int, bytes]]) -> int:
    """The arrival time of a packet on the clock of `time.monotonic_ns`; without a stamp, now."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _STAMP.unpack(data)
            age_ns = time.time_ns() - int(seconds) * 1_000_000_000 - int(nanoseconds)
            return time.monotonic_ns() - max(0, age_ns)
    return time.monotonic_ns()
