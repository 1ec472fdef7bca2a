"""The state of a detached run on disk, from which its status is read.

    results/.runs/<id>/
      state.json   the command, its start, its place, and the processes
      log          the output of the run
      exit         how it ended; its space is reserved beforehand, because disks may fill up
      fetched      exists after the results were fetched by another machine and checked

There is no daemon: any process that can read the folder can read the status. The folder is below
the results, because it must survive a reboot. The verdict and the directory are read from the
output.
"""

import json
import shutil
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from testbed.errors import UsageError
from testbed.processes import boot_id, is_running

RUNS = ".runs"
RECORDING = "recording in "  # the line of output that names the directory of a run
GOING_ON = ("preparing", "running", "analysing")  # the phases of a run that has not ended
_EXIT_ROOM = 120
_HEAD_BYTES, _TAIL_BYTES = 65_536, 1_048_576
_FULL_BYTES = 65_536
_ENDED_WELL = (0, 3)


@dataclass(frozen=True, slots=True)
class RunStatus:
    """The status of a detached run; `died` has the cause if it did not end normally."""

    id: str
    name: str
    backend: str
    phase: str  # one of GOING_ON, or finished, failed, died
    progress: str
    started_at: str
    elapsed_s: float
    directory: str | None
    verdict: str | None
    died: str | None
    exit_status: int | None
    pid: int
    log: str
    project: str
    is_fetched: bool

    @property
    def is_going_on(self) -> bool:
        """Whether the run has not ended."""
        return self.phase in GOING_ON

    def to_dict(self) -> dict[str, Any]:
        """The status as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one detached run."""

    path: Path

    @property
    def log(self) -> Path:
        """The output of the run."""
        return self.path / "log"

    def create(self, state: Mapping[str, Any]) -> None:
        """Make the folder; raise if the id is taken."""
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            raise UsageError(
                f"run {self.path.name}: expected a new id, found one in use; choose another or "
                f"look at it with `tdo status {self.path.name}`"
            ) from None
        self.log.touch()
        (self.path / "exit").write_text(" " * _EXIT_ROOM)
        self.write(state)

    def read(self) -> dict[str, Any]:
        """The command that was started."""
        state: dict[str, Any] = json.loads((self.path / "state.json").read_text())
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Write the command in one step."""
        draft = self.path / "state.json.new"
        draft.write_text(json.dumps(state, indent=1) + "\n")
        draft.replace(self.path / "state.json")

    def write_exit(self, status: int) -> None:
        """Write how the run ended, without using more disk space."""
        text = json.dumps({"status": status, "ended_at": now()})
        with (self.path / "exit").open("r+") as file:
            file.write(text.ljust(_EXIT_ROOM))

    def status(self) -> RunStatus:
        """The status of the run."""
        state = self.read()
        was_alive = _is_alive(state)  # read first: a process that ends later has recorded its end
        ended = self._read_exit()
        lines = _read_lines(self.log)
        outcome = _find_outcome(lines)
        is_alive = ended is None and was_alive
        directory = _find_directory(state, outcome, lines)
        if directory is not None and not is_alive and not directory.exists():
            directory = None
        phase = _live_phase(directory) if is_alive else _ended_phase(ended, outcome)
        progress = _last_said(lines)
        died = None
        if phase in ("failed", "died"):
            died = _how_it_died(state, ended, progress, self.path)
        end = now() if is_alive else (ended or {}).get("ended_at") or _last_change(self.log)
        return RunStatus(
            id=self.path.name,
            name=state["name"],
            backend=state["backend"],
            phase=phase,
            progress=progress,
            started_at=state["started_at"],
            elapsed_s=round(_seconds_between(state["started_at"], end), 1),
            directory=None if directory is None else str(directory),
            verdict=_verdict(outcome),
            died=died,
            exit_status=None if ended is None else ended["status"],
            pid=state["pid"],
            log=str(self.log.absolute()),
            project=state["project"],
            is_fetched=(self.path / "fetched").exists(),
        )

    def _read_exit(self) -> dict[str, Any] | None:
        text = (self.path / "exit").read_text().strip()
        return json.loads(text) if text else None


def find_runs(results: Path) -> list[RunFolder]:
    """All detached runs of a results folder, the latest first."""
    found = [RunFolder(state.parent) for state in (results / RUNS).glob("*/state.json")]
    return sorted(found, key=lambda run: str(run.read()["started_at"]), reverse=True)


def find_run(results: Path, wanted: str) -> RunFolder:
    """The run with an id; a beginning is sufficient if no other id has it."""
    runs = find_runs(results)
    exact = [run for run in runs if run.path.name == wanted]
    found = exact or [run for run in runs if run.path.name.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(run.path.name for run in (found or runs)[:5]) or "none"
    expected = "one run" if found else "a run"
    raise UsageError(
        f"{wanted}: expected the id of {expected} in {results / RUNS}, found {known}; `tdo status` "
        "lists them"
    )


def now() -> str:
    """The current time in the form of `state.json`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _seconds_between(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _last_change(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="milliseconds")


def _read_lines(log: Path) -> list[str]:
    """The lines of a log; of a very long one only the first and the last."""
    with log.open("rb") as file:
        size = log.stat().st_size
        head = file.read(_HEAD_BYTES if size > _HEAD_BYTES + _TAIL_BYTES else size)
        file.seek(max(len(head), size - _TAIL_BYTES))
        tail = file.read()
    lines = (head + b"\n" + tail if tail else head).decode(errors="replace").splitlines()
    return [line for line in lines if line.strip()]


def _find_outcome(lines: list[str]) -> dict[str, Any]:
    """The JSON object at the end of a successful run's output."""
    if not lines or not lines[-1].startswith("{"):
        return {}
    try:
        outcome = json.loads(lines[-1])
    except ValueError:
        return {}
    return outcome if isinstance(outcome, dict) else {}


def _find_directory(
    state: Mapping[str, Any], outcome: Mapping[str, Any], lines: list[str]
) -> Path | None:
    """The current path of the results."""
    said = [line.strip() for line in lines if line.strip().startswith(RECORDING)]
    named = outcome.get("path") or (said[-1].removeprefix(RECORDING) if said else None)
    named = named or state["directory"]
    if named is None:
        return None
    path = Path(state["folder"], named)
    final = path.with_name(path.name.removesuffix(".partial"))
    return final if final.exists() or not path.exists() else path


def _verdict(outcome: Mapping[str, Any]) -> str | None:
    if "verdicts" in outcome:  # of a sweep
        counted = sorted(outcome["verdicts"].items())
        return ", ".join(f"{count} {verdict}" for verdict, count in counted)
    return outcome.get("verdict")


def _last_said(lines: list[str]) -> str:
    said = [line.strip() for line in lines if not line.startswith(("{", "WARNING"))]
    return said[-1] if said else ""


def _is_alive(state: Mapping[str, Any]) -> bool:
    """Whether the run is running, or its keeper, which has not recorded the end yet."""
    return any(
        is_running(state[process], state[f"{process}_started"], state["boot"])
        for process in ("pid", "keeper")
    )


def _live_phase(directory: Path | None) -> str:
    if directory is None or not directory.exists():
        return "preparing"
    is_recording = directory.name.endswith(".partial") or directory.name.startswith("sweep-")
    return "running" if is_recording else "analysing"


def _ended_phase(ended: Mapping[str, Any] | None, outcome: Mapping[str, Any]) -> str:
    if ended is None:
        return "finished" if outcome else "died"
    if ended["status"] in _ENDED_WELL:
        return "finished"
    return "failed" if ended["status"] > 0 else "died"


def _how_it_died(
    state: Mapping[str, Any], ended: Mapping[str, Any] | None, progress: str, folder: Path
) -> str:
    full = "; the disk is full" if shutil.disk_usage(folder).free < _FULL_BYTES else ""
    if ended is None:
        if state["boot"] != boot_id():
            return "the machine was restarted"
        return f"it was killed, and the process that watched it, too{full}"
    if ended["status"] < 0:
        return f"killed by {signal.Signals(-ended['status']).name}{full}"
    said = (
        progress
        if progress.startswith("tdo: ")
        else f"its last line of output: {progress or 'none'}"
    )
    return f"exit status {ended['status']}: {said.removeprefix('tdo: ')}{full}"
