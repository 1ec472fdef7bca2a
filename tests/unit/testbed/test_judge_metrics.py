"""What packets and records say together changes the verdict on a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.run.verdict import Verdict, is_judged, judge_metrics

GOOD = {"checks": {"copies_sent": {"ok": True, "expected": 3, "found": 3}}, "recovery": None}
BROKEN = {"checks": {"copies_sent": {"ok": False, "expected": 3, "found": 2}}}
LATE = {"rdp": {"p50": 3.0}, "rdp_of_paths": {"p50": 2.0}}
FAULTS = {"recovery": {"faults": [{"what": ["kill-agent h1"], "late": 7}]}}


def write_verdict(run: Path, verdict: str, *reasons: str) -> dict[str, Any]:
    document = {"verdict": verdict, "reasons": list(reasons), "figures": {"messages": 7}}
    (run / "verdict.json").write_text(json.dumps(document))
    return document


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
    before = write_verdict(tmp_path, "valid")
    assert not is_judged(tmp_path)
    judged = judge_metrics(tmp_path, metrics)
    assert is_judged(tmp_path)
    assert judged is not None and judged.verdict == verdict
    assert bool(judged.reasons) == (verdict != "valid")
    written = json.loads((tmp_path / "verdict.json").read_text())
    reasons = list(judged.reasons)
    added = {"verdict": verdict, "reasons": reasons, "reasons_by_analysis": reasons}
    assert written == before | added


def test_a_run_is_judged_anew_each_time_it_is_analysed(tmp_path: Path) -> None:
    write_verdict(tmp_path, "degraded", "links were late")
    first = judge_metrics(tmp_path, BROKEN)
    assert first is not None and (first.verdict, len(first.reasons)) == ("invalid", 2)
    assert judge_metrics(tmp_path, BROKEN) == first
    assert judge_metrics(tmp_path, GOOD) == Verdict("degraded", ("links were late",))


def test_a_run_without_a_verdict_is_given_none(tmp_path: Path) -> None:
    assert judge_metrics(tmp_path, BROKEN) is None
    assert not is_judged(tmp_path)
    assert list(tmp_path.iterdir()) == []
