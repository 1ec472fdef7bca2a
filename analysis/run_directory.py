"""A run directory: everything in it, read on demand and only once."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.agent_lives import AgentLives, read_lives
from analysis.agent_records import AgentRecords, read_agent_records
from analysis.captures import find_captures
from analysis.errors import AnalysisError, CaptureError
from analysis.json_files import read_object
from analysis.message_kinds import MessageKind, read_message_kinds
from analysis.overlay import Overlay, fold_overlay
from analysis.overlay_history import OverlayHistory, fold_history
from analysis.readiness import window_start_us
from analysis.unicast import Unicast
from analysis.workload_files import (
    WorkloadTables,
    no_workload,
    read_workload,
    redraw_workload,
)
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay

_SMALL_BYTES = 32_000_000
_AGENTS_US = 1_000  # of real time
_SETTLE_S = 2.0  # for runs that do not record it
# For runs that do not record the effects of faults.
_ENDS_AGENT = frozenset({"kill-agent", "stop-agent"})
_IS_REPAIR = frozenset({"link-up", "router-up", "restart-agent", "heal"})
Document = dict[str, Any]
Fault = Mapping[str, Any]


def is_failure(fault: Fault) -> bool:
    """Whether a fault fails or changes something, as opposed to a repair."""
    return not fault["is_repair"]


def _described(fault: Fault) -> Fault:
    """A fault with its effect, which old runs did not record."""
    action = fault["action"]
    former = {
        "changes_network": not action.endswith("-agent"),
        "ends_agent": action in _ENDS_AGENT,
        "is_repair": action in _IS_REPAIR,
    }
    return {**former, **fault}


class RecordedRun:
    """A run directory, complete or not; a missing or damaged file raises `AnalysisError`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def document(self) -> Document:
        """The content of `run.json`; empty if it is missing."""
        return read_object(self.path / "run.json")

    @property
    def experiment(self) -> Document:
        """The resolved experiment."""
        found = self.document.get("experiment")
        return found if isinstance(found, dict) else {}

    @cached_property
    def verdict(self) -> Document:
        """The content of `verdict.json`."""
        return read_object(self.path / "verdict.json")

    @property
    def figures(self) -> Document:
        """The measurements of the backend about the run itself."""
        found = self.verdict.get("figures")
        return found if isinstance(found, dict) else {}

    @cached_property
    def metrics(self) -> Document:
        """The content of `metrics.json`."""
        return read_object(self.path / "analysis" / "metrics.json")

    @cached_property
    def underlay(self) -> Underlay:
        """The network as it was built."""
        return load_underlay(self.path / "underlay.json")

    @property
    def faults(self) -> Sequence[Fault]:
        """The faults of the run; churn adds to those that the experiment names."""
        found = self.document.get("played_faults", self.experiment.get("fault", ()))
        return [_described(fault) for fault in found] if isinstance(found, list) else ()

    @cached_property
    def messages(self) -> tuple[MessageKind, ...]:
        """The kinds of messages, with their layers and roles."""
        return read_message_kinds(self.document)

    @cached_property
    def records(self) -> AgentRecords:
        """The records of agents."""
        return read_agent_records(self.path)

    @cached_property
    def lives(self) -> AgentLives:
        """The start and end of agents."""
        planned = [
            (int(float(fault["at_s"]) * 1e6), str(fault["target"]))
            for fault in self.faults
            if fault["ends_agent"]
        ]
        return read_lives(self.records, planned)

    @cached_property
    def window_start_us(self) -> int | None:
        """The start of the measured window: the stated time, else when all agents were ready.

        None if no time is stated and agents did not record when they were ready.
        """
        if stated_s := float(self.experiment.get("measure_from_s", 0)):
            return int(stated_s * 1e6)
        all_started_us = int(float(self.experiment.get("start_over_s", 0)) * 1e6)
        return window_start_us(self.records, self.lives, all_started_us)

    @property
    def guarantee(self) -> str | None:
        """The guarantee of the publish/subscribe layer; None if it was not recorded."""
        return self.document.get("guarantee")

    @property
    def settle_us(self) -> int:
        """How long before an event a subscriber has to be there, where events are in custody."""
        settle_s = self.document.get("settle_s")
        return int((settle_s if isinstance(settle_s, int | float) else _SETTLE_S) * 1e6)

    @property
    def has_directed_overlay(self) -> bool:
        """Whether the links of the overlay are one-way."""
        about = self.document.get("overlay")
        return isinstance(about, dict) and bool(about.get("is_directed"))

    @property
    def is_topic_based(self) -> bool:
        """Whether interests and publications are topics."""
        kind = str((self.experiment.get("workload") or {}).get("kind", ""))
        return bool(self.document.get("matching", "") == "topics" or kind.startswith("topics-"))

    @cached_property
    def overlay(self) -> Overlay:
        """The overlay at the end of the run."""
        return fold_overlay(
            self.underlay, self.records, self.lives, self.notes(), self.has_directed_overlay
        )

    @cached_property
    def overlay_history(self) -> OverlayHistory | None:
        """The overlay over time; None if it does not change after the first event."""
        return fold_history(self.underlay, self.records, self.lives, self.has_directed_overlay)

    @cached_property
    def workload(self) -> WorkloadTables:
        """The workload of the run; drawn again if the run has no such files, as in format 1."""
        section = self.experiment.get("workload")
        if not section:
            return no_workload()
        try:
            return read_workload(self.path / "workload")
        except AnalysisError:
            return self._redraw_workload(section)

    def _redraw_workload(self, section: Mapping[str, Any]) -> WorkloadTables:
        hosts = [host.name for host in self.underlay.hosts]
        folder = self.path / "analysis" / "workload"
        try:
            return redraw_workload(folder, section, self.experiment["seed"], hosts)
        except AnalysisError as error:
            return no_workload(str(error))

    @cached_property
    def unicast(self) -> Unicast:
        """Routes and delays between all hosts."""
        return Unicast(self.underlay, [host.name for host in self.underlay.hosts])

    @cached_property
    def peer_unicast(self) -> Unicast:
        """Routes and delays between the peers of the overlay."""
        return Unicast(self.underlay, self.overlay.peers)

    @property
    def is_emulated(self) -> bool:
        """Whether packets are in captures; those of a simulation are in Parquet."""
        backend = self.experiment.get("backend")
        return (self.path / "captures").is_dir() if backend is None else backend == "emulation"

    @property
    def is_partial(self) -> bool:
        """Whether the run is incomplete."""
        return self.path.resolve().name.endswith(".partial")

    @property
    def time_scale(self) -> float:
        """The factor by which times and delays are stretched in captures."""
        return float(self.experiment.get("time_scale", 1.0))

    @property
    def duration_us(self) -> int | None:
        """The length of the run, if it is known and the run is complete."""
        seconds = self.experiment.get("duration_s")
        return None if seconds is None or self.is_partial else int(seconds * 1e6)

    @property
    def is_captured_leaving(self) -> bool:
        """Whether packets were captured at the end of a link, not at its beginning."""
        return bool(self.figures.get("links", {}).get("kind") == "netem")

    @property
    def agents_us(self) -> float:
        """The time that agents may take at both ends of a delivery; 0 in a simulation."""
        if not self.is_emulated:
            return 0.0
        lags = (one["lag"]["mean_us"] for one in self.figures.get("processes", ()))
        return max(_AGENTS_US / self.time_scale, 2 * max(lags, default=0.0))

    @property
    def has_changing_network(self) -> bool:
        """Whether faults changed routes or delays."""
        return any(fault["changes_network"] for fault in self.faults)

    @cached_property
    def captures(self) -> list[str]:
        """The captures of an emulated run."""
        try:
            return find_captures(self.path / "captures")
        except CaptureError:
            return []

    @property
    def packet_logs(self) -> list[str]:
        """The packet logs of a simulated run that are complete files."""
        return [str(path) for path in sorted((self.path / "packets").glob("*.parquet"))]

    @property
    def sources(self) -> list[Path]:
        """All files that tables are made from, except the measurements in `verdict.json`."""
        agents = self.path / "agents"
        records = agents / "records.parquet"
        logs = [records] if records.exists() else sorted(agents.glob("*.jsonl"))
        packets = self.captures if self.is_emulated else self.packet_logs
        documents = [self.path / name for name in ("run.json", "underlay.json")]
        known = [*documents, *sorted((self.path / "workload").glob("*.parquet"))]
        return [*(path for path in known if path.exists()), *logs, *map(Path, packets)]

    @property
    def is_small(self) -> bool:
        """Whether the run is so small that planning costs more than computing."""
        return sum(path.stat().st_size for path in self.sources) < _SMALL_BYTES

    def notes(self) -> Iterator[str]:
        """Notes that concern all metrics."""
        if self.is_partial:
            yield "the run is not complete: metrics are of its existing part"
        if self.has_changing_network:
            actions = sorted({f["action"] for f in self.faults if f["changes_network"]})
            yield (
                f"faults changed the network ({', '.join(actions)}): routes and delays are those "
                "of the network as it was built"
            )

    def table(self, name: str, columns: Sequence[str]) -> pa.Table | None:
        """Some columns of an analysed table; None if it is missing or cannot be read."""
        folder = self.path / "analysis" / "tables" / name
        if not folder.is_dir():
            return None
        try:
            return pq.read_table(folder, columns=list(columns))
        except (OSError, pa.ArrowException):
            return None


def open_run(path: Path) -> RecordedRun:
    """The run in a directory; an error if there is none."""
    if not is_run(path):
        raise AnalysisError(
            f"{path}: expected a run directory with run.json and underlay.json, found neither"
        )
    return RecordedRun(path)


def is_run(path: Path) -> bool:
    """Whether a path is a run directory, complete or not."""
    return any((path / name).is_file() for name in ("run.json", "underlay.json"))
