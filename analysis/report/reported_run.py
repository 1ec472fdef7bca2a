"""The data of a run directory for a report; any part may be missing."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pandas as pd
import pyarrow as pa

from analysis.agent_records import AgentRecord
from analysis.errors import AnalysisError, NotARunError
from analysis.overlay import Overlay
from analysis.run_directory import Document, Fault, RecordedRun
from analysis.unicast import Unicast
from topologies.errors import TestbedError
from topologies.underlay import Underlay


class ReportedRun:
    """A run directory that has at least its underlay or its `run.json`."""

    def __init__(self, path: Path) -> None:
        self.path, self._recorded = path, RecordedRun(path)
        if not any((path / name).is_file() for name in ("run.json", "underlay.json")):
            found = "no such folder" if not path.is_dir() else "a folder with neither"
            raise NotARunError(
                f"{path}: expected a run directory with run.json and underlay.json, "
                f"found {found}; name one, as in results/<name>/latest"
            )
        if not self.experiment and self.underlay is None:
            raise NotARunError(
                f"{path}/run.json: expected an experiment, found none in it and no "
                "underlay.json beside it that can be read; name a run directory, as in "
                "results/<name>/latest"
            )

    @property
    def is_partial(self) -> bool:
        """Whether the run is incomplete."""
        return self._recorded.is_partial

    @property
    def run(self) -> Document:
        """The content of `run.json`; empty if it is missing."""
        return self._recorded.document

    @property
    def experiment(self) -> Document:
        """The resolved experiment."""
        return self._recorded.experiment

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults that were carried out, those of churn included."""
        return self._recorded.faults

    @property
    def verdict(self) -> Document:
        """The content of `verdict.json`."""
        return self._recorded.verdict

    @property
    def metrics(self) -> Document:
        """The content of `metrics.json`."""
        return self._recorded.metrics

    @cached_property
    def text(self) -> str:
        """The experiment file."""
        try:
            return (self.path / "experiment.toml").read_text()
        except (OSError, UnicodeDecodeError):
            return ""

    @cached_property
    def underlay(self) -> Underlay | None:
        """The network as it was built, if it was recorded and can be read."""
        try:
            return self._recorded.underlay
        except TestbedError:
            return None

    @cached_property
    def overlay(self) -> Overlay | None:
        """The overlay that the agents recorded, if they recorded any."""
        if self.underlay is None:
            return None
        try:
            found = self._recorded.overlay
        except AnalysisError:
            return None
        return found if found.is_recorded else None

    @cached_property
    def unicast(self) -> Unicast | None:
        """Unicast between the peers of the overlay, if there are two."""
        if self.overlay is None or len(self.overlay.peers) < 2:
            return None
        return self._recorded.peer_unicast

    @property
    def is_topic_based(self) -> bool:
        """Whether interests and publications are topics."""
        return self._recorded.is_topic_based

    @property
    def window_start_us(self) -> int | None:
        """When the measured window begins; None if that was not recorded."""
        try:
            return self._recorded.window_start_us
        except AnalysisError:
            return None

    @property
    def interests(self) -> pd.DataFrame:
        """The interests of the workload: hosts and contents."""
        return self._recorded.workload.interests

    def records(self, *kinds: str) -> list[AgentRecord]:
        """The records of some kinds."""
        try:
            return self._recorded.records.rows(*kinds)
        except AnalysisError:
            return []

    def table(self, name: str, columns: Sequence[str]) -> pa.Table | None:
        """Some columns of an analysed table; None if it is missing or cannot be read."""
        return self._recorded.table(name, columns)
