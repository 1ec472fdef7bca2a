"""The analysis of an emulated run: its captures agree with its agents' records."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from analysis.analyze import analyze_run
from analysis.analyze_captures import analyze_captures
from tests.fixtures.content_runs import run_small
from tests.fixtures.literal_frames import rows_of
from tests.fixtures.tshark import assert_same

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    workload = {
        "kind": "content-zipf", "subscriptions": 2, "events": 20, "rate_per_s": 10.0,
        "match": 0.3, "start_s": 10.0,
    }  # fmt: skip
    results = tmp_path_factory.mktemp("results")
    return run_small(results, backend="emulation", workload=workload, duration_s=15.0)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark: run scripts/setup")
def test_tshark_and_our_reader_agree_on_captures_of_a_run(run: Path) -> None:
    for capture in sorted((run / "captures").iterdir()):
        assert_same(capture)


def test_packets_and_records_agree(run: Path, tmp_path: Path, spark: SparkSession) -> None:
    """Counts are compared exactly; times do not decide, because the machine may be busy."""
    found = analyze_run(spark, run)
    assert len(found["checks"]) == 8
    assert {name for name, check in found["checks"].items() if not check["ok"]} == set()
    figures = json.loads((run / "verdict.json").read_text())["figures"]
    assert found["packets"]["total"] == figures["capture"]["packets"]
    assert found["packets"]["capture_errors"] == 0
    rows = pq.read_table(run / "agents" / "records.parquet").to_pylist()
    said = Counter(row["what"] for row in rows)
    events = found["events"]
    assert (events["published"], events["received"]) == (20, said["event_received"])
    assert events["delivered"] + events["own"] == said["delivered"]
    sent = sum(json.loads(row["values"])["sent"] for row in rows if row["what"] == "agent_ended")
    assert found["messages"]["sent"] == sent
    messages = rows_of(
        spark.read.parquet(str(run / "analysis" / "tables" / "messages")).where("event_id > 0")
    )
    assert all(row["links"] == row["links_expected"] for row in messages)
    # On the run's clock, a message is stamped, then enters the network, then arrives.
    assert all(row["sent_us"] - 50 <= row["first_us"] < row["arrived_us"] for row in messages)
    assert found["rdp"]["mean"] > 0.99
    delays = found["checks"]["delays_agree"]
    assert delays["expected"] == found["rdp"]["count"] == found["rdp_of_packets"]["count"]
    assert abs(delays["difference_us"]["mean"]) < 0.1 * delays["records_us"]["mean"]

    bare = analyze_captures(spark, [run / "captures"], tmp_path / "bare")
    assert bare["packets"]["total"] == found["packets"]["total"]
    assert bare["packets"]["ours"] == found["packets"]["ours"]
    assert bare["capture_errors"] == {}

    dead = shutil.copytree(run, tmp_path / "dead.partial")
    (dead / "verdict.json").unlink()  # has the clocks and the run's id
    partial = analyze_run(spark, dead)
    assert "senders' stamps" in partial["notes"]["analysis"]
    again = partial["checks"].pop("delays_agree")  # by another clock, and not how late agents were
    assert again["expected"] == found["checks"].pop("delays_agree")["expected"]
    for name in ("link_stress", "packets", "messages", "checks"):
        assert partial[name] == found[name]
