"""The folder of a computation: its points, a file each, and a table of those that were asked for.

    results/<name>/points/<values>-s<seed>-<digest>.json    a finished point
    results/<name>/computation-<digest>/
      computation.json     the points, versions, command
      points.csv, points.parquet                            a row for each point
      failures/<point>.txt                                  why a point could not be computed
      figures/<name>.svg, .png, .csv

The digest of a point is of its function, values, data files and seed, and of its code. So a
point that is there is what the code of today gives, whichever scale or command asked for it, and
changed code computes it again.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from testbed.run.directory import Origin, versions, write_json
from testbed.sweeps.code_digest import code_digest
from testbed.sweeps.directory import replace_json
from testbed.sweeps.rows import Row, failed_row, flatten

if TYPE_CHECKING:
    from analysis.claims import Computation, Point

_LONGEST_NAME = 90


@dataclass(frozen=True, slots=True)
class ComputationDirectory:
    """Where a computation is kept; `names` has the name of each point's file."""

    path: Path
    names: Mapping[str, "Point"]
    files: frozenset[str] = frozenset()

    @classmethod
    def of(cls, computation: "Computation", results: Path) -> "ComputationDirectory":
        """The one of these very points and this code, which need not be there yet."""
        function = computation.function
        code = [function.__module__, function.__qualname__, code_digest(function)]
        files = frozenset(computation.files)
        names = {_name(point, code, files): point for point in computation.points}
        folder = results.absolute() / computation.name
        return cls(folder / f"computation-{_digest(sorted(names))[:12]}", names, files)

    @property
    def points(self) -> Path:
        """The folder of finished points."""
        return self.path.parent / "points"

    def prepare(self, computation: "Computation", origin: Origin) -> None:
        """Make the folders, and say in them what is computed."""
        for folder in (self.path, self.points):
            folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.path / "failures", ignore_errors=True)
        function = computation.function
        described = {
            "name": computation.name,
            "function": f"{function.__module__}.{function.__qualname__}",
            "points": list(self.names),
            "versions": versions(),
            "commit": origin.commit,
            "command": list(origin.command),
        }
        replace_json(self.path / "computation.json", described)

    def read(self, name: str) -> Row | None:
        """The row of a finished point; None if it is not there, or not as we write it."""
        point = self.names[name]
        try:
            found = json.loads((self.points / f"{name}.json").read_text())
            known = {"wall_s": found["seconds"], "commit": found["commit"]}
            result: Mapping[str, Any] = found["result"]
        except (OSError, ValueError, LookupError, TypeError):
            return None
        good = {"verdict": "valid", "error": None, "path": f"../points/{name}.json", **known}
        return {**self.settings(point), "seed": point.seed, **good, **flatten("", result)}

    def settings(self, point: "Point") -> dict[str, Any]:
        """What readers are told about a point: its values without the paths of data files."""
        return {key: value for key, value in point.values.items() if key not in self.files}

    def keep(self, name: str, outcome: Mapping[str, Any], origin: Origin) -> Row:
        """Write what came of a point, whole or not at all; returns its row."""
        point = self.names[name]
        if "error" in outcome:
            failures = self.path / "failures"
            failures.mkdir(exist_ok=True)
            (failures / f"{name}.txt").write_text(outcome["traceback"])
            return failed_row(self.settings(point), point.seed, outcome["error"])
        draft = self.points / f".{name}.{uuid4().hex[:8]}"
        content = {"values": dict(point.values), "seed": point.seed, "commit": origin.commit}
        write_json(draft, {**content, **outcome})
        draft.replace(self.points / f"{name}.json")
        row = self.read(name)
        assert row is not None  # written just now
        return row


def _name(point: "Point", code: list[str], files: Set[str]) -> str:
    words = [f"{key}-{value}" for key, value in point.values.items() if key not in files]
    readable = re.sub(r"[^\w.+]+", "-", "-".join(words))[:_LONGEST_NAME].strip("-.")
    # What a data file has matters, and not where it is.
    values = {
        key: _file_digest(str(value)) if key in files else value
        for key, value in point.values.items()
    }
    digest = _digest([*code, sorted(values.items()), point.seed])[:16]
    return f"{readable}-s{point.seed}-{digest}".removeprefix("-")


def _file_digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path else ""


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()
