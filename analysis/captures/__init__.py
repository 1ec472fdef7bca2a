"""Captures of any tool as tables: in Spark, as Parquet, or as Arrow batches.

    register(spark); spark.read.format("pcap").load("captures/")    rows in Spark
    write_packets(spark, "captures/", "analysis/packets")            Parquet, written once
    for part in plan_splits("big.pcap"): read_split(part)            batches, without Spark

`packets.py` describes the table `packets`, `problems.py` the table `capture_errors`.
"""

from analysis.captures.packets import PACKETS_SCHEMA, packets_schema
from analysis.captures.problems import ERRORS_SCHEMA, Problem
from analysis.captures.reader import (
    Choice,
    Split,
    find_captures,
    plan_parts,
    plan_splits,
    read_both,
    read_errors,
    read_split,
    why_no_capture,
)

__all__ = [
    "ERRORS_SCHEMA",
    "PACKETS_SCHEMA",
    "Choice",
    "Problem",
    "Split",
    "find_captures",
    "packets_schema",
    "plan_parts",
    "plan_splits",
    "read_both",
    "read_errors",
    "read_split",
    "why_no_capture",
]
