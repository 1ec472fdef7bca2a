"""Lost and repeated deliveries change the verdict if exactly-once delivery is guaranteed."""

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agents.kinds import LAYERS
from agents.pubsub.content.forwarder import Content
from analysis.metrics.file import measure_run
from testbed.run.verdict import Verdict, judge_metrics
from tests.fixtures.content_runs import run_small

LEAKY = "tests.fixtures.leaky_content"


def judged(results: Path, **changes: Any) -> tuple[Path, dict[str, Any], Verdict | None]:
    run = run_small(results, capture="none", **changes)
    metrics = measure_run(run)
    return run, metrics, judge_metrics(run, metrics)


@pytest.mark.parametrize(
    ("kind", "what"), [("LossyContent", "missing"), ("RepeatingContent", "repeated")]
)
def test_a_run_that_breaks_its_guarantee_is_invalid_and_names_event_and_host(
    kind: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LAYERS["pubsub"], "leaky", f"{LEAKY}.{kind}")
    run, metrics, verdict = judged(tmp_path, pubsub={"kind": "leaky"})
    assert verdict is not None and verdict.verdict == "invalid"
    (reason,) = verdict.reasons
    assert f"deliveries are {what}, the first of event 10 at h" in reason
    assert metrics["guarantee"][what] > 0
    named = json.loads((run / "verdict.json").read_text())["named_reasons"]
    assert [one["name"] for one in named] == [f"deliveries-{what}"]


def test_without_a_guarantee_loss_is_only_a_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(LAYERS["pubsub"], "leaky", f"{LEAKY}.LossyContent")
    monkeypatch.setattr(Content, "guarantee", "none")
    _, metrics, verdict = judged(tmp_path, pubsub={"kind": "leaky"})
    assert verdict is not None and verdict.verdict == "valid"
    assert metrics["guarantee"] is None and metrics["notes"]["guarantee"]
    assert metrics["delivery"]["delivered"] < metrics["delivery"]["expected"]


def test_a_run_that_keeps_its_guarantee_is_valid_and_states_the_warm_up(tmp_path: Path) -> None:
    _, metrics, verdict = judged(tmp_path)
    assert verdict is not None and verdict.verdict == "valid"
    assert metrics["guarantee"]["missing"] == metrics["guarantee"]["repeated"] == 0
    assert metrics["warm_up"]["events"] == 0 and 0 < metrics["warm_up"]["until_s"] < 12
    assert metrics["routing_overhead"]["total"] >= metrics["events"]["false_positives"]


def test_events_before_all_agents_are_ready_are_counted_separately(tmp_path: Path) -> None:
    early = {
        "kind": "content-zipf", "subscriptions": 2, "events": 120, "rate_per_s": 10.0,
        "match": 0.3, "start_s": 4.0,
    }  # fmt: skip
    _, metrics, verdict = judged(tmp_path, workload=early)
    assert verdict is not None and verdict.verdict == "valid"
    before = metrics["warm_up"]["events"]
    assert 0 < before < metrics["events"]["published"] == 120
    assert metrics["rdp"]["count"] < metrics["events"]["delivered"]
    assert metrics["delivery"]["expected"] == metrics["delivery"]["delivered"] > 0


def test_a_window_after_the_last_event_degrades_a_run(tmp_path: Path) -> None:
    early = {
        "kind": "content-zipf", "events": 5, "rate_per_s": 10.0, "match": 0.3, "start_s": 2.0,
    }  # fmt: skip
    _, metrics, verdict = judged(tmp_path, workload=early)
    assert verdict is not None and verdict.verdict == "degraded"
    (reason,) = verdict.reasons
    assert "all 5 events were published before the measured window" in reason
    assert metrics["routing_cost"] is None


def test_the_measured_window_begins_at_a_stated_time(tmp_path: Path) -> None:
    run, metrics, verdict = judged(tmp_path, measure_from_s=12.5)
    assert verdict is not None and verdict.verdict == "valid"
    published = pq.read_table(run / "workload" / "publications.parquet")["time_us"].to_numpy()
    assert metrics["warm_up"] == {"events": int((published < 12_500_000).sum()), "until_s": 12.5}
    assert 0 < metrics["warm_up"]["events"] < len(published)
    assert metrics["delivery"]["expected"] > metrics["rdp"]["count"] > 0
