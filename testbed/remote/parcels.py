"""Archives to send: the project, and an experiment with the files it names.

An archive is named by a digest of its content, so nothing is sent twice, and two
versions of the project never mix. The same files give the same archive.
"""

import gzip
import hashlib
import io
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from testbed.data_files import find_data_file
from testbed.errors import ExperimentError
from testbed.remote.errors import RemoteError
from testbed.sweeps.file import Sweep

PROJECT = Path(__file__).parents[2]
_FOLDERS = (
    "agents",
    "analysis",
    "benchmarks",
    "experiments",
    "scripts",
    "testbed",
    "topologies",
    "workloads",
)
_FILES = ("LICENSE", "README.md", "pyproject.toml", "setup.py")
_NEEDED = ("setup.py", "pyproject.toml", "scripts/setup")
_DIGITS = 16
_MOST_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Parcel:
    """A compressed archive with the digest of its content."""

    digest: str
    content: bytes
    unpacked_bytes: int


def pack(files: Mapping[PurePosixPath, Path]) -> Parcel:
    """The parcel of some files under given names."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, path in sorted(files.items()):
            content = path.read_bytes()
            entry = tarfile.TarInfo(str(name))
            entry.size = len(content)
            entry.mode = 0o755 if os.access(path, os.X_OK) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    whole = plain.getvalue()
    digest = hashlib.sha256(whole).hexdigest()
    return Parcel(digest, gzip.compress(whole, mtime=0), len(whole))


def pack_project(root: Path = PROJECT) -> Parcel:
    """The project with uncommitted changes, without files that git ignores."""
    missing = [name for name in _NEEDED if not (root / name).is_file()]
    if missing:
        raise RemoteError(
            f"{root}: expected the folder of the project, found no {missing[0]}; run "
            f"`.venv/bin/tdo` of a checkout"
        )
    names = _ask_git(root) or sorted(_walk(root))
    files = {PurePosixPath(name): root / name for name in names if (root / name).is_file()}
    sizes = {path: path.stat().st_size for path in files.values()}
    if sum(sizes.values()) > _MOST_BYTES:
        largest = max(sizes, key=lambda path: sizes[path])
        raise RemoteError(
            f"{root}: expected a project of at most {_MOST_BYTES / 1e6:.0f} MB to send, found "
            f"{sum(sizes.values()) / 1e6:.0f} MB; move {largest} away, or add it to .gitignore"
        )
    return pack(files)


def environment_digest(root: Path = PROJECT) -> str:
    """The digest of what the Python environment depends on, as `scripts/setup` writes it."""
    content = (root / "setup.py").read_bytes() + (root / "pyproject.toml").read_bytes()
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def pack_experiment(file: Path, sweep: Sweep) -> tuple[Parcel, PurePosixPath]:
    """An experiment file with the files it names, and the file's name in the parcel.

    The files keep their relative paths, so references between them stay valid. Data
    files of another folder are packed into the experiment's folder, where they are looked up.
    """
    folder = file.parent.resolve()
    named = {
        swept.experiment.topology.file
        for swept in sweep.experiments
        if swept.experiment.topology.kind == "file"
    }
    paths = [folder / file.name, *(_find_named(file, folder, name) for name in sorted(named))]
    places = {path: path for path in paths} | dict(_find_data(file, folder, sweep))
    root = Path(os.path.commonpath([place.parent for place in places]))
    files = {
        PurePosixPath(place.relative_to(root).as_posix()): path for place, path in places.items()
    }
    return pack(files), next(iter(files))


def _find_data(file: Path, folder: Path, sweep: Sweep) -> Iterator[tuple[Path, Path]]:
    """The paths of a sweep's data files on the other machine, and their paths here."""
    for swept in sweep.experiments:
        for key, name in swept.data_files.items():
            path = find_data_file(name, folder, swept.experiment.data)
            if path is None or Path(name).is_absolute():
                raise ExperimentError(
                    f"{file}: workload.{key}: expected a file named from the experiment's folder "
                    f"or from that for data, as it is sent to another machine; found {name}"
                )
            yield Path(os.path.normpath(folder / name)), path


def _find_named(file: Path, folder: Path, name: str) -> Path:
    path = Path(os.path.normpath(folder / name))
    if Path(name).is_absolute() or not path.is_file():
        raise ExperimentError(
            f"{file}: topology.file: expected a file named from the experiment's folder, as both "
            f"are sent to another machine, found {name}"
        )
    return path


def _ask_git(root: Path) -> list[str]:
    """The files that git tracks or would add; None without a checkout or git."""
    if not (root / ".git").exists():
        return []
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        asked = subprocess.run(["git", "-C", str(root), *listing], capture_output=True, check=False)
    except OSError:
        return []
    if asked.returncode != 0:
        return []
    return [os.fsdecode(name) for name in asked.stdout.split(b"\0") if name]


def _walk(root: Path) -> Iterator[str]:
    for folder in _FOLDERS:
        for path in (root / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root).as_posix()
    yield from _FILES
