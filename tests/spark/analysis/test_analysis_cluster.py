"""`tdo analyze` on a real standalone cluster; a worker's process is killed during the analysis."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from analysis.analyze import analyze_run
from tests.fixtures.content_runs import run_small
from tests.fixtures.spark_cluster import QUICK_JAVA, standalone_cluster

pytestmark = pytest.mark.slow

_PATIENCE_S = 240.0


def executors_below(folder: Path) -> list[int]:
    """The processes of an application on the workers of the cluster in a folder."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and folder in (process / "cwd").readlink().parents:
                found.append(int(process.name))
        except OSError:
            continue  # ended, or of another user
    return sorted(found)


def analyze_and_kill(run: Path, master: str, folder: Path) -> tuple[dict[str, Any], list[int]]:
    """Analyse a run on the cluster, and kill the executor of one worker during the analysis."""
    command = [sys.executable, "-c", "import sys; from testbed.cli import main; sys.exit(main())"]
    process = subprocess.Popen(
        [*command, "analyze", str(run), "--master", master, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | QUICK_JAVA,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    killed: list[int] = []
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            if "events and deliveries" in line:
                killed = kill_one(folder / "work1")
        assert process.wait(_PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
    metrics: dict[str, Any] = json.loads(lines[-1])
    return metrics, killed


def kill_one(folder: Path) -> list[int]:
    deadline = time.monotonic() + _PATIENCE_S
    while not (found := executors_below(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)  # Some work has begun.
    for number in found[:1]:
        os.kill(number, signal.SIGKILL)
    return found[:1]


def test_a_cluster_that_loses_a_worker_has_the_same_result(
    tmp_path: Path, spark: SparkSession
) -> None:
    here = run_small(tmp_path / "results")
    there = tmp_path / "there"
    shutil.copytree(here, there)
    expected = analyze_run(spark, here)
    cluster = tmp_path / "cluster"
    cluster.mkdir()
    with standalone_cluster(cluster, {}) as master:
        found, killed = analyze_and_kill(there, master, cluster)
        again = [path.name for path in (cluster / "work1").glob("app-*/*")]
    assert killed and len(again) > 1, "expected an executor killed and replaced"
    assert found == expected
