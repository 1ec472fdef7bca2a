"""The folder of a sweep: its complete runs, and one table of all runs.

    results/<name>/sweep-<digest>/
      sweep.json        the experiments, versions, command
      experiment.toml   as given
      runs/<what sets it apart>-s<seed>-<digest>/      run directories
      failures/<run>.txt                               why a run failed
      runs.csv, runs.parquet                           a row for each run
      figures/<name>.svg, .png, .csv

The digest is of the resolved experiments, so the same file finds the same folder and continues
there, and a changed file starts another. A run is done if it has a run directory
with its final name; there is no other state.
"""

import json
import re
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed.errors import EmulationError
from testbed.run.directory import Origin, versions, write_json
from testbed.sweeps.file import VARIANT, Sweep, SweptExperiment
from testbed.sweeps.rows import Row, flatten, locked

_LONGEST_NAME = 90


@dataclass(frozen=True, slots=True)
class SweepDirectory:
    """The folder of a sweep."""

    path: Path

    @classmethod
    def of(cls, sweep: Sweep, results: Path) -> "SweepDirectory":
        """The folder of this sweep, which need not exist yet."""
        return cls(results.absolute() / sweep.name / f"sweep-{sweep.digest[:12]}")

    def prepare(self, sweep: Sweep, origin: Origin) -> None:
        """Create the folder and describe the sweep in it; remove incomplete runs of earlier
        attempts.
        """
        (self.path / "runs").mkdir(parents=True, exist_ok=True)
        self.remove_partial_runs()
        shutil.rmtree(self.path / "failures", ignore_errors=True)
        (self.path / "experiment.toml").write_text(sweep.text)
        replace_json(self.path / "sweep.json", _describe(sweep, origin))

    def remove_partial_runs(self) -> None:
        """Remove the incomplete runs of killed attempts."""
        for partial in (self.path / "runs").glob("*.partial"):
            shutil.rmtree(partial, ignore_errors=True)

    def locked(self) -> AbstractContextManager[None]:
        """Lock this sweep for other commands; the lock ends with the process."""
        return locked(self.path, "sweep")

    def run_of(self, swept: SweptExperiment) -> Path:
        """The run directory of one of the experiments."""
        return self.path / "runs" / name_run(swept)

    def adopt(self, swept: SweptExperiment, run: Path) -> None:
        """Copy a run from another sweep."""
        final = self.run_of(swept)
        draft = final.with_name(f"{final.name}.partial")
        shutil.copytree(run, draft)
        draft.rename(final)


def name_run(swept: SweptExperiment) -> str:
    """A readable name that no other run of the sweep has.

    It has no equals sign, because Spark would take it for a partition column.
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
    """The row of a complete run: its values, its outcome, its metrics."""
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
        **flatten("figures.", verdict["figures"]),
        **flatten("", read_metrics(run) or {}),
    }


def read_metrics(run: Path) -> dict[str, Any] | None:
    """The metrics of a run, if it has any."""
    try:
        found = json.loads((run / "analysis" / "metrics.json").read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def check_shared(folder: Path) -> None:
    """Raise unless this machine has the folder in which the sweep was prepared."""
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


def replace_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file in one step."""
    draft = path.with_name(f".{path.name}.new")
    write_json(draft, content)
    draft.replace(path)
