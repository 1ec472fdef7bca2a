"""The tables of a run, written once as Parquet: packets, records and the true network, joined.

A build is a folder that appears when it is complete. `tables.json` in it lists the source files, so
that the tables are used again while those have not changed.
"""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from analysis.captures.parquet import write_packets
from analysis.errors import AnalysisError
from analysis.overlay import Overlay
from analysis.parquet_files import why_unreadable
from analysis.run_directory import RecordedRun
from analysis.tables import packets as packet_tables
from analysis.tables.events import (
    EventTables,
    build_event_tables,
    copies,
    events_table,
    host_names,
    routing_load,
)
from analysis.tables.host_paths import HostPaths
from analysis.tables.overlay import overlay_edges_table, routes_table, unicast_table
from analysis.tables.schemas import SCHEMAS, arrow_table, conform, empty_table, schema_of
from analysis.tables.trees import tree_edges

_VERSION = 4
_ROWS_A_FILE = 2_000_000
_OF_RECORDS = ("matches", "receptions", "copies", "deliveries", "tree_edges", "routing_load")
Say = Callable[[str], None]


@dataclass
class Tables:
    """The tables of a run as frames, by name, with notes."""

    folder: Path
    frames: dict[str, DataFrame]
    notes: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> DataFrame:
        return self.frames[name]


def build_tables(
    spark: SparkSession, run: RecordedRun, again: bool = False, say: Say = lambda _: None
) -> Tables:
    """The tables of a run: those in `analysis/tables` if their sources have not changed."""
    folder = run.path / "analysis" / "tables"
    made_from = [*fingerprint(run.sources), _fingerprint_of(run.figures)]
    known = None if again else read_manifest(folder, made_from)
    if known is not None:
        say("reading existing tables")
        return Tables(folder, {name: _read(spark, folder, name) for name in SCHEMAS}, known)
    draft = folder.with_name(".tables.partial")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    notes = _Building(spark, run, draft, say).build()
    write_manifest(draft, made_from, notes)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
    return Tables(folder, {name: _read(spark, folder, name) for name in SCHEMAS}, notes)


def fingerprint(sources: Sequence[Path]) -> list[list[Any]]:
    """The names, sizes and times of files."""
    files = [(path, path.stat()) for path in sources]
    return [[str(path.name), about.st_size, about.st_mtime_ns] for path, about in files]


def _fingerprint_of(figures: Mapping[str, Any]) -> list[Any]:
    """The fingerprint of the measurements in `verdict.json`, a file that judging a run changes."""
    text = json.dumps(figures, sort_keys=True)
    return ["figures", len(text), sha256(text.encode()).hexdigest()]


def write_manifest(folder: Path, made_from: list[list[Any]], notes: dict[str, str]) -> None:
    """Write the sources of the tables."""
    content = {"version": _VERSION, "made_from": made_from, "notes": notes}
    (folder / "tables.json").write_text(json.dumps(content, indent=1) + "\n")


def read_manifest(folder: Path, made_from: list[list[Any]]) -> dict[str, str] | None:
    """The notes of tables made from these files by this version; None without such tables."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads((folder / "tables.json").read_text())
        if found["version"] == _VERSION and found["made_from"] == made_from:
            return dict(found["notes"])
    return None


def read_sources(folder: Path) -> set[str]:
    """The names of the files that tables were made from, if they are readable."""
    with suppress(OSError, ValueError, KeyError, TypeError, IndexError):
        found = json.loads((folder / "tables.json").read_text())
        return {str(source[0]) for source in found["made_from"]}
    return set()


class _Building:
    """One build: frames on disk, from which the next ones are made."""

    def __init__(self, spark: SparkSession, run: RecordedRun, draft: Path, say: Say) -> None:
        self._spark, self._run, self._draft, self._say = spark, run, draft, say
        self._frames: dict[str, DataFrame] = {}
        self._notes: dict[str, str] = {}
        self._channels = packet_tables.channels(spark, run.underlay)
        self._nodes = packet_tables.nodes(spark, run.underlay)

    def build(self) -> dict[str, str]:
        """Write all tables; returns notes about them."""
        for number, note in enumerate(self._run.notes()):
            self._notes[f"run{number or ''}"] = note
        overlay = self._overlay()
        history = None if overlay is None else self._run.overlay_history
        paths = HostPaths(self._run.unicast, overlay, history)
        self._write_truth(overlay, paths)
        self._say("packets of all links")
        with ThreadPoolExecutor(1) as pool:
            from_packets = pool.submit(self._write_packet_tables)
            events = None if overlay is None else self._write_event_tables(paths)
            from_packets.result()
        self._write_events(events)
        return self._notes

    def _write_truth(self, overlay: Overlay | None, paths: HostPaths) -> None:
        self._say("underlay and overlay")
        unicast = self._run.unicast
        self._write_arrow("unicast", unicast_table(unicast, paths))
        self._write_arrow("overlay_edges", overlay_edges_table(unicast, overlay))
        self._write_arrow("routes", routes_table(unicast, overlay))

    def _overlay(self) -> Overlay | None:
        try:
            return self._run.overlay
        except AnalysisError as error:
            self._notes["records"] = str(error)
            for name in (*_OF_RECORDS, "events"):
                self._write_arrow(name, empty_table(name))
            return None

    def _write_event_tables(self, paths: HostPaths) -> EventTables:
        self._say("events and deliveries")
        run = self._run
        tables = build_event_tables(run, paths)
        if run.workload.note:
            self._notes["workload"] = run.workload.note
        ends, names = run.lives.ends_frame(), host_names(run.underlay)
        frames = {
            "matches": tables.matches,
            "receptions": tables.receptions,
            "copies": copies(tables),
            "deliveries": tables.deliveries,
            "tree_edges": tree_edges(run.records, names, ends, paths),
            "routing_load": routing_load(tables, paths),
        }
        for name, frame in frames.items():
            self._write_arrow(name, arrow_table(frame, name))
        return tables

    def _write_events(self, tables: EventTables | None) -> None:
        if tables is not None:
            stress = packet_tables.stress_of_events(self._frames["stress"]).toPandas()
            self._write_arrow("events", arrow_table(events_table(tables, stress), "events"))

    def _write_packet_tables(self) -> None:
        packets = self._packets()
        found = packet_tables.messages(packets, self._channels, self._frames["unicast"])
        with ThreadPoolExecutor(2) as pool:
            others = [
                pool.submit(self._write, "messages", found),
                pool.submit(self._write, "traffic", packet_tables.traffic(packets)),
            ]
            stress = self._write("stress", packet_tables.link_stress(packets))
            self._write("link_loads", packet_tables.link_loads(packets, stress, self._channels))
            for other in others:
                other.result()

    def _packets(self) -> DataFrame:
        run = self._run
        crossings = self._captured() if run.is_emulated else self._logged()
        if "capture_errors" not in self._frames:
            self._write_arrow("capture_errors", empty_table("capture_errors"))
        if crossings is None:
            self._write_arrow("packets", empty_table("packets"))
            return self._frames["packets"]
        kinds = {kind.number: kind.name for kind in run.messages}
        named = packet_tables.name_packets(crossings, self._nodes, self._run_id(), kinds)
        packets = self._write("packets", named, is_small=False)
        shutil.rmtree(self._draft / "captured", ignore_errors=True)
        return packets

    def _captured(self) -> DataFrame | None:
        if not self._run.captures:
            self._notes["packets"] = self._why_none("captures")
            return None
        written = write_packets(self._spark, self._run.captures, self._draft / "captured")
        if written.errors:
            self._notes["capture_errors"] = f"{written.errors} parts could not be read"
        (self._draft / "captured" / "capture_errors").rename(self._draft / "capture_errors")
        self._frames["capture_errors"] = _read(self._spark, self._draft, "capture_errors")
        if self._run.figures.get("clock") is None:
            self._notes["packets"] = (
                "the start of the run was not recorded: times are those of the senders"
            )
        raw = self._spark.read.parquet(str(self._draft / "captured" / "packets"))
        return packet_tables.captured_crossings(raw, self._channels, self._run)

    def _logged(self) -> DataFrame | None:
        whole = [file for file in self._run.packet_logs if why_unreadable(Path(file)) is None]
        if len(whole) < len(self._run.packet_logs):
            self._notes["packets"] = "the packet log is incomplete or damaged and cannot be read"
        elif not whole:
            self._notes["packets"] = self._why_none("packets")
        if not whole:
            return None
        return packet_tables.logged_crossings(self._spark.read.parquet(*whole), self._channels)

    def _why_none(self, folder: str) -> str:
        if self._run.experiment.get("capture") == "none":
            return 'no packets were captured, as capture = "none"'
        return f"there are no packets in {folder}/"

    def _run_id(self) -> int | None:
        if not self._run.is_emulated:
            return None  # of a simulation nothing else is in the log
        run_id = self._run.figures.get("run_id")
        return None if run_id is None else int(str(run_id), 16)

    def _write(self, name: str, frame: DataFrame, is_small: bool = True) -> DataFrame:
        """Write a table, and use it from disk afterwards."""
        path = str(self._draft / name)
        rows = conform(frame, name)
        if is_small:
            rows = rows.coalesce(1)
        rows.write.option("maxRecordsPerFile", _ROWS_A_FILE).parquet(path)
        self._frames[name] = _read(self._spark, self._draft, name)
        return self._frames[name]

    def _write_arrow(self, name: str, table: pa.Table) -> None:
        (self._draft / name).mkdir()
        pq.write_table(table, self._draft / name / "part-0.parquet", compression="zstd")
        self._frames[name] = _read(self._spark, self._draft, name)


def _read(spark: SparkSession, folder: Path, name: str) -> DataFrame:
    return spark.read.schema(schema_of(name)).parquet(str(folder / name))
