"""Packet captures of any origin as tables: for Spark, for Parquet, or as Arrow batches.

    register(spark); spark.read.format("pcap").load("captures/")    rows in Spark
    write_packets(spark, "captures/", "analysis/packets")            Parquet, written once
    for part in plan_splits("big.pcap"): read_split(part)            batches, without Spark

`columns.py` says what a row of `packets` has, `problems.py` what one of `capture_errors` has.
"""

from analysis.captures.columns import PACKETS_SCHEMA
from analysis.captures.finding import find_captures
from analysis.captures.problems import ERRORS_SCHEMA, Problem
from analysis.captures.reader import Choice, read_both, read_errors, read_split
from analysis.captures.splits import Split, plan_splits

__all__ = [
    "ERRORS_SCHEMA",
    "PACKETS_SCHEMA",
    "Choice",
    "Problem",
    "Split",
    "find_captures",
    "plan_splits",
    "read_both",
    "read_errors",
    "read_split",
]
