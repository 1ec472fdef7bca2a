"""Analysis of a run with unknown workload and protocols: it uses only ids and times."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.metrics.file import measure_run
from tests.fixtures.overlay_runs import END_US, Recorder
from topologies.hosts import attach_hosts
from topologies.waxman import generate_waxman

EVENTS = 3


def write_workload(run: Path) -> None:
    """h2 and h3 subscribe to topic 7, h4 to topic 8 for a while; all events are of topic 7."""
    hosts, topics = ["h2", "h3", "h4"], [7, 7, 8]
    tables: dict[str, dict[str, Any]] = {
        "interests": {"interest": range(3), "host": hosts, "content": topics, "from_us": [0] * 3,
                      "until_us": pa.nulls(3, pa.int64())},
        "publications": {"event_id": range(1, EVENTS + 1), "host": ["h1"] * EVENTS,
                         "content": [7] * EVENTS, "time_us": range(EVENTS)},
        "matches": {"event_id": [1, 1, 2, 2, 3, 3], "interest": [0, 1] * EVENTS},
    }  # fmt: skip
    (run / "workload").mkdir()
    for name, columns in tables.items():
        arrays = {key: pa.array(values) for key, values in columns.items()}
        pq.write_table(pa.table(arrays), run / "workload" / f"{name}.parquet")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A flood along h1 - h4 - h2 - h3: h4 only forwards; h3 misses the last event."""
    recorder = Recorder(attach_hosts(generate_waxman(6, seed=1), 4, 1))
    recorder.start()
    for host, number in (("h2", 0), ("h3", 1), ("h4", 2)):
        recorder.record(host, "subscribed", 10, interest=number)
    for a, b in (("h1", "h4"), ("h4", "h2"), ("h2", "h3")):
        recorder.join(a, b)
    for event in range(1, EVENTS + 1):
        at_us = event * 1_000_000
        recorder.record("h1", "event_published", at_us, event_id=event)
        for hop, (sender, host) in enumerate((("h1", "h4"), ("h4", "h2"), ("h2", "h3")), start=1):
            if (event, host) == (EVENTS, "h3"):
                continue
            copy = {"event_id": event, "from": recorder.address(sender), "hop_count": hop}
            recorder.record(host, "event_received", at_us + 50_000 * hop, **copy)
            if host != "h4":
                recorder.record(host, "delivered", at_us + 50_000 * hop, **copy)
    recorder.end(sent=9, sent_Flood=9)
    path = recorder.write(tmp_path / "run")
    experiment = {"backend": "simulation", "seed": 1, "duration_s": END_US / 1e6,
                  "capture": "none", "workload": {"kind": "topics-by-hand"}}  # fmt: skip
    flood = {"number": 200, "name": "Flood", "layer": "pubsub", "role": "event"}
    document = {"format": 2, "experiment": experiment, "messages": [flood], "played_faults": []}
    (path / "run.json").write_text(json.dumps(document))
    write_workload(path)
    return path


def test_events_without_trees_and_contents_are_measured(run: Path) -> None:
    found = measure_run(run)
    assert [one["file"] for one in found["unreadable"]] == ["verdict.json"]  # never executed
    assert found["delivery"] == {
        "expected": 6, "delivered": 5, "duplicates": 0, "unasked": 0, "unsteady_expected": 0,
        "unsteady_delivered": 0,
    }  # fmt: skip
    assert found["false_positives"] == 3 / 5
    assert found["hops"] == {
        "mean": pytest.approx((2 * 3 + 3 * 2) / 5), "max": 3, "count": 5,
        "distribution": {"2": 3, "3": 2},
    }  # fmt: skip
    assert found["rdp_over"] == "deliveries" and found["rdp"] == found["delivery_rdp"]
    assert found["routing_efficiency"] == 1
    assert found["control_efficiency_of_routing"] == 4 * 9 / 5
    assert found["control_efficiency_without_discovery"] == 4 * 9 / 5
    assert found["communication_messages"] == 4 * 9 / 5
    assert found["communication_cost"] is found["communication_cost_per_delivery"] is None
    assert found["notes"]["communication_cost"].startswith("no agent recorded links of a tree")
    assert found["last_tree"] is None
    assert found["notes"]["last_tree"] == "no event says which tree it was published on"
    assert found["checks"]["matches_agree"]["ok"] is None
    with (run / "analysis" / "routing_series.csv").open(newline="") as file:
        (step,) = csv.DictReader(file)
    assert (step["event"], step["selection"], step["delivered"]) == ("3", "", "5")


def test_an_interest_that_has_ended_is_no_longer_owed(run: Path) -> None:
    file = run / "agents" / "records.parquet"
    table = pq.read_table(file)
    row = {"time_us": 2_500_000, "host": "h3", "what": "unsubscribed", "values": '{"interest": 1}'}
    pq.write_table(pa.concat_tables([table, pa.Table.from_pylist([row], table.schema)]), file)
    found = measure_run(run)["delivery"]
    # Events published less than 2 s before are no longer owed, either.
    assert (found["expected"], found["delivered"], found["unasked"]) == (3, 3, 0)
