"""Failed jobs of Spark are reported in one line."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from analysis.spark.failures import clear_failures
from testbed.cli import main
from tests.fixtures.report_runs import experiment, write_documents
from topologies.underlay import Channel, Host, Link, Router, Underlay
from topologies.underlay_file import save_underlay

NOWHERE = "/proc/nowhere"  # A place where not even root can write.


def fill_the_disk(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise OSError(28, "No space left on device")
    yield from ()


def test_the_cause_of_a_failure_in_java_or_python_is_named(spark: SparkSession) -> None:
    jobs = {
        "java.io.IOException: Mkdirs failed": lambda: spark.range(1).write.parquet(NOWHERE),
        r"OSError: \[Errno 28\] No space left": lambda: (
            spark.range(1).mapInArrow(fill_the_disk, "id long").collect()
        ),
        "Path does not exist: file:/nowhere": lambda: spark.read.parquet("/nowhere").count(),
    }
    for cause, job in jobs.items():
        expected = f"expected its jobs to succeed, found .*{cause}"
        with pytest.raises(AnalysisError, match=expected), clear_failures("local[2]"):
            job()


@pytest.mark.parametrize("error", [Py4JNetworkError("no answer"), ConnectionRefusedError(111, "")])
def test_a_dead_jvm_is_reported(error: Exception) -> None:
    with (
        pytest.raises(AnalysisError, match="local: expected .* found its Java process ended"),
        clear_failures("local"),
    ):
        raise error


def test_the_command_prints_one_line_and_with_debug_all(
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any) -> None:
        spark.range(1).write.parquet(NOWHERE)

    monkeypatch.setattr("analysis.spark.session.open_session", lambda *_, **__: nullcontext(spark))
    monkeypatch.setattr("analysis.analyze.analyze_run", fail)
    write_documents(tmp_path / "run", experiment())
    link = Link("h1", "r1", Channel(10), Channel(10))
    save_underlay(Underlay((Router("r1"),), (link,), (Host("h1"),)), tmp_path / "run/underlay.json")
    assert main(["analyze", str(tmp_path / "run")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tdo: Spark with master local[*]: expected its jobs to succeed, found ")
    assert main(["--debug", "analyze", str(tmp_path / "run")]) == 1
    assert "Py4JJavaError" in capsys.readouterr().err
