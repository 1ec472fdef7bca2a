"""The ledger of emulated networks, and cleaning up by it.

Each network writes one file before it creates anything, and removes it after everything is removed.
Namespaces and devices end with their processes (see `namespaces`), so a network can leave only
processes behind. Those are recognised in two ways: by the run's id, which every child has in its
environment, and by the namespace they run in. Other processes are not affected.
"""

import json
import os
import secrets
import select
import signal
import sys
import time
from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten

from testbed.emulation.namespaces import entered, own_cookie
from testbed.errors import EmulationError
from testbed.processes import boot_id, is_running, start_time

LEDGERS = Path("/run/tdo")
RUN_VARIABLE = "TDO_RUN"
_PATIENCE_S = 20.0
_COMMAND_LENGTH = 80
_DRAFT_S = 60.0  # a network writes its ledger in less time
_STARTING_S = 0.2  # a process gets its environment shortly after its creation


@dataclass
class Ledger:
    """The ledger of one network; `cookies` are the numbers of its namespaces."""

    run_id: str
    owner: int
    owner_started: int
    boot: str
    command: str
    cookies: list[int] = field(default_factory=list)

    @classmethod
    def begin(cls) -> "Ledger":
        """A ledger for a new network of this process, on disk."""
        pid = os.getpid()
        command = " ".join(sys.argv)
        ledger = cls(secrets.token_hex(4), pid, start_time(pid), boot_id(), command)
        LEDGERS.mkdir(mode=0o755, exist_ok=True)
        ledger.write()
        return ledger

    @property
    def path(self) -> Path:
        """The file of this ledger."""
        return LEDGERS / f"{self.run_id}.json"

    @property
    def environment(self) -> dict[str, str]:
        """The environment for every process of this network."""
        return {**os.environ, RUN_VARIABLE: self.run_id}

    @property
    def is_live(self) -> bool:
        """Whether the process that made the network still runs."""
        return is_running(self.owner, self.owner_started, self.boot)

    def write(self) -> None:
        """Update the file in one step."""
        draft = self.path.with_suffix(".new")
        draft.write_text(json.dumps(self.__dict__))
        draft.replace(self.path)

    def settle(self) -> list[str]:
        """End the network's remaining processes, remove its ledger, and return what was removed."""
        ended = _end_processes(self) if self.boot == boot_id() else []
        self.path.unlink(missing_ok=True)
        return ended


def clean() -> tuple[list[str], list[str]]:
    """Remove what networks of ended processes left; returns what was removed and what was not."""
    removed, kept = [], []
    for ledger in read_ledgers():
        if ledger.is_live:
            kept.append(f"network {ledger.run_id} of process {ledger.owner} ({ledger.command})")
            continue
        time.sleep(_STARTING_S)  # its owner may have been killed while it started a process
        removed += [f"{process} of network {ledger.run_id}" for process in ledger.settle()]
        removed.append(f"ledger of network {ledger.run_id} ({ledger.command})")
    for draft in LEDGERS.glob("*.new"):
        with suppress(FileNotFoundError):  # a running network has just written it
            if time.time() - draft.stat().st_mtime > _DRAFT_S:
                draft.unlink()
    return removed, kept


def read_ledgers() -> Iterator[Ledger]:
    """The ledgers of all networks that exist, or existed when their processes were killed."""
    for path in sorted(LEDGERS.glob("*.json")):
        with suppress(FileNotFoundError):  # its network was stopped in the meantime
            yield Ledger(**json.loads(path.read_text()))


class OtherNetworks:
    """The networks of other runs that were on this machine at the same time as one network."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._commands: dict[str, str] = {}  # by run id

    @property
    def names(self) -> list[str]:
        """The run id and the command of each network that was found."""
        return [
            f"{run_id}: {shorten(command, _COMMAND_LENGTH)}"
            for run_id, command in self._commands.items()
        ]

    def look(self) -> None:
        """Record the other networks that exist now."""
        self._commands |= {
            ledger.run_id: ledger.command
            for ledger in read_ledgers()
            if ledger.run_id != self._run_id and ledger.is_live
        }


def _end_processes(ledger: Ledger) -> list[str]:
    """End all processes of a network, by force if necessary; returns their names."""
    ended: dict[int, str] = {}
    for how, patience_s in ((signal.SIGTERM, _PATIENCE_S), (signal.SIGKILL, _PATIENCE_S)):
        handles = {}
        for pid, handle in _processes_of(ledger):
            handles[handle] = pid
            ended[pid] = f"process {pid} ({_command_of(pid)})"
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, how)
                signal.pidfd_send_signal(
                    handle, signal.SIGHUP
                )  # a shell reacts only to this signal
        remaining = _wait_for_end(handles, patience_s)
        if not remaining:
            return list(ended.values())
    raise EmulationError(
        f"network {ledger.run_id}: expected its processes to end, found {sorted(remaining)} still "
        f"running {2 * _PATIENCE_S:.0f} s later; run `tdo clean` again"
    )


def _wait_for_end(handles: dict[int, int], patience_s: float) -> Set[int]:
    """The processes among open handles that still run after a time limit."""
    deadline = time.monotonic() + patience_s
    poller = select.poll()
    for handle in handles:
        poller.register(handle, select.POLLIN)
    waiting = set(handles)
    while waiting and (left_s := deadline - time.monotonic()) > 0:
        for handle, _ in poller.poll(left_s * 1000):
            poller.unregister(handle)
            waiting.discard(handle)
    for handle in handles:
        os.close(handle)
    return {handles[handle] for handle in waiting}


def _processes_of(ledger: Ledger) -> Iterator[tuple[int, int]]:
    """Process ids and open handles of the processes that belong to a network."""
    marker = f"{RUN_VARIABLE}={ledger.run_id}".encode()
    cookies = set(ledger.cookies)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(int(entry.name))
            # Checked after the handle is open, so that handle and process are the same.
            if _belongs(entry, marker, cookies):
                yield int(entry.name), handle
            else:
                os.close(handle)


def _belongs(process: Path, marker: bytes, cookies: Set[int]) -> bool:
    """Whether a process has the mark in its environment, or is in one of the namespaces."""
    try:
        is_marked = marker in (process / "environ").read_bytes().split(b"\0")
        return is_marked or _namespace_cookie(process) in cookies
    except (ProcessLookupError, FileNotFoundError, PermissionError):
        return False  # it has just ended, or is a kernel thread


def _namespace_cookie(process: Path) -> int | None:
    """The number of the namespace a process is in, or None if it is in ours."""
    if (process / "ns/net").stat().st_ino == Path("/proc/thread-self/ns/net").stat().st_ino:
        return None
    namespace = os.open(process / "ns/net", os.O_RDONLY)
    try:
        with entered(namespace):
            return own_cookie()
    finally:
        os.close(namespace)


def _command_of(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended"
    return b" ".join(words).decode(errors="replace").strip()
