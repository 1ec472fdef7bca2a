"""What a report reads of a run directory: documents and tables, of which any may be missing."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.agent_records import AgentRecord, read_agent_records
from analysis.errors import AnalysisError, NotARunError
from analysis.overlay import Overlay, read_overlay
from analysis.unicast import Unicast
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay

Document = dict[str, Any]


@dataclass(frozen=True)
class ReportedRun:
    """A run directory that has at least its underlay or its `run.json`."""

    path: Path

    def __post_init__(self) -> None:
        if not any((self.path / name).is_file() for name in ("run.json", "underlay.json")):
            found = "no such folder" if not self.path.is_dir() else "a folder with neither"
            raise NotARunError(
                f"{self.path}: expected a run directory with run.json and underlay.json, "
                f"found {found}; name one, as in results/<name>/latest"
            )
        if not self.experiment and not (self.path / "underlay.json").is_file():
            raise NotARunError(
                f"{self.path}/run.json: expected what was run, found no experiment in it and no "
                "underlay.json beside it; name a run directory, as in results/<name>/latest"
            )

    @property
    def is_partial(self) -> bool:
        """Whether the run never came to its end."""
        return self.path.resolve().name.endswith(".partial")

    @cached_property
    def run(self) -> Document:
        """What `run.json` says; empty if it says nothing."""
        return self._document("run.json")

    @property
    def experiment(self) -> Document:
        """The resolved experiment."""
        found = self.run.get("experiment")
        return found if isinstance(found, dict) else {}

    @cached_property
    def verdict(self) -> Document:
        """What `verdict.json` says."""
        return self._document("verdict.json")

    @cached_property
    def metrics(self) -> Document:
        """What `metrics.json` says."""
        return self._document("analysis/metrics.json")

    @cached_property
    def text(self) -> str:
        """The experiment as given."""
        try:
            return (self.path / "experiment.toml").read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    @cached_property
    def underlay(self) -> Underlay | None:
        """The truth, if it was written."""
        path = self.path / "underlay.json"
        return load_underlay(path) if path.is_file() else None

    @cached_property
    def overlay(self) -> Overlay | None:
        """The overlay that the agents recorded, if they recorded any."""
        if self.underlay is None:
            return None
        try:
            found = read_overlay(self.path, self.underlay)
        except AnalysisError:
            return None
        return found if found.is_recorded else None

    @cached_property
    def unicast(self) -> Unicast | None:
        """What IP does between the peers of the overlay, if there are two."""
        if self.underlay is None or self.overlay is None or len(self.overlay.peers) < 2:
            return None
        return Unicast(self.underlay, self.overlay.peers)

    def records(self, *kinds: str) -> tuple[AgentRecord, ...]:
        """What agents recorded of some kinds."""
        try:
            return read_agent_records(self.path, kinds).rows
        except AnalysisError:
            return ()

    def table(self, name: str, columns: Sequence[str]) -> pa.Table | None:
        """Some columns of an analysed table; none if it is not there or is not readable."""
        folder = self.path / "analysis" / "tables" / name
        if not folder.is_dir():
            return None
        try:
            return pq.read_table(folder, columns=list(columns))
        except (OSError, pa.ArrowException):
            return None

    def _document(self, name: str) -> Document:
        try:
            found = json.loads((self.path / name).read_text())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}
