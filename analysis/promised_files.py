"""The files that a run should have, and those of them that cannot be read.

An incomplete run should have only `run.json` and `underlay.json`; one with `capture = "none"` has
no packets.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.captures import why_no_capture
from analysis.run_directory import RecordedRun
from topologies.errors import TestbedError

_WORKLOAD = ("interests", "publications", "matches")


class UnreadableFile(NamedTuple):
    """A file of a run directory that is missing or damaged, and the reason."""

    file: str
    why: str


def find_unreadable(run: RecordedRun) -> list[UnreadableFile]:
    """The files that the run should have and that cannot be read."""
    return [*_documents(run), *(() if run.is_partial else _evidence(run))]


def _documents(run: RecordedRun) -> Iterator[UnreadableFile]:
    if not run.experiment:
        yield UnreadableFile(
            "run.json", _why(run, "run.json", "expected JSON with an experiment, found none")
        )
    try:
        _ = run.underlay
    except TestbedError as error:
        problem = str(error).removeprefix(str(run.path / "underlay.json")).lstrip(":, ")
        yield UnreadableFile("underlay.json", _why(run, "underlay.json", problem))


def _evidence(run: RecordedRun) -> Iterator[UnreadableFile]:
    files = ["agents/records.parquet"]
    if run.experiment.get("workload") and run.document.get("format", 1) > 1:
        files += [f"workload/{name}.parquet" for name in _WORKLOAD]
    if run.experiment and run.experiment.get("capture") != "none":
        if run.is_emulated:
            yield from _captures(run)
        else:
            files.append("packets/packets.parquet")
    for name in files:
        if (problem := _parquet_problem(run.path / name)) is not None:
            yield UnreadableFile(name, _why(run, name, problem))


def _captures(run: RecordedRun) -> Iterator[UnreadableFile]:
    if not run.captures:
        yield UnreadableFile("captures/", "expected captures in it, found none")
    for file in run.captures:
        if (problem := why_no_capture(file)) is not None:
            yield UnreadableFile(f"captures/{Path(file).name}", problem)


def _parquet_problem(file: Path) -> str | None:
    """Why a file is not complete Parquet: its rows are read, not only its footer."""
    try:
        with pq.ParquetFile(file) as opened:
            for _ in opened.iter_batches(columns=opened.schema_arrow.names[:1]):
                pass
    except (OSError, ValueError, pa.ArrowException) as error:
        return f"expected whole Parquet, found: {' '.join(str(error).split())[:200]}"
    return None


def _why(run: RecordedRun, name: str, problem: str) -> str:
    return problem if (run.path / name).exists() else "expected the file, found none"
