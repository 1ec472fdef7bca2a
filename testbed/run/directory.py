"""The run directory: all files of a run, in one layout for both backends.

It is written as `<name>.partial` and renamed when the run is complete, so the name of an
interrupted run shows that it is incomplete.
"""

import errno
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from agents.kinds import find_protocol, messages_of
from agents.protocol import Protocol
from agents.records import RecordRow, read_records
from agents.wire.codec import kind_names
from testbed.errors import UsageError
from testbed.experiment.faults import Fault, describe_fault
from testbed.experiment.file import Experiment, experiment_from_dict
from topologies.underlay import Underlay
from topologies.underlay_file import save_underlay
from workloads.workload import Workload

_PACKAGES = ("mininet", "msgspec", "networkx", "numpy", "scipy", "pyarrow", "pyspark", "scapy")
_RECORDS_AT_ONCE = 50_000
FORMAT = 2  # of run directories; the first had no number, and no workload/
RECORD_SCHEMA = pa.schema(
    [
        ("time_us", pa.int64()),
        ("host", pa.string()),
        ("what", pa.string()),
        ("values", pa.string()),  # a JSON object
    ]
)


@dataclass(frozen=True, slots=True)
class Origin:
    """The command and the version of the testbed that made a run."""

    command: tuple[str, ...]
    commit: str | None

    @classmethod
    def here(cls) -> "Origin":
        """The origin of runs of this process."""
        return cls(tuple(sys.argv), _commit())


@dataclass
class RunDirectory:
    """The files of a run in progress; `path` changes when it is complete."""

    path: Path
    final: Path
    origin: Origin
    phases: dict[str, float] = field(default_factory=dict)
    played_faults: tuple[Fault, ...] = ()  # faults of the experiment, and of its churn

    @classmethod
    def create(cls, experiment: Experiment, results: Path) -> "RunDirectory":
        """A new, empty, partial run directory below the results."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        name = f"{experiment.backend}-s{experiment.seed}-{stamp}"
        parent, origin = results / experiment.name, Origin.here()
        final, number = parent / name, 1
        while True:
            with suppress(FileExistsError):  # another run of the same second
                if not final.exists():
                    return cls._make(_partial(final), final, origin)
            number += 1
            final = parent / f"{name}-{number}"

    @classmethod
    def create_for(cls, final: Path, origin: Origin) -> "RunDirectory":
        """A directory for a run of this name; its own name is unique until it is complete."""
        unique = final.with_name(f"{final.name}.{uuid4().hex[:8]}")
        return cls._make(_partial(unique), final, origin)

    @classmethod
    def _make(cls, path: Path, final: Path, origin: Origin) -> "RunDirectory":
        (path / "agents").mkdir(parents=True)
        return cls(path, final, origin)

    def describe(
        self, experiment: Experiment, text: str, underlay: Underlay, workload: Workload | None
    ) -> None:
        """Write the files known before the run: experiment file, underlay and workload."""
        (self.path / "experiment.toml").write_text(text)
        save_underlay(underlay, self.path / "underlay.json")
        if workload is not None:
            workload.write(self.path / "workload", [host.name for host in underlay.hosts])
        self._write_run(experiment)

    def finish(self, experiment: Experiment, verdict: Mapping[str, Any]) -> Path:
        """Write the outcome, and give the directory its final name, which is returned.

        If a directory of that name exists, it is of the same run, and this one is removed.
        """
        self._write_run(experiment)
        write_json(self.path / "verdict.json", verdict)
        try:
            self.path.rename(self.final)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            self.drop()
        self.path = self.final
        return self.final

    def drop(self) -> None:
        """Remove an incomplete run."""
        shutil.rmtree(self.path, ignore_errors=True)

    def gather_records(self) -> int:
        """Convert the agents' logs to one Parquet file; returns the number of records."""
        logs = sorted((self.path / "agents").glob("*.jsonl"))
        rows = (row for log in logs for row in read_records(log))
        count = _write_records(self.path / "agents" / "records.parquet", rows)
        for log in (*logs, *(self.path / "agents").glob("*.stderr")):
            if log.suffix == ".jsonl" or log.stat().st_size == 0:
                log.unlink()
        return count

    def _write_run(self, experiment: Experiment) -> None:
        write_json(
            self.path / "run.json",
            {
                "format": FORMAT,
                "experiment": experiment.to_dict(),
                "message_kinds": kind_names(),
                "messages": msgspec.to_builtins(messages_of(experiment.layers)),
                "overlay": {"is_directed": _overlay(experiment).is_directed},
                "guarantee": _pubsub(experiment, "guarantee"),
                "settle_s": _pubsub(experiment, "settle_s"),
                "matching": _pubsub(experiment, "matching"),
                "played_faults": [describe_fault(fault) for fault in self.played_faults],
                "command": list(self.origin.command),
                "versions": versions(),
                "python": platform.python_version(),
                "kernel": platform.release(),
                "commit": self.origin.commit,
                "phases_s": self.phases,
            },
        )


def _overlay(experiment: Experiment) -> type[Protocol]:
    return find_protocol("overlay", experiment.overlay["kind"])


def _pubsub(experiment: Experiment, attribute: str) -> str | float | None:
    """The declarations of the publish/subscribe layer, if there is one."""
    kind = experiment.pubsub.get("kind")
    if kind is None:
        return None
    declared: str | float = getattr(find_protocol("pubsub", kind), attribute)
    return declared


def load_run_experiment(run: Path) -> tuple[Experiment, str]:
    """The experiment of a run directory, resolved and as given."""
    texts = {name: _read_text(run / name) for name in ("run.json", "experiment.toml")}
    try:
        found = json.loads(texts["run.json"])
    except ValueError as error:
        raise UsageError(f"{run}/run.json: expected JSON, found: {error}") from error
    document = found.get("experiment") if isinstance(found, dict) else None
    if not isinstance(document, dict):
        raise UsageError(f"{run}/run.json: expected a resolved experiment, found none in it")
    return experiment_from_dict(document, str(run / "run.json")), texts["experiment.toml"]


def _read_text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "bytes that are not UTF-8 text"
        raise UsageError(
            f"{path}: expected a file of a run directory, found: {reason}; "
            "name a run, as in results/<name>/latest"
        ) from error


def _write_records(path: Path, rows: Iterator[RecordRow]) -> int:
    count = 0
    form = {"compression": "zstd", "write_page_checksum": True}
    with pq.ParquetWriter(path, RECORD_SCHEMA, **form) as writer:
        while batch := list(islice(rows, _RECORDS_AT_ONCE)):
            columns = [
                [row.time_us for row in batch],
                [row.host for row in batch],
                [row.what for row in batch],
                [str(row.json, "utf-8") for row in batch],
            ]
            writer.write_table(pa.table(columns, RECORD_SCHEMA))
            count += len(batch)
    return count


def point_latest(final: Path) -> None:
    """Point the link `latest` beside the run to it."""
    latest = final.parent / "latest"
    draft = final.parent / ".latest.new"
    draft.unlink(missing_ok=True)
    draft.symlink_to(final.name)
    draft.replace(latest)


def versions() -> dict[str, str]:
    """The versions of the testbed and of the packages that it uses."""
    return {name: version(name) for name in ("tdo-testbed", *_PACKAGES)}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write plain data as JSON for readers and for `diff`."""
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


def _partial(final: Path) -> Path:
    return final.with_name(f"{final.name}.partial")


def _commit() -> str | None:
    """The commit of the testbed, if it runs from a checkout."""
    asking = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        done = subprocess.run(asking, capture_output=True, text=True, check=False)
    except OSError:  # git is not installed
        return None
    return done.stdout.strip() if done.returncode == 0 else None
