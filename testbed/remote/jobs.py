"""The actions of `tdo remote`: run, status, fetch, clean."""

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.detached.state import GOING_ON
from testbed.errors import UsageError
from testbed.experiment.file import NAME_PATTERN
from testbed.remote.connection import Connection
from testbed.remote.errors import RemoteError
from testbed.remote.far_machine import FarMachine, last_object
from testbed.remote.fetching import fetch_directory
from testbed.remote.parcels import pack_experiment, pack_project
from testbed.remote.session import Say, Session
from testbed.remote.ssh_settings import find_destination
from testbed.run.directory import point_latest
from testbed.sweeps.file import Sweep

Run = dict[str, Any]  # as in `tdo status --json`


@dataclass(frozen=True, slots=True)
class Place:
    """The other machine, and our folders on it."""

    host: str
    ssh_config: Path | None = None
    folder: str = ".tdo"
    environment: str | None = None


@dataclass(frozen=True, slots=True)
class Order:
    """A run to start: its file, its experiments, and the options of `tdo run` there."""

    file: Path
    sweep: Sweep
    options: Sequence[str] = ()
    is_beside_others: bool = False


@contextmanager
def reach(place: Place, say: Say) -> Iterator[FarMachine]:
    """The other machine, with a connection that is kept open."""
    with Session(find_destination(place.host, place.ssh_config), say) as session:
        yield FarMachine(session, place.folder, say)


def start_run(far: FarMachine, place: Place, order: Order, say: Say) -> str:
    """Send what is needed and start a detached run; returns its id."""
    parcel, name = pack_experiment(order.file, order.sweep)
    project = far.send(pack_project(), "projects")
    experiment = far.send(parcel, "experiments") / name
    far.prepare(project, place.environment)
    backends = {swept.experiment.backend for swept in order.sweep.experiments}
    needs_root = "emulation" in backends
    if needs_root:
        require_emulation(far, project)
        if not order.is_beside_others:
            require_quiet(far, project)
    run_id = f"{order.sweep.name}-{secrets.token_hex(3)}"
    options = ["--detach", "--json", "--id", run_id, "--out", str(far.results), *order.options]
    _start(
        far, run_id, far.tdo(project, ["run", str(experiment), *options], needs_root), needs_root
    )
    say(f"run {run_id} started there; to see its state: tdo remote status {far.name} {run_id}")
    return run_id


def _start(far: FarMachine, run_id: str, command: str, needs_root: bool) -> None:
    """Start the run once, even if the connection is cut before the answer arrives."""
    given = far.become_root()[1] if needs_root else ""
    state = str(far.results / ".runs" / run_id / "state.json")

    def is_started(connection: Connection) -> bool:
        with connection.guarded():
            try:
                connection.sftp.stat(state)
            except FileNotFoundError:
                return False
        return True

    def start(connection: Connection) -> None:
        if is_started(connection):
            return
        done = connection.run(command, given)
        if done.status != 0 and not is_started(connection):
            raise RemoteError(f"{far.name}: {done.last_words.removeprefix('tdo: ')}")

    far.session.persist(start)


def require_emulation(far: FarMachine, project: PurePosixPath) -> None:
    """Raise with what is missing there, and the command that installs it."""
    done = far.run_tdo(project, ["doctor", "--json"], as_root=True)
    answer = last_object(far.name, done)
    if not answer["can_emulate"]:
        miss = next(f for f in answer["findings"] if f["is_needed"] and not f["is_good"])
        raise RemoteError(
            f"{far.name}: expected a machine that can emulate networks, found {miss['name']}: "
            f"{miss['found']}; run there: {miss['remedy']}"
        )


def require_quiet(far: FarMachine, project: PurePosixPath) -> None:
    """Raise if another emulated run is going on there: both would have late packets."""
    answer = _ask_status(far, project, [])
    others = [
        f"run {run['id']} ({run['progress']})"
        for run in answer["runs"]
        if run["phase"] in GOING_ON and "emulation" in run["backend"]
    ]
    others += [f"network {n['id']} of process {n['pid']}" for n in answer["networks"]]
    if others:
        raise RemoteError(
            f"{far.name}: expected no other emulated run going on there, found {others[0]}; wait "
            f"for it, or start this one anyway with --beside; both may then be late"
        )


def read_status(far: FarMachine) -> dict[str, Any]:
    """All runs and networks there, as in `tdo status --all --json`."""
    project = far.find_project()
    if project is None:
        return {"runs": [], "networks": []}
    return _ask_status(far, project, ["--all"])


def find_run(far: FarMachine, wanted: str) -> Run:
    """The run there with an id; its beginning is sufficient."""
    runs: list[Run] = read_status(far)["runs"]
    found = [run for run in runs if run["id"] == wanted]
    found = found or [run for run in runs if run["id"].startswith(wanted)]
    if len(found) != 1:
        known = ", ".join(run["id"] for run in (found or runs)[:5]) or "none"
        raise UsageError(f"{wanted}: expected the id of a run on {far.name}, found {known}")
    return found[0]


def _ask_status(far: FarMachine, project: PurePosixPath, more: Sequence[str]) -> dict[str, Any]:
    done = far.run_tdo(project, ["status", "--json", "--out", str(far.results), *more])
    return last_object(far.name, done)


def follow_run(far: FarMachine, run_id: str, on_line: Callable[[str], None]) -> Run:
    """Print the output of a run, line by line, until it ends; returns its final state."""
    waiting = b""

    def take(piece: bytes) -> None:
        nonlocal waiting
        *lines, waiting = (waiting + piece).split(b"\n")
        for line in lines:
            on_line(line.decode(errors="replace"))

    far.follow(run_id, take)
    if waiting:
        on_line(waiting.decode(errors="replace"))
    return find_run(far, run_id)


def fetch_run(far: FarMachine, run: Run, results: Path, say: Say) -> Path:
    """Fetch the directory of an ended run into the results here."""
    if run["phase"] in GOING_ON:
        raise UsageError(
            f"{run['id']}: expected a run that has ended, found it {run['phase']} on {far.name}; "
            f"follow it with `tdo remote status {far.name} {run['id']} --follow`"
        )
    if run["directory"] is None:
        why = run["died"] or "its directory is gone"
        raise RemoteError(f"{run['id']}: nothing to fetch on {far.name}: {why}")
    directory = PurePosixPath(run["directory"])
    for name in (run["name"], directory.name, run["id"]):
        if not NAME_PATTERN.fullmatch(name):
            raise RemoteError(f"{far.name}: expected the name of a run, found {name!r}")
    fetched = fetch_directory(far, directory, results / run["name"], say)
    _mark_fetched(far, run["id"])
    if run["phase"] == "finished" and not fetched.name.startswith("sweep-"):
        _point_if_latest(fetched)
    return fetched


def _point_if_latest(fetched: Path) -> None:
    latest = fetched.parent / "latest"
    if not latest.exists() or latest.stat().st_mtime <= fetched.stat().st_mtime:
        point_latest(fetched)


def _mark_fetched(far: FarMachine, run_id: str) -> None:
    """Record there that this run was fetched."""
    mark = str(far.results / ".runs" / run_id / "fetched")

    def leave(connection: Connection) -> None:
        with connection.guarded(), connection.sftp.open(mark, "w"):
            pass

    try:
        far.session.persist(leave)
    except OSError:
        return  # the disk is full, or the folder is another user's; the run is kept


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What is removed and what is kept; `left` has the reasons."""

    runs: list[Run]
    kept_projects: list[str]
    is_busy: bool
    left: list[str]


def clean_there(far: FarMachine, with_runs: bool) -> tuple[list[str], list[str]]:
    """Remove our files there; returns what was removed, and what was kept and why."""
    project = far.find_project()
    removed: list[str] = []
    if project is not None:
        cleaned = far.run_tdo(project, ["clean"], as_root=True)
        if cleaned.status != 0:
            raise RemoteError(f"{far.name}: {cleaned.last_words.removeprefix('tdo: ')}")
        removed = [line for line in cleaned.output.splitlines() if line.startswith("removed ")]
    plan = plan_cleaning(read_status(far)["runs"], str(project), with_runs)
    answer = far.call_as_root(
        "tidy",
        folder=str(far.facts.folder),
        kept_projects=plan.kept_projects,
        runs=[(run["id"], run["directory"]) for run in plan.runs],
        is_busy=plan.is_busy,
    )
    return [*removed, *(f"removed {path}" for path in answer["removed"])], plan.left


def plan_cleaning(runs: Sequence[Run], project: str, with_runs: bool) -> Cleaning:
    """What to remove of these runs and projects; one project stays as long as a run does.

    Without a project there, remaining runs could not be listed, fetched or removed.
    """
    live = [run for run in runs if run["phase"] in GOING_ON]
    ended = [run for run in runs if run not in live]
    gone = [run for run in ended if with_runs and _is_dispensable(run)]
    kept = [run for run in ended if run not in gone]
    left = [f"run {run['id']} and its project: the run is going on" for run in live]
    left += [_why_left(run) for run in kept]
    left += (
        [f"project {project}: it is needed to list and fetch the remaining runs"] if kept else []
    )
    projects = [run["project"] for run in live] + ([project] if kept else [])
    return Cleaning(gone, projects, bool(live), left)


def _is_dispensable(run: Run) -> bool:
    """Whether a run has ended, and was fetched or has nothing to fetch."""
    return run["is_fetched"] or run["directory"] is None


def _why_left(run: Run) -> str:
    why = "--runs removes it" if _is_dispensable(run) else "it was not fetched"
    return f"run {run['id']} in {run['directory'] or 'no directory'}: {why}"
