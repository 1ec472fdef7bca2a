"""What a run directory has for an analysis, and what it says about the run as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from analysis.captures import find_captures
from analysis.errors import AnalysisError, CaptureError
from analysis.json_files import read_object
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay

_SMALL_BYTES = 32_000_000
_AGENTS_US = 1_000  # of the machine's own time
_ENDS = frozenset({"kill-agent", "stop-agent"})
_CHANGES = frozenset({"link-down", "link-up", "router-down", "router-up", "partition", "delay"})


@dataclass(frozen=True)
class RunFiles:
    """A run directory; `kinds` are the names of the kinds of messages, by number."""

    path: Path
    underlay: Underlay
    experiment: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    kinds: Mapping[int, str] = field(default_factory=dict)
    faults: Sequence[Mapping[str, Any]] = ()

    @property
    def is_emulated(self) -> bool:
        """Whether packets are in captures; a simulation's are in Parquet."""
        backend = self.experiment.get("backend")
        return (self.path / "captures").is_dir() if backend is None else backend == "emulation"

    @property
    def is_partial(self) -> bool:
        """Whether the run did not come to its end."""
        return self.path.resolve().name.endswith(".partial")

    @property
    def time_scale(self) -> float:
        """By how much times and delays are stretched in captures."""
        return float(self.experiment.get("time_scale", 1.0))

    @property
    def duration_us(self) -> int | None:
        """How long the run was to last, if it is known and it did."""
        seconds = self.experiment.get("duration_s")
        return None if seconds is None or self.is_partial else int(seconds * 1e6)

    @property
    def is_captured_leaving(self) -> bool:
        """Whether packets were captured where they leave a link, not where they enter it."""
        return bool(self.figures.get("links", {}).get("kind") == "netem")

    @property
    def agents_us(self) -> float:
        """What agents may take at both ends of a delivery; in a simulation, nothing."""
        if not self.is_emulated:
            return 0.0
        lags = (one["lag"]["mean_us"] for one in self.figures.get("processes", ()))
        return max(_AGENTS_US / self.time_scale, 2 * max(lags, default=0.0))

    @property
    def has_changing_network(self) -> bool:
        """Whether faults changed routes or delays."""
        return any(fault["action"] in _CHANGES for fault in self.faults)

    @property
    def ends(self) -> list[tuple[int, str]]:
        """When which agents ended before the end of the run, as far as faults tell."""
        return [
            (int(float(fault["at_s"]) * 1e6), str(fault["target"]))
            for fault in self.faults
            if fault["action"] in _ENDS
        ]

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
        """All files that tables are made from, and from the figures in `verdict.json`."""
        names = ("run.json", "underlay.json")
        agents = self.path / "agents"
        records = agents / "records.parquet"
        logs = [records] if records.exists() else sorted(agents.glob("*.jsonl"))
        packets = self.captures if self.is_emulated else self.packet_logs
        known = [self.path / name for name in names if (self.path / name).exists()]
        return [*known, *logs, *map(Path, packets)]

    @property
    def is_small(self) -> bool:
        """Whether there is so little of it that planning costs more than computing."""
        return sum(path.stat().st_size for path in self.sources) < _SMALL_BYTES

    def notes(self) -> Iterator[str]:
        """What a reader of any figure should know."""
        if self.is_partial:
            yield "the run is not complete: these figures are of as much of it as there is"
        if self.has_changing_network:
            yield "faults changed the network: it is compared with the network as it was built"


def open_run(path: Path, kinds: Mapping[int, str] | None = None) -> RunFiles:
    """The files of a run; `kinds` is used where the run itself does not name its messages."""
    if not (path / "underlay.json").exists():
        raise AnalysisError(f"{path}: expected a run directory with underlay.json, found none")
    run = read_object(path / "run.json")
    named = run.get("message_kinds") or kinds or {}
    experiment = run.get("experiment", {})
    return RunFiles(
        path,
        load_underlay(path / "underlay.json"),
        experiment,
        read_object(path / "verdict.json").get("figures", {}),
        {int(number): name for number, name in named.items()},
        # Churn adds to the faults that the experiment names.
        run.get("played_faults", experiment.get("fault", ())),
    )


def is_run(path: Path) -> bool:
    """Whether a path is a run directory, complete or not."""
    return (path / "underlay.json").exists()
