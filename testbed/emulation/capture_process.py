"""The process that captures: it has a packet socket at every link end and writes pcapng files.

A socket is bound to one device and gets only what that device sends, so each packet is seen once on
each link, at the end where it is sent. The kernel stamps it with the time, keeps it until it is
read, and counts packets without room. Several times a second, all packets that wait are read
together; root is given up before the first packet. Packets read together are in the order of their
times; `reordercap` sorts a whole file.

On Linux 6.15 and later, a socket for each node would be enough. Before, every packet of the machine
is offered to every socket that is not bound to a device.

It reads one JSON object from standard input, answers `{"ready": true}`, and captures until a
line comes or standard input ends; then it answers with its measurements.
"""

import ctypes
import itertools
import json
import os
import pwd
import select
import signal
import socket
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np

from agents.runtime.held_clock import HeldClock
from testbed.emulation.capacity import raise_descriptor_limit
from testbed.emulation.capture_files import CaptureFiles
from testbed.emulation.namespaces import entered
from testbed.emulation.packet_batch import PacketBatch
from testbed.emulation.pcapng import interface_description, interface_statistics, section_header
from testbed.emulation.privileges import become_nobody

_EVERY_PROTOCOL = 3
_SO_ATTACH_FILTER, _SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 26, 33, 35
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_BUFFER_BYTES = 1 << 24  # limit for each link end; not allocated in advance
_GATHER_S = 0.5
_CLOCK_STARTS_S = 0.05
_CLOSING_THREADS = 128
# Accepts packets that the device sends, and not those that it receives.
_LOAD_PACKET_TYPE = (0x20, 0, 0, 0xFFFFF004)
_IF_OUTGOING_ELSE_SKIP = (0x15, 0, 1, 4)
_ACCEPT, _REJECT = (0x06, 0, 0, 0xFFFFFFFF), (0x06, 0, 0, 0)


class CaptureProcess:
    """All sockets of a capture, and the files of their packets."""

    def __init__(self, setting: dict[str, Any]) -> None:
        ends = [tuple(end) for end in setting["ends"]]
        self._sockets = _open_sockets(ends)
        self._clock = HeldClock(setting["clock"])
        self._batch = PacketBatch(setting["snap_bytes"], self._clock)
        self._written = np.zeros(len(ends), np.int64)
        self._seen = 0
        self._interface_of = {s.fileno(): number for number, s in enumerate(self._sockets)}
        preamble = _preamble([name for _, name in ends], setting)
        spare_bytes = len(ends) * len(interface_statistics(0, 0, 0, 0, 0))
        folder = os.open(setting["folder"], os.O_RDONLY | os.O_DIRECTORY)
        self._files = CaptureFiles(
            folder, preamble, setting["file_bytes"], setting["max_bytes"], spare_bytes
        )

    def step_down(self) -> None:
        """Give up root and begin the first file; stay root if files cannot have owners."""
        nobody = pwd.getpwnam("nobody")
        with suppress(PermissionError):
            os.fchown(self._files.folder, nobody.pw_uid, nobody.pw_gid)
        if os.fstat(self._files.folder).st_uid == nobody.pw_uid:
            become_nobody()
        self._files.open()

    def run(self) -> None:
        """Capture until standard input has a line or ends."""
        with select.epoll() as poller:
            poller.register(0, select.EPOLLIN)
            for descriptor in self._interface_of:
                poller.register(descriptor, select.EPOLLIN | select.EPOLLET)
            everything = len(self._interface_of) + 1
            is_wanted = True
            while is_wanted:
                ready = [descriptor for descriptor, _ in poller.poll(None, everything)]
                is_wanted = 0 not in ready
                self._drain(ready)
                if is_wanted:  # reading many packets at once costs less
                    select.select([0], [], [], _GATHER_S)
            self._drain(list(self._interface_of))

    def finish(self) -> dict[str, Any]:
        """End the files with the counts, and return those."""
        counts = [_count(endpoint) for endpoint in self._sockets]
        self._files.close(self._statistics(counts))
        dropped = sum(lost for _, lost in counts)
        written = int(self._written.sum())
        return {
            "packets": written,
            "dropped": dropped + self._seen - written,
            "unwritten": self._seen - written,
            "bytes": self._files.total_bytes,
            "files": self._files.files,
            "full": self._files.full,
            "cpu_s": time.process_time(),
        }

    def close(self) -> None:
        """Close all sockets, many in parallel: each takes the kernel milliseconds."""
        with ThreadPoolExecutor(_CLOSING_THREADS) as threads:
            list(threads.map(socket.socket.close, self._sockets))

    def _drain(self, ready: list[int]) -> None:
        """Read all packets that wait at some sockets, and write them."""
        batch = self._batch
        for descriptor in ready:
            if descriptor == 0:
                continue
            batch.fill(descriptor, self._interface_of[descriptor])
            while batch.is_full:
                self._write()
                batch.fill(descriptor, self._interface_of[descriptor])
        self._write()

    def _write(self) -> None:
        packets = self._batch.take()
        self._seen += len(packets.blocks)
        self._written += np.bincount(self._files.add(packets), minlength=len(self._sockets))

    def _statistics(self, counts: list[tuple[int, int]]) -> bytes:
        """The last blocks: for each socket, the packets received, dropped and written."""
        now_ns = time.time_ns() - self._clock.held_ns
        return b"".join(
            interface_statistics(number, now_ns, received, dropped, int(self._written[number]))
            for number, (received, dropped) in enumerate(counts)
        )


def _count(endpoint: socket.socket) -> tuple[int, int]:
    """The packets that the kernel had for a socket, and those that it dropped."""
    received, dropped = struct.unpack(
        "=II", endpoint.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
    )
    return received, dropped


def _open_sockets(ends: list[tuple[str, str]]) -> list[socket.socket]:
    """A socket for each link end, all capturing."""
    sockets: dict[str, socket.socket] = {}
    for path, group in itertools.groupby(sorted(ends), key=lambda end: end[0]):
        namespace = os.open(path, os.O_RDONLY)
        with entered(namespace):
            sockets |= {name: _open_socket(name) for _, name in group}
        os.close(namespace)
    time.sleep(_CLOCK_STARTS_S)  # the kernel begins to timestamp packets with a short delay
    return [sockets[name] for _, name in ends]


def _open_socket(device: str) -> socket.socket:
    """A socket that gets the IP packets which a device sends."""
    # Without a protocol it receives nothing before it is bound, and binding does not wait for RCU.
    endpoint = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK, 0)
    steps = (_LOAD_PACKET_TYPE, _IF_OUTGOING_ELSE_SKIP, _ACCEPT, _REJECT)
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *s) for s in steps))
    attached = struct.pack("HP", len(steps), ctypes.addressof(program))
    endpoint.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, attached)
    endpoint.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
    endpoint.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    endpoint.bind((device, _EVERY_PROTOCOL))
    return endpoint


def _preamble(names: list[str], setting: dict[str, Any]) -> bytes:
    """The beginning of each file: its writer, and the interfaces by number."""
    header = section_header(setting["system"], setting["application"], setting["comment"])
    interfaces = [
        interface_description(name, setting["where"], setting["snap_bytes"]) for name in names
    ]
    return b"".join([header, *interfaces])


def _answer(message: dict[str, Any]) -> None:
    with suppress(BrokenPipeError):  # the parent has ended
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Capture with the options on the first line of standard input."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    raise_descriptor_limit()
    with open(0, "rb", buffering=0, closefd=False) as unbuffered:
        capture = CaptureProcess(json.loads(unbuffered.readline()))
    try:
        capture.step_down()
        _answer({"ready": True})
        capture.run()
        _answer(capture.finish())
    finally:
        capture.close()


if __name__ == "__main__":
    main()
