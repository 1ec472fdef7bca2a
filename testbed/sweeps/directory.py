"""The folder of a sweep: its runs, each complete or not there, and one table of them all.

    results/<name>/sweep-<digest>/
      sweep.json        the experiments, versions, command
      experiment.toml   as given
      runs/<what sets it apart>-s<seed>-<digest>/      run directories
      failures/<run>.txt                               why a run could not be done
      runs.csv, runs.parquet                           a row for each run
      figures/<name>.svg, .png, .csv

The digest is of the resolved experiments, so the same file finds the same folder and goes on
where it was left, and a changed one starts another. What is done is what has a run directory
of its final name; nothing else is remembered.
"""

import csv
import fcntl
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from testbed.errors import EmulationError, UsageError
from testbed.run.directory import Origin, versions, write_json
from testbed.sweeps.file import VARIANT, Sweep, SweptExperiment

Row = dict[str, Any]

FAILED = "failed"  # instead of a verdict
_LONGEST_NAME = 90
_LEFT_OUT = ("notes", "histogram", "distribution")  # of metrics: what is not a figure, or too many


@dataclass(frozen=True, slots=True)
class SweepDirectory:
    """Where a sweep is kept."""

    path: Path

    @classmethod
    def of(cls, sweep: Sweep, results: Path) -> "SweepDirectory":
        """The one of this very sweep, which need not be there yet."""
        return cls(results.absolute() / sweep.name / f"sweep-{sweep.digest[:12]}")

    def prepare(self, sweep: Sweep, origin: Origin) -> None:
        """Make the folder, say in it what it is, and remove what earlier attempts left."""
        (self.path / "runs").mkdir(parents=True, exist_ok=True)
        self.remove_partial_runs()
        shutil.rmtree(self.path / "failures", ignore_errors=True)
        (self.path / "experiment.toml").write_text(sweep.text)
        _replace_json(self.path / "sweep.json", _describe(sweep, origin))

    def remove_partial_runs(self) -> None:
        """Remove what attempts left that were killed."""
        for partial in (self.path / "runs").glob("*.partial"):
            shutil.rmtree(partial, ignore_errors=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others away from this sweep; the lock goes when the process does."""
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    f"{self.path}: expected nobody at work on this sweep, found another tdo; wait "
                    "for it or stop it"
                ) from None
            yield

    def run_of(self, swept: SweptExperiment) -> Path:
        """The run directory of one of the experiments."""
        return self.path / "runs" / name_run(swept)

    def adopt(self, swept: SweptExperiment, run: Path) -> None:
        """Take over the same run from another sweep."""
        final = self.run_of(swept)
        draft = final.with_name(f"{final.name}.partial")
        shutil.copytree(run, draft)
        draft.rename(final)

    def write_table(self, keys: Sequence[str], rows: Sequence[Row]) -> None:
        """Write `runs.csv` and `runs.parquet`, whole or not at all."""
        columns = _columns(keys, rows)
        draft = self.path / ".runs.new"
        with draft.open("w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        draft.replace(self.path / "runs.csv")
        table = {column: _array([row.get(column) for row in rows]) for column in columns}
        pq.write_table(pa.table(table), draft, compression="zstd")
        draft.replace(self.path / "runs.parquet")


def name_run(swept: SweptExperiment) -> str:
    """A name that people can read and that no other run of the sweep has.

    It has no equals sign, which Spark would take for a column when it reads what is below.
    """
    values = {k: v for k, v in swept.values.items() if k != "seed" and v is not None}
    label = str(values.pop(VARIANT, ""))
    words = [f"{key.rpartition('.')[2]}={value}" for key, value in values.items()]
    words = [label, *(word for word in words if word not in label)]
    readable = re.sub(r"[^\w.+]+", "-", "-".join(words))[:_LONGEST_NAME].strip("-.")
    seed = f"s{swept.experiment.seed}-{swept.digest[:8]}"
    return f"{readable}-{seed}" if readable else seed


def find_runs(results: Path) -> dict[str, Path]:
    """The complete and valid runs of all sweeps below a folder, by digest."""
    found = {}
    for file in sorted(results.absolute().glob("*/sweep-*/sweep.json")):
        for entry in json.loads(file.read_text())["experiments"]:
            run = file.parent / "runs" / entry["run"]
            if "digest" in entry and _is_valid(run):
                found[entry["digest"]] = run
    return found


def _is_valid(run: Path) -> bool:
    verdict = run / "verdict.json"
    return verdict.is_file() and json.loads(verdict.read_text())["verdict"] == "valid"


def read_row(run: Path, values: Mapping[str, Any], seed: int) -> Row:
    """The row of a run that is complete: what sets it apart, how it went, what was measured."""
    verdict = json.loads((run / "verdict.json").read_text())
    description = json.loads((run / "run.json").read_text())
    return {
        **values,
        "seed": seed,
        "verdict": verdict["verdict"],
        "error": None,
        "path": f"runs/{run.name}",
        "wall_s": round(sum(description["phases_s"].values()), 3),
        "commit": description["commit"],
        **_flatten("figures.", verdict["figures"]),
        **_flatten("", read_metrics(run) or {}),
    }


def failed_row(values: Mapping[str, Any], seed: int, error: str) -> Row:
    """The row of a run that could not be done."""
    nothing = dict.fromkeys(("path", "wall_s", "commit"))
    return {**values, "seed": seed, "verdict": FAILED, "error": error, **nothing}


def count_commits(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many runs are of which commit of the testbed."""
    return Counter(row["commit"] or "unknown" for row in rows)


def read_metrics(run: Path) -> dict[str, Any] | None:
    """What was measured of a run, if it was."""
    try:
        found = json.loads((run / "analysis" / "metrics.json").read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def check_shared(folder: Path) -> None:
    """Raise unless this machine sees the folder that the sweep was prepared in."""
    if not (folder / "sweep.json").is_file():
        raise EmulationError(
            f"{folder}: expected the sweep's folder on the worker, found none; on a cluster --out "
            "must be a folder that all machines share"
        )


def _describe(sweep: Sweep, origin: Origin) -> dict[str, Any]:
    return {
        "name": sweep.name,
        "digest": sweep.digest,
        "experiments": [
            {
                "run": name_run(swept),
                "digest": swept.digest,
                "values": dict(swept.values),
                "experiment": swept.experiment.to_dict(),
            }
            for swept in sweep.experiments
        ],
        "figures": [dict(figure) for figure in sweep.figures],
        "versions": versions(),
        "commit": origin.commit,
        "command": list(origin.command),
    }


def _flatten(prefix: str, given: Mapping[str, Any]) -> Row:
    flat: Row = {}
    for key, value in given.items():
        if isinstance(value, Mapping) and key not in _LEFT_OUT:
            flat |= _flatten(f"{prefix}{key}.", value)
        elif value is None or isinstance(value, str | int | float | bool):
            flat[prefix + key] = value
    return flat


def _columns(keys: Sequence[str], rows: Sequence[Row]) -> list[str]:
    first = (*keys, "seed", "verdict", "error", "path", "wall_s", "commit")
    return list(dict.fromkeys((*first, *(column for row in rows for column in row))))


def _array(values: list[Any]) -> pa.Array:
    """A column; where texts and numbers meet, as in `5` and `none`, all are texts."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])


def _replace_json(path: Path, content: Mapping[str, Any]) -> None:
    draft = path.with_name(f".{path.name}.new")
    write_json(draft, content)
    draft.replace(path)
