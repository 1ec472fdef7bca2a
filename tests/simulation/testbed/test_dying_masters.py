"""Exactly-once delivery while peers crash, links lose packets and masters are killed."""

from pathlib import Path

import pytest

from analysis.metrics.file import measure_run
from analysis.run_directory import open_run
from testbed.run.verdict import judge_metrics
from tests.fixtures.content_runs import run_small

_WORKLOAD = {
    "kind": "topics-zipf", "topics": 8, "topics_per_peer": [1, 4], "events": 225,
    "rate_per_s": 5.0, "start_s": 20.0, "crashes_per_min": 0.2, "return_after_s": [8, 20],
}  # fmt: skip


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_new_epochs_of_new_masters_lose_and_repeat_no_event(seed: int, tmp_path: Path) -> None:
    kills = [
        {"at_s": at_s, "action": "kill-agent", "target": "lowest-address"} for at_s in (30.1, 45.1)
    ]
    run = run_small(
        tmp_path, seed=seed, overlay={"kind": "beaconvey", "collect_s": 3, "replan_s": 12},
        routing={}, pubsub={"kind": "beaconvey"}, workload=_WORKLOAD, fault=kills, duration_s=90.0,
        topology={"kind": "waxman", "routers": 12, "hosts": 12, "loss_percent": 2.0},
    )  # fmt: skip
    metrics = measure_run(run)
    verdict = judge_metrics(run, metrics)
    assert verdict is not None and verdict.verdict == "valid", verdict
    assert metrics["guarantee"]["missing"] == metrics["guarantee"]["repeated"] == 0
    assert metrics["delivery"]["expected"] > 400
    assert len({row.host for row in open_run(run).records.rows("epoch_planned")}) > 1
