"""`tdo analyze` of captures that belong to no run: tables of their packets, and counts."""

import json
import shutil
from collections.abc import Iterable, Set
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from analysis.captures import find_captures
from analysis.captures.parquet import ERRORS, PACKETS, write_packets
from analysis.errors import AnalysisError
from analysis.metrics.packet_summary import Rows, gather
from analysis.tables.build import fingerprint, read_manifest, read_sources, write_manifest

Metrics = dict[str, Any]


def analyze_captures(
    spark: SparkSession, captures: list[Path], out: Path, again: bool = False
) -> Metrics:
    """Make the tables of captures that belong to no run; `out` gets `tables` and metrics.json."""
    files = find_captures(captures)
    folder = out / "tables"
    made_from = fingerprint([Path(file) for file in files])
    if again or read_manifest(folder, made_from) is None:
        _remove_tables(folder, {Path(file).name for file in files})
        out.mkdir(parents=True, exist_ok=True)
        write_packets(spark, files, folder)
        write_manifest(folder, made_from, {})
    packets = spark.read.parquet(str(folder / PACKETS))
    errors = spark.read.parquet(str(folder / ERRORS))
    rows = gather(
        {
            "packets": packets.agg(
                F.count("*").alias("total"),
                F.count("kind").alias("ours"),
                F.count_if(F.col("protocol").isin(1, 58)).alias("icmp"),
                F.sum("wire_bytes").alias("bytes"),
                F.min("time_ns").alias("first_ns"),
                F.max("time_ns").alias("last_ns"),
            ),
            "interfaces": packets.groupBy("interface").agg(F.count("*").alias("packets")),
            "by_kind": packets.groupBy("kind").agg(F.count("*").alias("packets")),
            "capture_errors": errors.groupBy("reason").agg(F.count("*").alias("count")),
        }
    )
    found: Metrics = {
        "files": len(files),
        "packets": rows["packets"][0],
        "interfaces": {r["interface"]: r["packets"] for r in _sorted(rows, "interfaces")},
        "packets_by_kind": {
            str(row["kind"]): row["packets"] for row in _sorted(rows, "by_kind") if "kind" in row
        },
        "capture_errors": {r["reason"]: r["count"] for r in _sorted(rows, "capture_errors")},
        "notes": {"analysis": "captures without a run directory: only packets are counted"},
    }
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    (out / "metrics.json").write_text(text)
    return dict(json.loads(text))


def _sorted(rows: Rows, name: str) -> Iterable[dict[str, Any]]:
    return sorted(rows[name], key=lambda row: [str(value).rjust(20) for value in row.values()])


def _remove_tables(folder: Path, captures: Set[str]) -> None:
    """Remove outdated tables of these captures; other files are the user's."""
    if not folder.exists():
        return
    if not (folder / "tables.json").exists():
        raise AnalysisError(
            f"{folder}: expected no such folder, or tables of `tdo analyze`, found other files"
        )
    others = sorted(read_sources(folder) - captures)
    if others:
        raise AnalysisError(
            f"{folder}: expected no such folder, or tables of these captures, found those of "
            f"{others[0]}; give another folder with --out, or remove that one"
        )
    shutil.rmtree(folder)
