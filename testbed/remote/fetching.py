"""Fetches a directory from the other machine, completely or not at all.

The other machine lists its files with their digests. Each file is written below `<name>.partial`,
continues an earlier attempt if the existing part is the beginning of the file, and counts only if
its digest is right. When all are complete, the directory gets its name.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from testbed.errors import UsageError
from testbed.remote.connection import Connection
from testbed.remote.errors import RemoteError
from testbed.remote.far_machine import FarMachine

_PIECE = 32_768  # per answer of the other machine
_REQUESTS_AT_ONCE = 64
_SPARE_BYTES = 16_000_000
_ATTEMPTS = 3
_PERMISSIONS = 0o777

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, a folder or a link; only files have a size, only links have a target."""

    name: str
    mode: int
    mtime_ns: int
    size: int | None = None
    sha256: str = ""
    leads_to: str | None = None


def fetch_directory(far: FarMachine, directory: PurePosixPath, parent: Path, say: Say) -> Path:
    """Fetch a directory into a folder here; returns its path."""
    entries = list(_read_entries(far, directory))
    final = parent / directory.name
    partial = final.with_name(f"{final.name}.partial")
    if final.exists():
        _require_same(final, entries)
        say(f"{final} is already here and complete")
        return final
    mark = _claim(partial, f"{far.name}:{directory}")
    _require_room(parent, partial, entries)
    _Fetch(far, directory, partial, say).bring(entries)
    mark.unlink()
    partial.rename(final)
    return final


def _read_entries(far: FarMachine, directory: PurePosixPath) -> Iterator[Entry]:
    """The files to fetch; names outside of the directory are refused."""
    for name, about in far.call("list_files", directory=str(directory))["entries"].items():
        leads_to = about.get("leads_to")
        reached = os.path.normpath(PurePosixPath(name).parent / (leads_to or "."))
        for path in (name, reached):
            if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
                raise RemoteError(
                    f"{far.name}: {directory}: expected names within it, found {path}"
                )
        yield Entry(name, **about)


def _claim(partial: Path, source: str) -> Path:
    """Record the origin of this partial directory, so that no other run is written into it."""
    mark = partial.with_name(f".{partial.name}.from")
    if partial.exists():
        found = mark.read_text() if mark.exists() else "something else"
        if found != source:
            raise UsageError(
                f"{partial}: expected no such directory, or one of an earlier fetch from {source}, "
                f"found {found}; move it away, or choose another folder with --out"
            )
    partial.mkdir(parents=True, exist_ok=True)
    mark.write_text(source)
    return mark


def _require_room(parent: Path, partial: Path, entries: list[Entry]) -> None:
    here = sum(path.stat().st_size for path in partial.rglob("*") if path.is_file())
    wanted = sum(entry.size or 0 for entry in entries) - here + _SPARE_BYTES
    free = shutil.disk_usage(parent).free
    if free < wanted:
        raise RemoteError(
            f"{parent}: expected {wanted / 1e6:.0f} MB free for the results, found "
            f"{free / 1e6:.0f} MB; make room, or choose another folder with --out"
        )


def _require_same(final: Path, entries: list[Entry]) -> None:
    for entry in entries:
        path = final / entry.name
        if entry.size is not None and not _is_whole(path, entry):
            raise UsageError(
                f"{final}: expected no such directory, or the same run as there, found another "
                f"{entry.name}; move it away, or choose another folder with --out"
            )


class _Fetch:
    """The fetching of one directory, over one or more connections."""

    def __init__(self, far: FarMachine, directory: PurePosixPath, place: Path, say: Say) -> None:
        self._far, self._directory, self._place, self._say = far, directory, place, say

    def bring(self, entries: list[Entry]) -> None:
        """Fetch everything, with the same modes and times."""
        self._remove_others({entry.name for entry in entries})
        for entry in entries:
            if entry.size is None and entry.leads_to is None:
                (self._place / entry.name).mkdir(exist_ok=True)
        files = tuple(entry for entry in entries if entry.size is not None)
        total = sum(entry.size or 0 for entry in files)
        self._say(f"fetching {len(files)} files, {total / 1e6:.1f} MB")
        for _ in range(_ATTEMPTS):
            self._far.session.persist(lambda connection: self._bring_on(connection, files))
            broken = [e for e in files if not _is_whole(self._place / e.name, e)]
            if not broken:
                break
        else:
            raise RemoteError(
                f"{self._far.name}: {self._directory / broken[0].name}: expected the digest "
                f"{broken[0].sha256[:12]}…, found another {_ATTEMPTS} times; does it still change?"
            )
        for entry in reversed(entries):  # a folder after its content
            self._finish(entry)

    def _remove_others(self, wanted: set[str]) -> None:
        for path in sorted(self._place.rglob("*"), reverse=True):
            if path.relative_to(self._place).as_posix() not in wanted:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()

    def _bring_on(self, connection: Connection, files: tuple[Entry, ...]) -> None:
        """Fetch the missing parts of some files, on one connection."""
        missing = tuple(e for e in files if not _is_whole(self._place / e.name, e))
        for entry, offset in self._find_offsets(connection, missing).items():
            self._bring_file(connection, entry, offset)

    def _find_offsets(self, connection: Connection, files: tuple[Entry, ...]) -> dict[Entry, int]:
        """The offset at which each file continues: its length here, if that part is equal there."""
        begun: dict[str, int] = {}
        for entry in files:
            length = _length(self._place / entry.name)
            if 0 < length < (entry.size or 0):
                begun[entry.name] = length
        if not begun:
            return dict.fromkeys(files, 0)
        digests = self._far.ask_on(
            connection, "digest_beginnings", directory=str(self._directory), lengths=begun
        )["digests"]
        good = {name for name in begun if digests[name] == _digest(self._place / name)}
        return {entry: begun[entry.name] if entry.name in good else 0 for entry in files}

    def _bring_file(self, connection: Connection, entry: Entry, offset: int) -> None:
        size = entry.size or 0
        source = str(self._directory / entry.name)
        with (
            connection.guarded(),
            connection.sftp.open(source, "rb") as far_file,
            (self._place / entry.name).open("r+b" if offset else "wb") as file,
        ):
            file.seek(offset)
            far_file.seek(offset)
            far_file.prefetch(size, _REQUESTS_AT_ONCE)
            while piece := far_file.read(min(_PIECE, size - file.tell())):
                file.write(piece)
                file.flush()
                self._far.session.note_progress()
                if file.tell() >= size:
                    break
            file.truncate()

    def _finish(self, entry: Entry) -> None:
        path = self._place / entry.name
        if entry.leads_to is not None:
            path.unlink(missing_ok=True)
            path.symlink_to(entry.leads_to)
        else:
            path.chmod(entry.mode & _PERMISSIONS)
        os.utime(path, ns=(entry.mtime_ns, entry.mtime_ns), follow_symlinks=False)


def _length(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _is_whole(path: Path, entry: Entry) -> bool:
    return path.is_file() and _length(path) == entry.size and _digest(path) == entry.sha256


def _digest(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
