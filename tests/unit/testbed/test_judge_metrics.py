"""Metrics of packets and records change the verdict of a run."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.commands.analyze import note_lines
from testbed.run.reasons import Reason, Severity, emulation_reasons
from testbed.run.verdict import Verdict, is_judged, judge_metrics, verdict_document
from topologies.hosts import make_lossy
from topologies.underlay_file import save_underlay
from topologies.waxman import generate_waxman

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
    named = written.pop("named_reasons")
    assert [reason["text"] for reason in named] == reasons
    assert {reason["by"] for reason in named} <= {"analysis"}
    added = {"verdict": verdict, "reasons": reasons, "reasons_by_analysis": reasons}
    assert written == before | added


def test_repeated_messages_are_no_reason_if_links_lose_packets(tmp_path: Path) -> None:
    write_verdict(tmp_path, "valid")
    underlay = generate_waxman(6, seed=1)
    save_underlay(underlay, tmp_path / "underlay.json")
    assert judge_metrics(tmp_path, GOOD | LATE) != Verdict("valid", ())
    save_underlay(make_lossy(underlay, 1.0), tmp_path / "underlay.json")
    assert judge_metrics(tmp_path, GOOD | LATE) == Verdict("valid", ())


@pytest.mark.parametrize(
    ("backend", "verdict"), [("simulation", "valid"), ("emulation", "degraded")]
)
def test_no_simulated_delivery_is_late(tmp_path: Path, backend: str, verdict: str) -> None:
    write_verdict(tmp_path, "valid")
    (tmp_path / "run.json").write_text(json.dumps({"experiment": {"backend": backend}}))
    judged = judge_metrics(tmp_path, GOOD | LATE)
    assert judged is not None and judged.verdict == verdict


def test_a_run_is_judged_at_each_analysis(tmp_path: Path) -> None:
    write_verdict(tmp_path, "degraded", "links were late")
    first = judge_metrics(tmp_path, BROKEN)
    assert first is not None and (first.verdict, len(first.reasons)) == ("invalid", 2)
    assert judge_metrics(tmp_path, BROKEN) == first
    assert judge_metrics(tmp_path, GOOD) == Verdict("degraded", ("links were late",))


def test_a_run_without_a_verdict_file_gets_none(tmp_path: Path) -> None:
    assert judge_metrics(tmp_path, BROKEN) is None
    assert not is_judged(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_reasons_have_names_and_the_worst_is_the_verdict(tmp_path: Path) -> None:
    own = Reason("links-late", Severity.DEGRADED, "links were late")
    document = verdict_document([own], {"messages": 7})
    assert (document["verdict"], document["reasons"]) == ("degraded", ["links were late"])
    (tmp_path / "verdict.json").write_text(json.dumps(document))
    judge_metrics(tmp_path, BROKEN)
    written = json.loads((tmp_path / "verdict.json").read_text())
    found = [(one["name"], one["severity"], one["by"]) for one in written["named_reasons"]]
    assert found == [
        ("links-late", "degraded", "run"), ("check-copies_sent", "invalid", "analysis"),
    ]  # fmt: skip
    assert (written["verdict"], written["figures"]) == ("invalid", {"messages": 7})


def test_a_reason_of_the_run_remains_if_the_analysis_has_the_same_text(tmp_path: Path) -> None:
    """Texts are not compared: the same text from two origins is two reasons."""
    judge_metrics_of = BROKEN["checks"]
    text = "packets and records disagree on copies_sent: expected 3, found 2; do not use the metrics of this run"  # noqa: E501
    own = Reason("of-run", Severity.DEGRADED, text)
    (tmp_path / "verdict.json").write_text(json.dumps(verdict_document([own], {})))
    judge_metrics(tmp_path, {"checks": judge_metrics_of})
    judge_metrics(tmp_path, GOOD)
    written = json.loads((tmp_path / "verdict.json").read_text())
    assert (written["verdict"], written["reasons"]) == ("degraded", [text])


def test_late_timers_and_packets_degrade_a_run() -> None:
    lags = {"lag": {"mean_us": 100}, "datagram_lag": {"mean_us": 100}}
    on_time = {"links": {"forwarded": 100, "late": 0}, "processes": [lags], "stolen_share": 0.01}
    assert emulation_reasons(on_time) == emulation_reasons(on_time | {"stolen_share": 0.2}) == []
    for key, what in (("lag", "timers"), ("datagram_lag", "datagrams")):
        (reason,) = emulation_reasons(on_time | {"processes": [lags | {key: {"mean_us": 9_000}}]})
        assert f"the {what} of a process were 9.0 ms late on average" in reason.text
    (reason,) = emulation_reasons(on_time | {"links": {"forwarded": 100, "late": 5}})
    assert "5.0 % of the packets left a link over 1 ms late" in reason.text
    late = {"links": {"forwarded": 100, "late": 5}, "stolen_share": 0.2}
    assert "took 20 % of its processor time" in emulation_reasons(on_time | late)[1].text


def test_metrics_with_the_same_note_share_a_line() -> None:
    none = "no event was published"
    notes = {
        "rdp": none,
        "delivery": none,
        "events": none,
        "warm_up": none,
        "packets": "no capture",
    }
    assert list(note_lines(notes)) == [
        f"Deliveries, Events, RDP and 1 more: {none}",
        "Packets: no capture",
    ]
