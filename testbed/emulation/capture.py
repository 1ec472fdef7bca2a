"""The control of the process that captures the packets of an emulated network.

Each link is captured once in each direction, at the end where packets are sent: the interface
`r3-r7` of a capture has what r3 sent to r7. With a delay line, packets are captured as they enter
the link, so packets lost on the link are in the capture. Netem delays and drops packets before the
kernel shows them, so there they are captured as they leave the link. The description of every
interface says which. Times are those of the kernel's real-time clock, minus the pauses of the
network's clock.
"""

import json
import os
import platform
import select
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from testbed.emulation.capacity import raise_descriptor_limit
from testbed.emulation.network import EmulatedNetwork
from testbed.errors import EmulationError
from topologies.addresses import interface_name

SNAP_BYTES: Mapping[str, int] = MappingProxyType(
    {
        "all": 2_000,  # devices have an MTU of 1,500
        "headers": 96,  # IP with some options, UDP, and the header of our messages
    }
)
_FILE_BYTES = 256_000_000
_SPARE_DESCRIPTORS = 200
_PATIENCE_S = 120.0
_WHERE = {
    "delay-line": "packets as they enter the link",
    "netem": "packets as they leave the link",
}


class Capture:
    """A context manager: the capture runs from entry to `finish`."""

    def __init__(
        self,
        network: EmulatedNetwork,
        folder: Path,
        what: str = "all",
        max_mb: int = 0,
        file_bytes: int = _FILE_BYTES,
    ) -> None:
        """Capture `all` or `headers` of packets into a new folder.

        It becomes at most `max_mb` large; 0 stands for half of the free disk space.
        """
        self._network = network
        self._folder = folder
        self._what = what
        self._max_mb = max_mb
        self._file_bytes = file_bytes
        self._process: subprocess.Popen[str] | None = None

    @property
    def processes(self) -> list[int]:
        """The process that captures, while it runs."""
        return [self._process.pid] if self._process else []

    def __enter__(self) -> "Capture":
        _make_folder(self._folder)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "testbed.emulation.capture_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self._network.ledger.environment,
            start_new_session=True,  # Ctrl-C is handled by the run
        )
        answer = self._ask(self._setting())
        if "error" in answer:
            self._end()
            raise EmulationError(f"capture: expected it to start, found: {answer['error']}")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self.finish()

    def finish(self) -> dict[str, Any]:
        """End the capture; returns its measurements, with an `error` if it ended by itself.

        `dropped` are packets for which the kernel or, as part of it, the disk (`unwritten`) had no
        room; then `full` has the reason.
        """
        figures = self._ask({})
        self._end()
        return figures

    def _setting(self) -> dict[str, Any]:
        ends = [
            (self._network.namespace_path(node), interface_name(node, neighbour))
            for link in self._network.underlay.links
            for node, neighbour in ((link.a, link.b), (link.b, link.a))
        ]
        descriptors = raise_descriptor_limit()
        if len(ends) + _SPARE_DESCRIPTORS > descriptors:
            raise EmulationError(
                f"capture: expected a limit of {len(ends) + _SPARE_DESCRIPTORS} open files, found "
                f'{descriptors}; raise it with `ulimit -Hn`, or set capture = "none"'
            )
        kind = self._network.link_layer.kind
        return {
            "ends": ends,
            "folder": str(self._folder),
            "clock": self._network.link_layer.clock_path,
            "snap_bytes": SNAP_BYTES[self._what],
            "file_bytes": self._file_bytes,
            "max_bytes": self._max_mb * 1_000_000 or shutil.disk_usage(self._folder).free // 2,
            "system": f"{platform.system()} {platform.release()}",
            "application": f"tdo-testbed {version('tdo-testbed')}",
            "comment": f"network {self._network.ledger.run_id}, links by {kind}",
            "where": _WHERE[kind],
        }

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a line and wait for the answer, which has an `error` if the process failed."""
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # the process has ended; the reason follows
        poller = select.poll()  # the descriptor may be too large a number for select
        poller.register(process.stdout, select.POLLIN)
        if not poller.poll(_PATIENCE_S * 1000):
            return _no_figures(f"no answer within {_PATIENCE_S:.0f} s")
        line = process.stdout.readline()
        if line:
            return dict(json.loads(line))
        _, words = process.communicate()
        last_line = words.strip().rpartition("\n")[2] or "no output"
        return _no_figures(f"the process ended with status {process.returncode}: {last_line}")

    def _end(self) -> None:
        """Wait until the process has closed its sockets, and take ownership of its files."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        for path in (self._folder, *self._folder.glob("*.pcapng")):
            os.chown(path, os.geteuid(), os.getegid())


def _make_folder(folder: Path) -> None:
    """Create the folder, which has another owner during the capture and so must be private."""
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise EmulationError(
            f"capture: expected to make a new folder {folder}, found: {error.strerror}"
        ) from error


def _no_figures(error: str) -> dict[str, Any]:
    return {"packets": 0, "dropped": 0, "unwritten": 0, "bytes": 0, "files": 0, "error": error}
