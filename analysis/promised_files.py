"""The files that a run should have, and those of them that cannot be read.

An incomplete run should have only `run.json` and `underlay.json`; one with `capture = "none"` has
no packets.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from analysis.captures import problems, why_no_capture
from analysis.parquet_files import why_unreadable
from analysis.run_directory import RecordedRun
from topologies.errors import TestbedError

# Damage of a file, as opposed to a packet that makes no sense.
_DAMAGE = frozenset(
    (
        *(problems.CANNOT_READ, problems.DAMAGED_GZIP, problems.CUT_SHORT),
        *(problems.IMPOSSIBLE_LENGTH, problems.BAD_BLOCK, problems.UNKNOWN_BLOCK),
        *(problems.BAD_MAGIC, problems.BAD_VERSION, problems.UNKNOWN_INTERFACE),
    )
)
_WORKLOAD = ("interests", "publications", "matches")


class UnreadableFile(NamedTuple):
    """A file of a run directory that is missing or damaged, and the reason."""

    file: str
    why: str


def find_unreadable(run: RecordedRun) -> list[UnreadableFile]:
    """The files that the run should have and that cannot be read."""
    return [*_documents(run), *(() if run.is_partial else (*_own_verdict(run), *_evidence(run)))]


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


def _own_verdict(run: RecordedRun) -> Iterator[UnreadableFile]:
    # Without measurements it is of an analysis only.
    if not run.figures:
        problem = "expected JSON with the run's measurements, found none"
        yield UnreadableFile("verdict.json", _why(run, "verdict.json", problem))


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
        if (problem := why_unreadable(run.path / name)) is not None:
            yield UnreadableFile(name, _why(run, name, problem))


def _captures(run: RecordedRun) -> Iterator[UnreadableFile]:
    if not run.captures:
        yield UnreadableFile("captures/", "expected captures in it, found none")
        return
    damaged = dict(_missing_files(run)) | _damage_inside(run)
    for file in run.captures:
        if (problem := why_no_capture(file)) is not None:
            damaged[Path(file).name] = problem
    for name, why in sorted(damaged.items()):
        yield UnreadableFile(f"captures/{name}", why)
    if not damaged and (problem := _missing_bytes(run)) is not None:
        yield UnreadableFile("captures/", problem)


def _missing_files(run: RecordedRun) -> Iterator[tuple[str, str]]:
    names = {Path(file).name.removesuffix(".gz") for file in run.captures}
    for number in range(_written(run).get("files", 0)):
        if (name := f"packets-{number:03}.pcapng") not in names:
            yield name, "expected the file, found none"


def _written(run: RecordedRun) -> Mapping[str, int]:
    """The number and size of captures, if the run measured them."""
    return run.figures.get("capture") or {}


def _damage_inside(run: RecordedRun) -> dict[str, str]:
    """By file, the first damage that an analysis of the packets found."""
    table = run.table("capture_errors", ["file", "reason", "detail"])
    found: dict[str, str] = {}
    for row in table.to_pylist() if table is not None else ():
        if row["reason"] in _DAMAGE:
            found.setdefault(Path(row["file"]).name, f"{row['reason']} ({row['detail']})")
    return found


def _missing_bytes(run: RecordedRun) -> str | None:
    """Whether captures, unless they were packed later, are smaller than what was written."""
    written = _written(run).get("bytes", 0)
    files = [Path(file) for file in run.captures]
    size = sum(file.stat().st_size for file in files)
    if size >= written or any(file.suffix == ".gz" for file in files):
        return None
    return f"expected {written:,} bytes, as verdict.json says, found {size:,} in {len(files)} files"


def _why(run: RecordedRun, name: str, problem: str) -> str:
    return problem if (run.path / name).exists() else "expected the file, found none"
