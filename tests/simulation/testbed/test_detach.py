"""Detached runs continue without their terminal, and report their state and why they failed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.cli import main
from testbed.detached.state import RunFolder

TDO = str(Path(sys.executable).with_name("tdo"))
PATIENCE_S = 180.0
LONG = """
name = "long"
backend = "simulation"
duration_s = 100_000_000
[overlay]
kind = "gossip"
epochs = 100_000_000  # so that there is always something to do
"""
SHORT = "name = 'short'\nbackend = 'simulation'\nduration_s = 2\n"


def start(folder: Path, text: str, *options: str) -> dict[str, Any]:
    """Start a detached run from a session that then ends with all its processes."""
    (folder / "file.toml").write_text(text)
    words = [TDO, "run", "file.toml", "--no-report", "--detach", "--json", *options]
    starter = subprocess.Popen(
        words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    said, _ = starter.communicate(timeout=PATIENCE_S)
    assert starter.returncode == 0, said
    with pytest.raises(ProcessLookupError):  # no process of that session is left
        os.killpg(starter.pid, signal.SIGHUP)
    outcome: dict[str, Any] = json.loads(said.splitlines()[-1])
    assert os.getsid(outcome["pid"]) != starter.pid
    return outcome


def status(capsys: pytest.CaptureFixture[str], results: Path, *arguments: str) -> dict[str, Any]:
    """The output of `tdo status`."""
    capsys.readouterr()
    assert main(["status", *arguments, "--out", str(results), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return found


def wait_for(folder: RunFolder, *phases: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (found := folder.status()).phase not in phases:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


@pytest.fixture
def long_run(tmp_path: Path) -> Iterator[tuple[RunFolder, dict[str, Any]]]:
    """A run that continues until it is killed, and has begun to record."""
    started = start(tmp_path, LONG)
    folder = RunFolder(tmp_path / "results" / ".runs" / started["id"])
    try:
        wait_for(folder, "running")
        yield folder, started
    finally:
        for pid in (started["pid"], os.getsid(started["pid"]) if _exists(started["pid"]) else 0):
            if pid and _exists(pid):
                os.kill(pid, signal.SIGKILL)


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_detached_run_ends_by_itself_and_leaves_its_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = start(tmp_path, SHORT, "--id", "mine")
    wait_for(RunFolder(tmp_path / "results" / ".runs" / "mine"), "finished", "failed", "died")
    found = status(capsys, tmp_path / "results", "mi")
    assert (started["id"], found["phase"], found["verdict"]) == ("mine", "finished", "valid")
    assert json.loads(Path(found["directory"], "verdict.json").read_text())["verdict"] == "valid"
    listed = status(capsys, tmp_path / "results")["runs"]
    assert [run["id"] for run in listed] == ["mine"]
    assert main(["status", "other", "--out", str(tmp_path / "results")]) == 2
    again = [TDO, "run", "file.toml", "--no-report", "--detach", "--id", "mine"]
    refused = subprocess.run(again, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert refused.returncode == 2 and "found one in use" in refused.stderr


def test_a_killed_run_is_reported(
    long_run: tuple[RunFolder, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, started = long_run
    results = folder.path.parents[1]
    found = status(capsys, results, started["id"])
    assert found["phase"] == "running" and found["directory"].endswith(".partial")
    os.kill(started["pid"], signal.SIGKILL)
    wait_for(folder, "died")
    assert status(capsys, results, started["id"])["died"] == "killed by SIGKILL"
    assert main(["status", "--out", str(results)]) == 0
    assert "killed by SIGKILL" in capsys.readouterr().out


def test_a_run_survives_its_keeper_and_ends_on_request(
    long_run: tuple[RunFolder, dict[str, Any]],
) -> None:
    folder, started = long_run
    keeper = os.getsid(started["pid"])
    os.kill(keeper, signal.SIGTERM)  # The keeper passes the signal on.
    wait_for(folder, "failed")
    assert "ended by a signal" in str(folder.status().died)

    other = start(folder.path.parents[2], LONG, "--id", "orphan")
    orphan = RunFolder(folder.path.with_name("orphan"))
    wait_for(orphan, "running")
    os.kill(os.getsid(other["pid"]), signal.SIGKILL)
    assert orphan.status().phase == "running"
    os.kill(other["pid"], signal.SIGKILL)
    wait_for(orphan, "died")
    assert "the process that watched it, too" in str(orphan.status().died)


def test_a_run_with_a_full_disk_reports_how_it_ended(tmp_path: Path) -> None:
    disk = tmp_path / "results"
    disk.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(disk)]
    if subprocess.run(words, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs to mount a small disk")
    try:
        started = start(tmp_path, LONG)
        folder = RunFolder(disk / ".runs" / started["id"])
        wait_for(folder, "failed", "died")
        assert folder.status().exit_status == 1
        assert "the disk is full" in str(folder.status().died)
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
