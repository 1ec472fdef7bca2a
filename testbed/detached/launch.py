"""Starts runs that continue after the terminal is closed."""

import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.detached.keeper import DETACHED_VARIABLE
from testbed.detached.state import RUNS, RunFolder, now
from testbed.errors import EmulationError, UsageError
from testbed.experiment.file import NAME_PATTERN
from testbed.ownership import hand_over
from testbed.processes import boot_id, start_time


@dataclass(frozen=True, slots=True)
class Launch:
    """A run to start: name and backend of the experiment, the folder of results, an optional id.

    The directory of a sweep is known beforehand.
    """

    name: str
    backend: str
    results: Path
    run_id: str | None = None
    directory: Path | None = None


def is_detached() -> bool:
    """Whether this process is a detached run."""
    return DETACHED_VARIABLE in os.environ


def launch(what: Launch, arguments: Sequence[str]) -> RunFolder:
    """Start `tdo` with these arguments in a session of its own; returns the run's folder."""
    run_id = what.run_id or f"{what.name}-{secrets.token_hex(3)}"
    if not NAME_PATTERN.fullmatch(run_id):
        raise UsageError(f"--id {run_id}: expected letters, digits, dots and hyphens")
    ours = [path for path in (what.results, what.results / RUNS) if not path.exists()]
    folder = RunFolder(what.results.absolute() / RUNS / run_id)
    folder.create(
        {
            "name": what.name,
            "backend": what.backend,
            "command": [sys.executable, str(_find_command()), *arguments, "--json"],
            "folder": str(Path.cwd()),
            "directory": None if what.directory is None else str(what.directory),
            "project": str(Path(__file__).parents[2]),
            "started_at": now(),
            "boot": boot_id(),
            "pid": os.getpid(),  # until the run has one
            "pid_started": start_time(os.getpid()),
            "keeper": 0,
            "keeper_started": 0,
        }
    )
    try:
        _start_keeper(folder)
    finally:
        hand_over([*ours, folder.path])
    return folder


def _find_command() -> Path:
    """The command of this Python environment."""
    command = Path(sys.executable).with_name("tdo")
    if not command.exists():
        raise EmulationError(f"{command}: expected the command tdo, found none; run scripts/setup")
    return command


def _start_keeper(folder: RunFolder) -> None:
    """Start the process that starts the run, and wait until the run has started."""
    with folder.log.open("ab") as log:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "testbed.detached.keeper", str(folder.path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd="/",
            env={**os.environ, "PYTHONPATH": _search_path()},
            start_new_session=True,
        )
    assert keeper.stdout is not None
    with keeper.stdout as said:
        is_started = said.readline() == b"started\n"
    if not is_started:
        words = folder.log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise EmulationError(f"run {folder.path.name}: expected it to start, found: {words}")


def _search_path() -> str:
    """The module search path, with this project's modules first."""
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(Path(__file__).parents[2]), *([given] if given else [])])
