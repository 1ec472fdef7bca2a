"""What packets and records say together changes the verdict on a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.run import Outcome, judge_metrics

GOOD = {"checks": {"copies_sent": {"ok": True, "expected": 3, "found": 3}}, "recovery": None}
BROKEN = {"checks": {"copies_sent": {"ok": False, "expected": 3, "found": 2}}}
LATE = {"rdp": {"p50": 3.0}, "rdp_of_paths": {"p50": 2.0}}
FAULTS = {"recovery": {"faults": [{"what": ["kill-agent h1"], "late": 7}]}}


@pytest.mark.parametrize(
    ("metrics", "verdict"),
    [
        ({}, "valid"),
        (GOOD, "valid"),
        (GOOD | LATE, "degraded"),
        (GOOD | LATE | FAULTS, "valid"),
        (BROKEN | LATE, "invalid"),
    ],
)
def test_a_verdict_follows_from_metrics(
    tmp_path: Path, metrics: dict[str, Any], verdict: str
) -> None:
    judged = judge_metrics(Outcome(tmp_path, "valid", (), {}, 0), metrics)
    assert judged.verdict == verdict
    assert bool(judged.reasons) == (verdict != "valid")
    if judged.reasons:
        assert json.loads((tmp_path / "verdict.json").read_text())["verdict"] == verdict
