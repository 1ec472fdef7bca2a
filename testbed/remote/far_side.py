"""The script that runs on the other machine with any `python3` there.

It is sent with each command, so its version is that of the sender. It uses only the
standard library of Python 3.9. It prints one JSON object, except `follow`, which prints a log.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import select
import shutil
import stat
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

PIECE = 1 << 20
POLL_S = 0.3
TICKS_FIELD = 19  # field of /proc/PID/stat, after the command's name: start time of the process


def look(folder: str) -> dict[str, Any]:
    """The properties of this machine, and the projects and experiments sent to it, the latest
    first.
    """
    ours = Path(folder).expanduser().absolute()
    there = next(path for path in (ours, *ours.parents) if path.exists())
    projects = [path for path in ours.glob("projects/*") if not path.name.endswith(".partial")]
    projects.sort(key=lambda path: path.stat().st_ctime, reverse=True)
    return {
        "folder": str(ours),
        "uid": os.getuid(),
        "python": list(sys.version_info[:2]),
        "free_bytes": shutil.disk_usage(there).free,
        "projects": [path.name for path in projects if (path / ".venv/bin/tdo").exists()],
        "sent": [str(path.relative_to(ours)) for path in ours.glob("*/*")],
        "environments": {
            path.name.partition("-")[2]: str(path.parent)
            for project in projects
            for path in project.glob(".venv/installed-*")
            if not (project / ".venv").is_symlink()
        },
    }


def make_room(folder: str, archive: str) -> dict[str, Any]:
    """Create the folder for an archive."""
    (Path(folder) / archive).parent.mkdir(parents=True, exist_ok=True)
    return {}


def unpack(folder: str, archive: str, place: str, digest: str) -> dict[str, Any]:
    """Check an archive and unpack it; other processes see all of it or nothing."""
    parcel, final = Path(folder, archive), Path(folder, place)
    plain, partial = parcel.with_suffix(".plain"), final.with_name(final.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        found = hashlib.sha256()
        with gzip.open(parcel) as packed, plain.open("wb") as unpacked:
            for piece in iter(lambda: packed.read(PIECE), b""):
                found.update(piece)
                unpacked.write(piece)
        if found.hexdigest() != digest:
            raise OSError("the archive is damaged")
        partial.mkdir(parents=True)
        with tarfile.open(plain) as files:
            files.extractall(partial)
        if final.exists():  # another command was faster
            shutil.rmtree(partial)
        else:
            partial.rename(final)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    finally:
        for file in (parcel, plain):
            with contextlib.suppress(FileNotFoundError):
                file.unlink()
    return {}


def link(project: str, environment: str | None) -> dict[str, Any]:
    """Link a project to a Python environment; None: that of its own `scripts/setup`."""
    if environment is not None:
        environment = str(Path(environment).expanduser().absolute())
    place = Path(project, ".venv")
    linked = str(place.readlink()) if place.is_symlink() else None
    if environment == linked or (linked is None and any(place.glob("installed-*"))):
        return {}  # its own environment may be in use
    if environment is not None and not Path(environment, "bin/tdo").exists():
        raise OSError(f"{environment}: expected a Python environment with bin/tdo, found none")
    if linked is not None:
        place.unlink()
    elif environment is not None and place.exists():
        shutil.rmtree(place)  # incomplete
    if environment is not None:
        place.symlink_to(environment)
    return {}


def follow(run: str, offset: int) -> None:
    """Print the log of a run from an offset, as it grows, until the run has ended."""
    listening = sys.stdin.fileno()
    with Path(run, "log").open("rb") as log:
        log.seek(offset)
        while True:
            has_ended = not is_going_on(
                Path(run)
            )  # checked first, so that no later output is missed
            for piece in iter(lambda: log.read(PIECE), b""):
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
            if has_ended:
                return
            if select.select([listening], [], [], POLL_S)[0] and not os.read(listening, 1):
                return  # the connection is closed


def is_going_on(run: Path) -> bool:
    """Whether a run, or its keeper, is running and no end is recorded."""
    state = json.loads((run / "state.json").read_text())
    if (run / "exit").read_text().strip():
        return False
    return any(is_running(state[who], state[who + "_started"]) for who in ("pid", "keeper"))


def is_running(pid: int, started: int) -> bool:
    """Whether the process with this id is the one that started then."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] != "Z" and int(fields[TICKS_FIELD]) == started


def list_files(directory: str) -> dict[str, Any]:
    """All entries of a directory: sizes, digests, modes and times, and targets of links."""
    root = Path(directory)
    entries: dict[str, dict[str, Any]] = {}
    for path in (root, *sorted(root.rglob("*"))):
        about = path.lstat()
        entry: dict[str, Any] = {"mode": stat.S_IMODE(about.st_mode), "mtime_ns": about.st_mtime_ns}
        if path.is_symlink():
            entry["leads_to"] = str(path.readlink())
        elif path.is_file():
            entry.update(size=about.st_size, sha256=digest_of(path, about.st_size))
        elif not path.is_dir():
            continue  # sockets and other special files are not fetched
        entries[str(path.relative_to(root))] = entry
    return {"entries": entries}


def digest_beginnings(directory: str, lengths: dict[str, int]) -> dict[str, Any]:
    """The digests of the beginnings of files."""
    digests = {name: digest_of(Path(directory, name), size) for name, size in lengths.items()}
    return {"digests": digests}


def digest_of(path: Path, length: int) -> str:
    """The digest of the first bytes of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while length > 0:
            piece = file.read(min(PIECE, length))
            if not piece:
                break
            digest.update(piece)
            length -= len(piece)
    return digest.hexdigest()


def tidy(
    folder: str, kept_projects: list[str], runs: list[tuple[str, str | None]], is_busy: bool
) -> dict[str, Any]:
    """Remove what was sent, except these projects, and these runs, given by id and directory.

    Experiments are not removed while any run is going on.
    """
    ours = Path(folder)
    kept = {ours / "projects" / Path(project).name for project in kept_projects}
    kept |= {(path / ".venv").resolve().parent for path in kept}
    doomed = [path for path in ours.glob("projects/*") if path not in kept]
    doomed += [] if is_busy else list(ours.glob("experiments/*"))
    doomed += list(ours.glob("parcels/*"))
    for run_id, directory in runs:
        doomed.append(ours / "results/.runs" / run_id)
        if directory and ours / "results" in Path(directory).parents:
            doomed.append(Path(directory))
    removed = []
    for path in doomed:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path)
        else:
            continue
        removed.append(str(path))
    drop_what_is_empty(ours)
    return {"removed": removed}


def drop_what_is_empty(folder: Path) -> None:
    """Remove empty folders of ours, and broken links."""
    for results in folder.glob("results/*"):
        latest = results / "latest"
        if latest.is_symlink() and not latest.exists():
            latest.unlink()
    if not any(folder.glob("projects/*")):
        with contextlib.suppress(FileNotFoundError):
            (folder / "lock").unlink()
    for path in (*folder.glob("results/*"), *folder.glob("*"), folder):
        if path.is_dir() and not path.is_symlink():
            with contextlib.suppress(OSError):
                path.rmdir()


ACTIONS: dict[str, Callable[..., dict[str, Any] | None]] = {
    "look": look,
    "make_room": make_room,
    "unpack": unpack,
    "link": link,
    "follow": follow,
    "list_files": list_files,
    "digest_beginnings": digest_beginnings,
    "tidy": tidy,
}


def main() -> None:
    """Run the action on the command line, with the JSON object there as its arguments."""
    try:
        answer = ACTIONS[sys.argv[1]](**json.loads(sys.argv[2]))
    except (OSError, EOFError, tarfile.TarError) as error:
        sys.exit(str(error))
    if answer is not None:
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
