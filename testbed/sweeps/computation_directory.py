"""The folder of a computation: a file for each point, and a table of the requested points.

    results/<name>/points/<values>-s<seed>-<digest>.json    a finished point
    results/<name>/computation-<digest>/
      computation.json     the points, versions, command
      points.csv, points.parquet                            a row for each point
      failures/<point>.txt                                  why a point could not be computed
      figures/<name>.svg, .png, .csv

The digest of a point covers its function, values, data files, seed and code. Therefore an
existing point has the result of the current code, whichever scale or command computed it, and
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
    """The folder of a computation; `names` has the name of each point's file."""

    path: Path
    names: Mapping[str, "Point"]
    files: frozenset[str] = frozenset()

    @classmethod
    def of(cls, computation: "Computation", results: Path) -> "ComputationDirectory":
        """The folder of these points and the current code; it need not exist yet."""
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
        """Create the folders, and describe the computation in them."""
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
        """The row of a finished point; None if there is none or it is damaged."""
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
        """The values of a point for readers, without the paths of data files."""
        return {key: value for key, value in point.values.items() if key not in self.files}

    def keep(self, name: str, outcome: Mapping[str, Any], origin: Origin) -> Row:
        """Write the outcome of a point in one step; returns its row."""
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
        assert row is not None  # written above
        return row


def _name(point: "Point", code: list[str], files: Set[str]) -> str:
    words = [f"{key}-{value}" for key, value in point.values.items() if key not in files]
    readable = re.sub(r"[^\w.+]+", "-", "-".join(words))[:_LONGEST_NAME].strip("-.")
    # The content of a data file matters, not its path.
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
