"""A simulated run with a host cut off for a while: time of recovery, and that nothing is lost."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analysis.analyze import analyze_run
from tests.fixtures.content_runs import run_small
from topologies.underlay_file import load_underlay

CUT_S, MENDED_S = 15.05, 18.05
EVENTS = {"events": 120, "rate_per_s": 10.0, "start_s": 12.0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which the last mile of a host is cut for three seconds."""
    results = tmp_path_factory.mktemp("results")
    workload = {"kind": "content-zipf", "subscriptions": 2, "match": 0.3, **EVENTS}
    settings: dict[str, Any] = {"workload": workload, "duration_s": 40.0}
    underlay = load_underlay(run_small(results, **settings, capture="none") / "underlay.json")
    last_mile = next(link.name for link in underlay.links if "h4" in (link.a, link.b))
    faults = [
        {"at_s": CUT_S, "action": "link-down", "target": last_mile},
        {"at_s": MENDED_S, "action": "link-up", "target": last_mile},
    ]
    return run_small(results, **settings, fault=faults)


def delays_us(run: Path) -> list[tuple[int, int]]:
    """The times from publication to delivery of each event at other hosts, from records."""
    rows = pq.read_table(run / "agents" / "records.parquet").to_pylist()
    said = [(r["time_us"], r["host"], r["what"], json.loads(r["values"])) for r in rows]
    published = {v["event_id"]: (t, h) for t, h, what, v in said if what == "event_published"}
    return [
        (published[v["event_id"]][0], time_us)
        for time_us, host, what, v in said
        if what == "delivered" and published[v["event_id"]][1] != host
    ]


def test_a_cut_delays_deliveries_until_after_its_repair_and_loses_none(
    run: Path, spark: SparkSession
) -> None:
    metrics = analyze_run(spark, run)
    delivery = metrics["delivery"]
    assert delivery["delivered"] == delivery["expected"] > 100
    assert (delivery["duplicates"], delivery["unasked"]) == (0, 0)
    pairs, cut_us = delays_us(run), round(CUT_S * 1e6)
    due_after_us = 2 * max(got - sent for sent, got in pairs if got < cut_us)
    late = [got for sent, got in pairs if got - sent > due_after_us]
    assert max(late) > MENDED_S * 1e6
    (fault,) = metrics["recovery"]["faults"]
    assert metrics["recovery"]["due_after_s"] == due_after_us / 1e6
    assert (fault["late"], fault["missing"]) == (len(late), 0)
    assert fault["recovery_s"] == (max(late) - cut_us) / 1e6 > MENDED_S - CUT_S
    assert "recovery" not in metrics["notes"]
