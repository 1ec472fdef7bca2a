"""`tdo analyze` of run directories: tables, then metrics."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from analysis.metrics.evidence import Evidence
from analysis.metrics.file import write_metrics
from analysis.metrics.packet_summary import summarise_packets
from analysis.run_directory import RecordedRun, open_run
from analysis.spark.session import small_job_settings
from analysis.tables.build import Tables, build_tables
from topologies.errors import TestbedError

Metrics = dict[str, Any]
Say = Callable[[str], None]

_NO_PACKETS = "there are no packets of messages"


def analyze_run(
    spark: SparkSession, path: Path, again: bool = False, say: Say = lambda _: None
) -> Metrics:
    """Make the tables of a run and write its metrics to `metrics.json`, which is returned."""
    run = open_run(path)
    if not _has_network(run):
        return write_metrics(Evidence(run, None, "the network is not known"), list(run.notes()))
    with small_job_settings(spark) if run.is_small else nullcontext():
        tables = build_tables(spark, run, again, say)
        say("metrics and checks")
        evidence = gather_evidence(spark, run, tables)
    return write_metrics(evidence, list(tables.notes.values()))


def gather_evidence(spark: SparkSession, run: RecordedRun, tables: Tables) -> Evidence:
    """A run with the summary of its packets, if it has any."""
    if "packets" in tables.notes and not tables["packets"].take(1):
        return Evidence(run, None, tables.notes.get("packets", _NO_PACKETS))
    return Evidence(run, summarise_packets(spark, run, tables))


def _has_network(run: RecordedRun) -> bool:
    try:
        return run.underlay is not None
    except TestbedError:
        return False
