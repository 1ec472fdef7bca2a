"""A run whose evidence cannot be read is never valid, and the reason names the file."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.metrics.checks import judge_check
from analysis.metrics.file import measure_run
from testbed.cli import main
from testbed.run.verdict import judge_metrics
from tests.fixtures.content_runs import run_small

FIXTURES = Path(__file__).parents[2] / "fixtures"
CAPTURE = "captures/packets-000.pcapng.gz"
Harm = Callable[[Path], object]


def damage(file: Path) -> None:
    file.write_bytes(b"garbage, and not even much of it")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small(tmp_path_factory.mktemp("results"), duration_s=14.0)


def verdict_after(run: Path) -> tuple[str, list[str]]:
    judge_metrics(run, measure_run(run))
    verdict = json.loads((run / "verdict.json").read_text())
    found = [one["text"] for one in verdict["named_reasons"] if one["name"] == "file-unreadable"]
    return verdict["verdict"], found


@pytest.mark.parametrize("harm", [damage, cut, Path.unlink])
@pytest.mark.parametrize(
    "name",
    ["run.json", "underlay.json", "agents/records.parquet", "packets/packets.parquet",
     "workload/matches.parquet"],
)  # fmt: skip
def test_what_a_simulated_run_promises_has_to_be_readable(
    name: str, harm: Harm, whole: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    assert verdict_after(run) == ("valid", [])
    harm(run / name)
    verdict, reasons = verdict_after(run)
    assert verdict == "invalid" and len(reasons) == 1
    assert reasons[0].startswith(f"{name}: ") and "expected" in reasons[0]


@pytest.mark.parametrize("harm", [damage, Path.unlink])
def test_what_an_emulated_run_promises_has_to_be_readable(harm: Harm, tmp_path: Path) -> None:
    run = shutil.copytree(FIXTURES / "format-1-emulation", tmp_path / "run")
    assert verdict_after(run)[1] == []
    harm(run / CAPTURE)
    verdict, reasons = verdict_after(run)
    assert verdict == "invalid" and len(reasons) == 1 and reasons[0].startswith("captures/")


def test_without_capture_and_before_the_end_a_run_promises_less(tmp_path: Path) -> None:
    run = run_small(tmp_path / "none", capture="none", duration_s=14.0)
    assert verdict_after(run) == ("valid", [])
    partial = shutil.copytree(run, tmp_path / "run.partial")
    (partial / "agents" / "records.parquet").unlink()
    (partial / "agents" / "simulation.jsonl").touch()
    assert "unreadable" not in measure_run(partial)


def test_a_check_over_nothing_is_not_applicable() -> None:
    assert judge_check({"expected": 0, "found": 0})["ok"] is None
    assert judge_check({"expected": 0, "found": 1})["ok"] is False
    assert judge_check({"expected": 0, "found": 0, "differing": 2})["ok"] is False


@pytest.mark.parametrize("content", [b"{}", bytes(range(256)) * 8, b""])
def test_what_is_no_capture_is_refused_at_once(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No session is started, which would take seconds: the tests' own is not even asked for."""
    file = tmp_path / "some.pcap"
    file.write_bytes(content)
    assert main(["analyze", str(file)]) == 2
    error = capsys.readouterr().err
    assert str(file) in error and "expected a run directory or a capture" in error
    assert not (tmp_path / "some.pcap-analysis").exists()


@pytest.mark.parametrize(("verdict", "status"), [("valid", 0), ("degraded", 3), ("invalid", 3)])
def test_the_status_of_a_report_is_that_of_the_verdict(
    verdict: str, status: int, whole: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    document = json.loads((run / "verdict.json").read_text())
    (run / "verdict.json").write_text(json.dumps(document | {"verdict": verdict}))
    assert main(["report", str(run)]) == status
