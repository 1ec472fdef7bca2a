"""Computations on Spark: on cores, on a cluster, and after lost workers and killed commands."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from analysis.claims import Computation, find_claims, paper_of
from testbed.commands.carriers import carry_in_session
from testbed.sweeps.computations import play_computation
from testbed.sweeps.points import compute_here
from tests.fixtures.claim_runs import reproduce_here
from tests.fixtures.spark_cluster import QUICK_JAVA, standalone_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
TDO = [sys.executable, "-c", "import sys; from testbed.cli import main; sys.exit(main())"]
ENVIRONMENT = os.environ | QUICK_JAVA


def where(seed: int, size: int) -> dict[str, Any]:
    time.sleep(0.3)
    return {"process": os.getpid(), "sum": size + seed}


def without_times(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in ("wall_s", "process")}


def test_points_on_two_cores_have_the_same_rows(tmp_path: Path, spark: "SparkSession") -> None:
    some = Computation("where", where, {"size": (10, 20)}, (1, 2, 3))
    rows, _ = play_computation(some, tmp_path / "spark", partial(carry_in_session, spark, 2), print)
    here, _ = play_computation(some, tmp_path / "here", compute_here, print)
    assert list(map(without_times, rows)) == list(map(without_times, here))
    assert len({row["process"] for row in here}) == 1
    assert len({row["process"] for row in rows}) == 2


def test_a_lost_worker_costs_only_its_point(tmp_path: Path, spark: "SparkSession") -> None:
    tries = tmp_path / "tries"
    tries.mkdir()

    def perish(seed: int, folder: str) -> dict[str, Any]:
        before = len(list(Path(folder).glob(f"{seed}-*")))
        Path(folder, f"{seed}-{before}").touch()
        if seed == 3 or (seed == 2 and before == 0):
            os.kill(os.getpid(), signal.SIGKILL)
        if seed == 4:
            raise RuntimeError("never")
        return {"value": seed}

    some = Computation("perish", perish, {"folder": (str(tries),)}, (1, 2, 3, 4))
    rows, _ = play_computation(some, tmp_path, partial(carry_in_session, spark, 2), print)
    assert [row["verdict"] for row in rows] == ["valid", "valid", "failed", "failed"]
    assert rows[2]["error"] and rows[3]["error"] == "RuntimeError: never"
    assert Counter(path.name[0] for path in tries.iterdir()) == {"1": 1, "2": 2, "3": 3, "4": 3}
    assert len(list((tmp_path / "perish" / "points").iterdir())) == 2


@pytest.mark.slow
def test_a_killed_command_continues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    points = tmp_path / "waxman-networks" / "points"
    command = [*TDO, "reproduce", "G1", "--out", str(tmp_path), "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=ENVIRONMENT) as process:
        deadline = time.monotonic() + 150
        while not list(points.glob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    done = {path: path.stat().st_ino for path in points.glob("*.json")}
    assert 0 < len(done) < 30
    assert reproduce_here(tmp_path, "G1") == 0
    said = capsys.readouterr().out
    assert f"30 points, {len(done)} of them done before, {30 - len(done)} to do" in said
    assert {path: path.stat().st_ino for path in done} == done


@pytest.mark.slow
def test_a_cluster_has_the_same_result(tmp_path: Path) -> None:
    # Its workers cannot import the testbed from this checkout, only the packages sent to them.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
    )
    changes = ["--set", "seed=[1, 2, 3]"]
    command = [*TDO, "reproduce", "G2", *changes, "--out", str(tmp_path / "out"), "--json"]
    with standalone_cluster(tmp_path, {"PYTHONPATH": str(tmp_path)}) as master:
        done = subprocess.run(
            [*command, "--master", master],
            capture_output=True, text=True, timeout=240, cwd=ROOT, env=ENVIRONMENT, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (claim,) = json.loads(done.stdout.splitlines()[-1])["claims"]
    (known,) = find_claims(["G2"])
    computation = paper_of(known).catalogue.computations[1].change({"seed": [1, 2, 3]})
    rows, _ = play_computation(computation, tmp_path / "here", compute_here, print)
    deciding = [row["hops.mean"] for row in rows if row["routers"] == 1584]
    assert claim["runs"] == len(deciding) == 3
    assert f"mean hops {sum(deciding) / 3:.2f} [" in claim["ours"]
    assert all(list((tmp_path / f"work{number}").glob("app-*/*")) for number in (1, 2))
