"""Whole runs of Scribe and iScribe on the ring overlay with crashes and packet loss."""

from pathlib import Path
from typing import Any

import pytest

from analysis.metrics.file import measure_run
from testbed.run.verdict import judge_metrics
from tests.fixtures.content_runs import run_small

CHURN: dict[str, Any] = {
    "duration_s": 55.0, "capture": "none",
    "topology": {"kind": "waxman", "routers": 12, "hosts": 12, "loss_percent": 2.0},
    "overlay": {"kind": "ring"},
    "routing": None,
    "workload": {
        "kind": "topics-uniform", "topics": 4, "topics_per_peer": 2, "events": 40,
        "rate_per_s": 2.0, "start_s": 15.0, "crashes_per_min": 0.5, "return_after_s": [6, 12],
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "seed"), [("scribe", 1), ("iscribe", 3)])
def test_peers_that_stay_get_each_event_once_under_churn(
    kind: str, seed: int, tmp_path: Path
) -> None:
    run = run_small(tmp_path, **CHURN, pubsub={"kind": kind}, seed=seed)
    metrics = measure_run(run)
    verdict = judge_metrics(run, metrics)
    assert verdict is not None and verdict.verdict == "valid", verdict
    delivery = metrics["delivery"]
    assert delivery["expected"] == delivery["delivered"] > 50
    assert delivery["unsteady_expected"] > 0  # of hosts that crashed soon after
    assert metrics["guarantee"]["promised"] == "exactly-once"
