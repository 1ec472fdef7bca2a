"""Analyses of simulated runs: compared with the oracle, with each other, and with damaged files."""

import csv
import json
import shutil
from contextlib import nullcontext
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analysis.analyze import analyze_run, gather_evidence
from analysis.metrics.file import measure, measure_run
from analysis.run_directory import open_run
from analysis.tables.build import Tables, build_tables
from analysis.tables.schemas import SCHEMAS
from testbed.cli import main
from testbed.commands import analyze
from testbed.sweeps.directory import read_row
from tests.fixtures.content_runs import comparable, run_small
from tests.fixtures.delivery_oracle import account
from tests.fixtures.literal_frames import rows_of
from tests.fixtures.overlay_runs import Recorder
from topologies.underlay import Host, Link, Router, Underlay
from workloads.content.generator import make_workload

CHECKS = {
    "arrivals_received", "copies_sent", "delays_agree", "deliveries_have_packets",
    "matches_agree", "packets_belong_to_messages", "routes_whole", "sent_by_kind",
}  # fmt: skip


@pytest.fixture(scope="module")
def run(faulty_run: Path) -> Path:
    return faulty_run


@pytest.fixture(scope="module")
def metrics(faulty_metrics: dict[str, Any]) -> dict[str, Any]:
    return faulty_metrics


def records_of(run: Path) -> list[tuple[int, str, str, dict[str, Any]]]:
    rows = pq.read_table(run / "agents" / "records.parquet").to_pylist()
    return [(r["time_us"], r["host"], r["what"], json.loads(r["values"])) for r in rows]


def test_every_check_holds_and_the_document_is_complete(run: Path, metrics: dict[str, Any]) -> None:
    assert metrics["checks"].keys() == CHECKS
    assert all(check["ok"] and check["expected"] > 0 for check in metrics["checks"].values())
    assert metrics == json.loads((run / "analysis" / "metrics.json").read_text())
    assert {p.name for p in (run / "analysis" / "tables").iterdir()} == {*SCHEMAS, "tables.json"}
    for name in ("link_stress", "rdp", "false_positives", "routing_cost", "control_efficiency"):
        assert metrics[name], name
    assert metrics["routing_efficiency"] >= 1
    assert metrics["overlay_rdp"] != metrics["rdp"]


def test_deliveries_are_those_of_the_oracle(run: Path, metrics: dict[str, Any]) -> None:
    document = json.loads((run / "run.json").read_text())["experiment"]
    hosts = [f"h{number}" for number in range(1, 7)]
    said = document["workload"]
    drawn = make_workload(
        "zipf", document["seed"], len(hosts), said["subscriptions"], said["events"], said["match"]
    )
    ends = [(13_050_000, "h4"), (13_550_000, "h2")]
    truth = account(
        drawn, hosts, records_of(run), ends, int(document["duration_s"] * 1e6), 2_000_000
    )
    twice = truth.steady.duplicates, truth.unsteady.duplicates
    assert metrics["delivery"] == {
        "expected": truth.steady.expected,
        "delivered": truth.steady.delivered,
        "unsteady_expected": truth.unsteady.expected,
        "unsteady_delivered": truth.unsteady.delivered,
        "duplicates": sum(len(events) for some in twice for events in some.values()),
        "unasked": len(truth.unasked),
    }
    assert truth.steady.expected > 20 and truth.unsteady.expected > 0


def test_metrics_follow_from_records_and_packets(run: Path, metrics: dict[str, Any]) -> None:
    said = [(host, what, values) for _, host, what, values in records_of(run)]
    received = [values for _, what, values in said if what == "event_received"]
    publisher = {v["event_id"]: h for h, what, v in said if what == "event_published"}
    to_others = {
        (host, values["event_id"])
        for host, what, values in said
        if what == "delivered" and publisher[values["event_id"]] != host
    }
    assert metrics["events"]["published"] == len(publisher)
    assert metrics["events"]["delivered"] == metrics["rdp"]["count"] == len(to_others)
    in_vain = sum(not values["is_match"] for values in received)
    assert metrics["false_positives"] == in_vain / len(to_others)
    assert metrics["events"]["in_vain"] == in_vain
    packets = pq.read_table(run / "packets" / "packets.parquet").to_pylist()
    copies: dict[tuple[int, str, str], int] = {}
    for packet in packets:
        if packet["event_id"]:
            key = packet["event_id"], packet["link"], packet["direction"]
            copies[key] = copies.get(key, 0) + 1
    assert metrics["link_stress"]["mean"] == sum(copies.values()) / len(copies)
    assert metrics["link_stress"]["max"] == max(copies.values())
    assert metrics["link_stress"]["total"] == sum(copies.values())
    assert metrics["packets"]["total"] == len(packets)


def test_delays_by_packets_equal_those_by_records(metrics: dict[str, Any]) -> None:
    """Simulated agents take no time: delays differ only where an event waited at an agent."""
    check = metrics["checks"]["delays_agree"]
    assert 0.8 * check["expected"] < check["found"] <= check["expected"] == metrics["rdp"]["count"]
    assert check["difference_us"]["p50"] == 0
    assert metrics["rdp_of_paths"]["mean"] <= metrics["rdp_of_packets"]["mean"]
    assert metrics["rdp_of_packets"]["mean"] < metrics["rdp"]["mean"]


def test_recorded_delays_are_those_of_the_paths(run: Path, spark: SparkSession) -> None:
    """Simulated messages are never late: deliveries that waited for no repair take the path's
    delay.
    """
    folder = run / "analysis" / "tables"
    deliveries = rows_of(spark.read.parquet(str(folder / "deliveries")))
    others = [row for row in deliveries if not row["is_own"] and row["path_us"] is not None]
    on_time = [row for row in others if row["delay_us"] == row["path_us"]]
    assert len(on_time) > 0.7 * len(others) > 10
    assert all(row["delay_us"] >= row["path_us"] >= row["unicast_us"] > 0 for row in others)
    loads = rows_of(spark.read.parquet(str(folder / "routing_load")))
    cost_us = sum(row["load"] * row["delay_us"] for row in loads)
    assert cost_us == sum(row["path_us"] for row in others if row["copy"] == 1)


def test_manipulated_times_are_detected(run: Path, tmp_path: Path, spark: SparkSession) -> None:
    """One delivery is moved before its packet, and one packet after its delivery; counts stay."""
    said = records_of(run)
    publisher = {v["event_id"]: h for _, h, what, v in said if what == "event_published"}
    (early, *_), (_, host, event_id), *_ = (
        (index, host, values["event_id"])
        for index, (_, host, what, values) in enumerate(said)
        if what == "delivered" and publisher[values["event_id"]] != host
    )
    copy = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("analysis"))
    table = pq.read_table(copy / "agents/records.parquet")
    rows = table.to_pylist()
    rows[early]["time_us"] -= 100_000
    pq.write_table(pa.Table.from_pylist(rows, table.schema), copy / "agents/records.parquet")
    table = pq.read_table(copy / "packets/packets.parquet")
    rows = table.to_pylist()
    address = int(IPv4Address(open_run(run).underlay.address[host]))
    way = [row for row in rows if (row["event_id"], row["target"]) == (event_id, address)]
    way[-1]["time_us"] += 100_000
    pq.write_table(pa.Table.from_pylist(rows, table.schema), copy / "packets/packets.parquet")
    found = analyze_run(spark, copy)
    assert {name for name, check in found["checks"].items() if not check["ok"]} == {"delays_agree"}
    assert found["checks"]["delays_agree"]["differing"] == 2
    assert found["notes"]["checks"].startswith("delays_agree: expected ")


def test_a_hidden_false_positive_is_detected(
    run: Path,
    metrics: dict[str, Any],
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The verdict and the exit status show it; existing tables are used."""
    copy = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("analysis"))
    file = copy / "agents" / "records.parquet"
    table = pq.read_table(file)
    hidden = next(
        index
        for index, (_, host, what, values) in enumerate(records_of(run))
        if what == "event_received" and not values["is_match"] and host not in ("h2", "h4")
    )
    pq.write_table(pa.concat_tables([table[:hidden], table[hidden + 1 :]]), file)
    monkeypatch.setattr(analyze, "_session", lambda *_: nullcontext(spark))
    assert main(["analyze", str(copy), "--json"]) == 3
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["false_positives"] < metrics["false_positives"]
    broken = {name: check for name, check in found["checks"].items() if not check["ok"]}
    whole = metrics["checks"]["arrivals_received"]["found"]
    assert broken == {"arrivals_received": {"ok": False, "expected": whole, "found": whole - 1}}
    verdict = json.loads((copy / "verdict.json").read_text())
    assert verdict["verdict"] == "invalid"
    assert main(["analyze", str(copy)]) == 3
    again = capsys.readouterr().out
    assert "reading existing tables" in again and verdict["reasons"][0] in again
    assert json.loads((copy / "verdict.json").read_text()) == verdict


def test_metrics_do_not_depend_on_the_number_of_partitions(
    run: Path, metrics: dict[str, Any], spark: SparkSession
) -> None:
    """Small runs have one partition; here they have seven."""
    parts = 7
    files = open_run(run)
    tables = build_tables(spark, files)
    spread = {name: frame.repartition(parts) for name, frame in tables.frames.items()}
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(parts))
    try:
        evidence = gather_evidence(spark, files, Tables(tables.folder, spread, tables.notes))
        found = measure(evidence, list(tables.notes.values()))
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))
    assert comparable(found) == comparable(metrics)


def test_tables_are_rebuilt_only_when_requested_or_out_of_date(
    run: Path, metrics: dict[str, Any], spark: SparkSession
) -> None:
    said: list[str] = []
    made = (run / "analysis" / "tables").stat().st_ino
    assert analyze_run(spark, run, say=said.append) == metrics
    assert "reading existing tables" in said
    assert (run / "analysis" / "tables").stat().st_ino == made
    verdict = json.loads((run / "verdict.json").read_text())
    (run / "verdict.json").write_text(json.dumps(verdict | {"verdict": "degraded"}))
    build_tables(spark, open_run(run))
    assert (run / "analysis" / "tables").stat().st_ino == made
    (run / "verdict.json").write_text(json.dumps(verdict))
    (run / "run.json").touch()
    said.clear()
    assert analyze_run(spark, run, say=said.append) == metrics
    assert "reading existing tables" not in said
    assert (run / "analysis" / "tables").stat().st_ino != made


def test_a_run_without_events_keeps_the_rdp_of_its_overlay(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Without packets, there are no metrics of packets."""
    run = run_small(tmp_path, workload=None, routing=None, capture="none", duration_s=15.0)
    found = analyze_run(spark, run)
    assert found["rdp"] == found["overlay_rdp"] and found["rdp"]["mean"] >= 1
    assert "overlay" in found["notes"]["rdp"]
    nulls = ("link_stress", "messages", "packets", "delivery", "control_efficiency")
    assert [found[name] for name in nulls] == [None] * 5
    assert 'capture = "none"' in found["notes"]["link_stress"]
    assert found["notes"]["delivery"] == "no event was published"
    assert found["checks"]["matches_agree"] == {"ok": None, "expected": 0, "found": 0}


def test_two_hosts_and_one_event(tmp_path: Path, spark: SparkSession) -> None:
    topology = {"kind": "waxman", "routers": 3, "hosts": 2}
    workload = {"kind": "content-uniform", "events": 1, "match": 1.0, "start_s": 10.0}
    run = run_small(tmp_path, topology=topology, workload=workload, duration_s=15.0)
    found = analyze_run(spark, run)
    assert found["events"] == {
        "published": 1, "received": 1, "in_vain": 0, "false_positives": 0, "delivered": 1,
        "own": 1, "crossings": 3,
    }  # fmt: skip
    assert found["delivery"]["expected"] == found["delivery"]["delivered"] == 2
    assert (found["rdp"]["mean"], found["routing_efficiency"], found["false_positives"]) == (
        1,
        1,
        0,
    )
    assert found["link_stress"]["max"] == 1 and all(c["ok"] for c in found["checks"].values())
    assert found["checks"]["delays_agree"]["found"] == 1
    assert found["rdp_of_packets"] == found["rdp"]


def test_an_empty_run_of_one_host(tmp_path: Path, spark: SparkSession) -> None:
    underlay = Underlay((Router("r1"),), (Link.symmetric("h1", "r1", 10),), (Host("h1"),))
    run = Recorder(underlay).write(tmp_path / "run")
    found = analyze_run(spark, run)
    assert set(found["events"].values()) == {0}
    assert found["rdp"] is None and "no event was published" in found["notes"]["rdp"]
    assert found["notes"]["packets"] == "there are no packets in packets/"
    (run / "agents" / "records.parquet").unlink()
    again = analyze_run(spark, run)
    assert "expected agents/records.parquet" in again["notes"]["analysis"]


@pytest.mark.parametrize("name", ["agents/records.parquet", "underlay.json"])
def test_a_run_with_damaged_files_is_not_valid(
    name: str,
    run: Path,
    tmp_path: Path,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("analysis"))
    (copy / name).write_bytes(b"garbage")
    monkeypatch.setattr(analyze, "_session", lambda *_: nullcontext(spark))
    assert main(["analyze", str(copy), "--again"]) == 3
    shown = capsys.readouterr().out
    assert (
        "verdict: invalid" in shown and f"    {name}: " in shown and "events published" not in shown
    )


def test_a_run_that_died_is_analysed_as_far_as_recorded(
    run: Path, metrics: dict[str, Any], tmp_path: Path, spark: SparkSession
) -> None:
    """It has half of the records in a log, an incomplete packet log, and no verdict."""
    dead = tmp_path / "dead.partial"
    (dead / "agents").mkdir(parents=True)
    (dead / "packets").mkdir()
    for name in ("run.json", "underlay.json"):
        shutil.copy(run / name, dead)
    whole = (run / "packets" / "packets.parquet").read_bytes()
    (dead / "packets" / "packets.parquet").write_bytes(whole[:-100])
    lines = [
        json.dumps({"time_us": r[0], "host": r[1], "what": r[2], "values": r[3]})
        for r in records_of(run)
        if r[0] < 13_000_000
    ]
    (dead / "agents" / "simulation.jsonl").write_text("\n".join(lines)[:-7])
    found = analyze_run(spark, dead)
    assert "the run is not complete" in found["notes"]["analysis"]
    assert "packet log is incomplete" in found["notes"]["link_stress"]
    assert found["events"]["published"] == 10 and found["packets"] is None
    assert 0 < found["events"]["delivered"] < metrics["events"]["delivered"]


def test_an_analysis_extends_the_metrics_of_sweeps(
    run: Path, tmp_path: Path, spark: SparkSession
) -> None:
    copy = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("metrics.json"))
    measure_run(copy)
    analyze_run(spark, copy)
    row = read_row(copy, {}, 3)
    assert row["events.crossings"] > row["events.own"] > 0
    assert row["last_tree.events.crossings"] > 0 < row["link_stress.total"]


def test_metrics_of_sweeps_without_spark_are_equal(
    run: Path, metrics: dict[str, Any], tmp_path: Path
) -> None:
    copy = shutil.copytree(run, tmp_path / "run", ignore=shutil.ignore_patterns("analysis"))
    measured = measure_run(copy)
    for name in ("false_positives", "routing_cost", "routing_cost_opt", "routing_efficiency"):
        assert measured[name] == pytest.approx(metrics[name]), name
    for name in ("published", "received", "delivered", "in_vain"):
        assert measured["events"][name] == metrics["events"][name] > 0, name
    for name in ("mean", "max"):
        assert measured["rdp_of_paths"][name] == pytest.approx(metrics["rdp_of_paths"][name])
    # Packets to dead peers are also on links.
    assert 0 < measured["events"]["crossings"] < metrics["link_stress"]["total"]
    assert measured["last_tree"]["events"]["published"] <= measured["events"]["published"]
    with (copy / "analysis" / "routing_series.csv").open(newline="") as file:
        steps = list(csv.DictReader(file))
    assert sum(int(step["delivered"]) for step in steps) == metrics["events"]["delivered"]
    assert sum(float(step["routing_cost"]) for step in steps) == pytest.approx(
        metrics["routing_cost"]
    )
