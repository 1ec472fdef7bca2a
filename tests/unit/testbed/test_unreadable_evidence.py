"""A run with unreadable evidence is never valid, and the reason names the file."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.captures import Split, read_both
from analysis.captures.problems import errors_batch
from analysis.metrics.checks import judge_check
from analysis.metrics.file import measure_run
from analysis.parquet_files import why_unreadable
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


def flip(file: Path) -> None:
    """Change bytes in the middle, as on a bad disk; the Parquet footer remains valid."""
    content = bytearray(file.read_bytes())
    middle = slice(len(content) // 3, len(content) // 2)
    content[middle] = bytes(byte ^ 0xA5 for byte in content[middle])
    file.write_bytes(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_small(tmp_path_factory.mktemp("results"), duration_s=14.0)


def verdict_after(run: Path) -> tuple[str, list[str]]:
    judge_metrics(run, measure_run(run))
    verdict = json.loads((run / "verdict.json").read_text())
    found = [one["text"] for one in verdict["named_reasons"] if one["name"] == "file-unreadable"]
    return verdict["verdict"], found


@pytest.mark.parametrize("harm", [damage, cut, flip, Path.unlink])
@pytest.mark.parametrize(
    "name",
    ["run.json", "verdict.json", "underlay.json", "agents/records.parquet",
     "packets/packets.parquet", "workload/matches.parquet"],
)  # fmt: skip
def test_the_evidence_of_a_simulated_run_must_be_readable(
    name: str, harm: Harm, whole: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    assert verdict_after(run) == ("valid", [])
    harm(run / name)
    verdict, reasons = verdict_after(run)
    assert verdict == "invalid" and len(reasons) == 1
    again, (reason,) = verdict_after(run)
    assert again == "invalid" and reason.startswith(f"{name}: ")
    assert reasons[0].startswith(f"{name}: ") and "expected" in reasons[0]
    assert len(json.loads((run / "verdict.json").read_text())["reasons"]) == 1  # No check fails.


def test_damage_to_any_byte_of_the_records_is_found(whole: Path, tmp_path: Path) -> None:
    """Most damage leaves Parquet that can be decoded, but to other values."""
    file = Path(shutil.copy(whole / "agents" / "records.parquet", tmp_path))
    content = file.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    damaged = bytearray(content)
    unnoticed = 0
    places = range(4, footer, 31)
    for place in places:
        damaged[place] ^= 0x5A
        file.write_bytes(damaged)
        unnoticed += why_unreadable(file) is None
        damaged[place] = content[place]
    # Headers of pages have no checksum, and no reader uses parts of them.
    assert unnoticed < 0.1 * len(places)


@pytest.mark.parametrize("harm", [damage, Path.unlink])
def test_the_evidence_of_an_emulated_run_must_be_readable(harm: Harm, tmp_path: Path) -> None:
    run = shutil.copytree(FIXTURES / "format-1-emulation", tmp_path / "run")
    assert verdict_after(run)[1] == []
    harm(run / CAPTURE)
    verdict, reasons = verdict_after(run)
    assert verdict == "invalid" and len(reasons) == 1 and reasons[0].startswith("captures/")


def test_damage_inside_a_capture_is_named(tmp_path: Path) -> None:
    run = shutil.copytree(FIXTURES / "format-1-emulation", tmp_path / "run")
    cut(run / CAPTURE)
    split = Split(str(run / CAPTURE))
    found = [problem for _, problems in read_both(split) for problem in problems]
    table = run / "analysis" / "tables" / "capture_errors"
    table.mkdir(parents=True, exist_ok=True)
    rows = pa.Table.from_batches([errors_batch(split.path, found)])
    pq.write_table(rows, table / "part-0.parquet")
    verdict, reasons = verdict_after(run)
    assert verdict == "invalid" and len(reasons) == 1
    assert reasons[0].startswith(f"{CAPTURE}: cut short")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ({"files": 2, "bytes": 0}, "captures/packets-001.pcapng: expected the file, found none"),
        ({"files": 1, "bytes": 10**9}, "captures/: expected 1,000,000,000 bytes"),
    ],
)
def test_captures_must_have_their_original_number_and_size(
    written: dict[str, int], reason: str, tmp_path: Path
) -> None:
    run = shutil.copytree(FIXTURES / "format-1-emulation", tmp_path / "run")
    plain = (run / CAPTURE).with_suffix("")
    plain.write_bytes(gzip.decompress((run / CAPTURE).read_bytes()))
    (run / CAPTURE).unlink()
    document = json.loads((run / "verdict.json").read_text())
    document["figures"]["capture"] |= written
    (run / "verdict.json").write_text(json.dumps(document))
    ((_, (found,)),) = [verdict_after(run)]
    assert found.startswith(reason)


def test_without_capture_and_before_the_end_a_run_must_have_less_evidence(tmp_path: Path) -> None:
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
def test_a_file_that_is_no_capture_is_refused_at_once(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No Spark session starts, which would take seconds; the tests' session is not requested."""
    file = tmp_path / "some.pcap"
    file.write_bytes(content)
    assert main(["analyze", str(file)]) == 2
    error = capsys.readouterr().err
    assert str(file) in error and "expected a run directory or a capture" in error
    assert not (tmp_path / "some.pcap-analysis").exists()


@pytest.mark.parametrize(("verdict", "status"), [("valid", 0), ("degraded", 3), ("invalid", 3)])
def test_the_exit_status_of_a_report_follows_the_verdict(
    verdict: str, status: int, whole: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    document = json.loads((run / "verdict.json").read_text())
    (run / "verdict.json").write_text(json.dumps(document | {"verdict": verdict}))
    assert main(["report", str(run)]) == status
