"""The runs below a folder of results, those of sweeps included."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from analysis.json_files import read_object

_PLACES = ("*/*/run.json", "*/sweep-*/runs/*/run.json")
_NOT_COMPLETE = "not complete"  # instead of a verdict


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A run directory with its experiment and its verdict."""

    name: str
    backend: str
    seed: int
    verdict: str
    written_at: str
    path: str

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return asdict(self)


def list_runs(results: Path) -> list[KnownRun]:
    """All runs, the newest first; directories that cannot be read are left out."""
    files = {file for place in _PLACES for file in results.glob(place)}
    real = [file for file in files if not file.parent.is_symlink()]  # `latest` is a link
    newest = sorted(real, key=lambda file: (-file.stat().st_mtime_ns, file))
    return [run for file in newest for run in _read(file)]


def _read(file: Path) -> Iterator[KnownRun]:
    experiment = read_object(file).get("experiment")
    if not isinstance(experiment, dict):
        return
    verdict = read_object(file.parent / "verdict.json").get("verdict", _NOT_COMPLETE)
    written = datetime.fromtimestamp(int(file.stat().st_mtime), UTC)
    yield KnownRun(
        str(experiment.get("name", "")),
        str(experiment.get("backend", "")),
        int(experiment.get("seed", 0)),
        str(verdict),
        written.isoformat().replace("+00:00", "Z"),
        str(file.parent),
    )
