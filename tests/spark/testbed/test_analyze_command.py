"""Where `tdo analyze` writes the tables of captures without a run."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError
from testbed.cli import main
from testbed.commands.analyze import analyze_apart
from tests.fixtures.capture_files import PLAIN, pcap


@pytest.fixture
def traces(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two captures, and another capture beside it."""
    monkeypatch.setattr("analysis.spark.session.open_session", lambda *_, **__: nullcontext(spark))
    for name, packets in (("d/a.pcap", 1), ("d/b.pcap", 2), ("e/a.pcap", 4)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(pcap([PLAIN] * packets))
    return tmp_path


def packets_in(out: Path) -> int:
    found: int = json.loads((out / "metrics.json").read_text())["packets"]["total"]
    return found


def test_each_capture_has_its_own_tables(traces: Path) -> None:
    for name in ("d/a.pcap", "d/b.pcap", "e/*.pcap", "d"):
        assert main(["analyze", str(traces / name)]) == 0
    counts = {
        str(file.parent.relative_to(traces)): packets_in(file.parent)
        for file in traces.rglob("metrics.json")
    }
    assert counts == {
        "d/a.pcap-analysis": 1, "d/b.pcap-analysis": 2, "e/a.pcap-analysis": 4, "d/analysis": 3,
    }  # fmt: skip


def test_captures_of_several_folders_require_an_output_folder(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pattern = str(traces / "*" / "a.pcap")
    assert main(["analyze", pattern]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "expected files of one folder, found some in" in line and "--out" in line
    assert {path.name for path in traces.iterdir()} == {"d", "e"}
    assert main(["analyze", pattern, "--out", str(traces / "out")]) == 0
    assert packets_in(traces / "out") == 5


def test_tables_of_other_captures_are_not_removed(
    traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = traces / "out"
    assert main(["analyze", str(traces / "d/a.pcap"), "--out", str(out)]) == 0
    assert main(["analyze", str(traces / "d"), "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["analyze", str(traces / "d/a.pcap"), "--out", str(out)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "expected no such folder, or tables of these captures, found those of b.pcap" in line
    assert packets_in(out) == 3


def test_an_analysis_in_another_process_reports_why_it_failed(tmp_path: Path) -> None:
    with pytest.raises(AnalysisError, match=r"found: .*expected a run directory or captures"):
        analyze_apart(tmp_path / "none")
