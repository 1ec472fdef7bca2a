"""Sweeps on Spark: resumed, retried, counted once, and equal on a cluster."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from importlib.metadata import Distribution, distributions, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from analysis.metrics.file import measure_run
from analysis.spark.tasks import _zip_packages
from testbed.commands.carriers import PACKAGES
from testbed.commands.sweep import carry_runs
from testbed.errors import UsageError
from testbed.run.directory import Origin
from testbed.run.lifecycle import run_at
from testbed.sweeps.directory import SweepDirectory, name_run
from testbed.sweeps.file import Sweep, load_sweep
from testbed.sweeps.rows import Row
from testbed.sweeps.runs import Measure, perform_here, perform_task, play_sweep, write_task
from tests.fixtures.spark_cluster import QUICK_JAVA, standalone_cluster

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
TDO = [sys.executable, "-c", "import sys; from testbed.cli import main; sys.exit(main())"]
ENVIRONMENT = os.environ | QUICK_JAVA
EXAMPLE = ROOT / "experiments" / "gossip-sweep.toml"
SMALL = """
name = "small"
seed = [1, 2]
backend = "simulation"
duration_s = 3
[topology]
routers = 15
hosts = [4, 6]
"""


def small_sweep(folder: Path, text: str = SMALL) -> Sweep:
    (folder / "small.toml").write_text(text)
    return load_sweep(folder / "small.toml")


def play_here(sweep: Sweep, directory: SweepDirectory, measure: Measure | None = None) -> list[Row]:
    return play_sweep(
        sweep,
        directory,
        {"simulation": partial(perform_here, measure=measure)},
        measure is not None,
        lambda _line: None,
    )


def comparable(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row without the values that depend on the machine."""
    return {key: value for key, value in row.items() if key != "wall_s" and value not in (None, "")}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def inodes(directory: SweepDirectory) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in (directory.path / "runs").iterdir()}


def test_a_killed_sweep_continues(tmp_path: Path, spark: "SparkSession") -> None:
    text = SMALL.replace("duration_s = 3", "duration_s = 30").replace("[1, 2]", "[1, 2, 3, 4, 5]")
    sweep = small_sweep(tmp_path, text)
    directory = SweepDirectory.of(sweep, tmp_path)
    runs = directory.path / "runs"
    command = [*TDO, "run", str(tmp_path / "small.toml"), "--out", str(tmp_path), "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=ENVIRONMENT) as process:
        deadline = time.monotonic() + 150
        while not any(runs.glob("*-s?-????????")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    time.sleep(1)  # its workers stop
    done = {name: inode for name, inode in inodes(directory).items() if "partial" not in name}
    assert 0 < len(done) < 10
    (runs / "hosts-4-s5-left.partial").mkdir(exist_ok=True)

    said: list[str] = []
    carrier = carry_runs(spark, 2, None)
    rows = play_sweep(sweep, directory, {"simulation": carrier}, False, said.append)
    assert said[0] == f"10 runs, {len(done)} of them done before, {10 - len(done)} to do"
    assert said[1].startswith(f"done before: {len(done)} of commit ")
    assert len(said) == 2 + 10 - len(done)
    assert [row["path"] for row in rows] == [f"runs/{name_run(e)}" for e in sweep.experiments]
    assert {name: inodes(directory)[name] for name in done} == done
    assert len(inodes(directory)) == 10
    table = read_csv(directory.path / "runs.csv")
    assert Counter((row["seed"], row["topology.hosts"]) for row in table) == {
        (str(seed), hosts): 1 for seed in (1, 2, 3, 4, 5) for hosts in ("4", "6")
    }


def test_a_failed_run_is_retried_and_affects_no_other(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    sweep = small_sweep(tmp_path)
    directory = SweepDirectory.of(sweep, tmp_path)
    tries = tmp_path / "tries"
    tries.mkdir()

    def measure(run: Path) -> dict[str, Any]:
        before = len(list(tries.glob(f"{run.name}*")))
        (tries / f"{run.name}-{before}").touch()
        if run.name.startswith("hosts-4-s1") and before == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if run.name.startswith("hosts-6-s1") and before < 2:
            raise RuntimeError("not yet")
        if run.name.startswith("hosts-4-s2"):
            raise RuntimeError(f"never, said {before}")
        return measure_run(run)

    carrier = carry_runs(spark, 2, measure)
    rows = play_sweep(sweep, directory, {"simulation": carrier}, True, lambda _line: None)
    assert [row["verdict"] for row in rows] == ["valid", "valid", "failed", "valid"]
    assert rows[2]["error"] == "RuntimeError: never, said 2"
    counted = Counter(path.name.rsplit("-", 2)[0] for path in tries.iterdir())
    assert counted == {"hosts-4-s1": 2, "hosts-6-s1": 3, "hosts-4-s2": 3, "hosts-6-s2": 1}
    assert [path.name[:10] for path in (directory.path / "failures").iterdir()] == ["hosts-4-s2"]
    assert [row["verdict"] for row in read_csv(directory.path / "runs.csv")][2] == "failed"

    before = inodes(directory)
    again = play_here(sweep, directory, measure_run)
    assert [row["verdict"] for row in again] == ["valid"] * 4
    assert inodes(directory) == before  # Only the measurement was missing.
    assert not list((directory.path / "failures").glob("*"))


def test_a_run_that_cannot_succeed_is_not_repeated(tmp_path: Path) -> None:
    text = SMALL + '[[fault]]\nat_s = 1\naction = "kill-agent"\ntarget = "h5"'
    sweep = small_sweep(tmp_path, text)
    rows = play_here(sweep, SweepDirectory.of(sweep, tmp_path))
    assert [row["verdict"] for row in rows] == ["failed", "valid", "failed", "valid"]
    assert "expected an agent of this network" in rows[0]["error"]


def test_of_two_attempts_at_a_run_one_is_counted(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    directory = SweepDirectory.of(sweep, tmp_path)
    swept, origin = sweep.experiments[0], Origin(("tdo",), None)
    directory.prepare(sweep, origin)
    final = directory.run_of(swept)
    run_at(final, swept.experiment, "", origin)
    before = inodes(directory)
    run_at(final, swept.experiment, "", origin)  # It did not find the first.
    assert inodes(directory) == before == {final.name: final.stat().st_ino}
    row = json.loads(perform_task(write_task(swept, directory, origin), None))
    assert (row["verdict"], inodes(directory)) == ("valid", before)


def test_only_one_command_at_a_time_works_on_a_sweep(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path)
    directory = SweepDirectory.of(sweep, tmp_path)
    with (
        directory.locked(),
        pytest.raises(UsageError, match="expected no other tdo on this sweep"),
    ):
        play_here(sweep, directory)


def test_the_tables_of_a_sweep_have_the_values_of_its_runs(tmp_path: Path) -> None:
    sweep = small_sweep(tmp_path, SMALL + "[overlay]\nkind = 'hello'")
    directory = SweepDirectory.of(sweep, tmp_path)
    rows = play_here(sweep, directory, measure_run)
    table = pq.read_table(directory.path / "runs.parquet").to_pylist()
    assert [comparable(row) for row in table] == [comparable(row) for row in rows]
    for row in table:
        metrics = json.loads((directory.path / row["path"] / "analysis/metrics.json").read_text())
        assert row["discovered_links"] == metrics["discovered_links"] > 0
        assert row["degree.mean"] == metrics["degree"]["mean"]
    document = json.loads((directory.path / "sweep.json").read_text())
    assert [run["values"]["seed"] for run in document["experiments"]] == [1, 1, 2, 2]
    assert document["versions"]["tdo-testbed"] == version("tdo-testbed")


def test_workers_get_our_packages_and_their_version(tmp_path: Path) -> None:
    file = tmp_path / "packages.zip"
    _zip_packages(file, PACKAGES, "tdo-testbed")
    found: list[Distribution] = list(distributions(name="tdo-testbed", path=[str(file)]))
    assert [distribution.version for distribution in found] == [version("tdo-testbed")]
    script = "import testbed.sweeps.runs, analysis.metrics.overlay as m; print(m.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(file)!r}); {script}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout.startswith(str(file))


def test_a_cluster_has_the_same_result(tmp_path: Path, spark: "SparkSession") -> None:
    # Its workers cannot import the testbed from this checkout, only the packages sent to them.
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]\n"
    )
    shared = tmp_path / "shared"
    with standalone_cluster(tmp_path, {"PYTHONPATH": str(tmp_path)}) as master:
        command = [*TDO, "run", str(EXAMPLE), "--master", master, "--out", str(shared), "--json"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=240,
            cwd=ROOT,
            env=ENVIRONMENT,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert (outcome["runs"], outcome["verdicts"]) == (18, {"valid": 18})
    assert [Path(file).name for file in outcome["figures"]] == [
        "messages.svg", "messages.png", "messages.csv",
    ]  # fmt: skip
    workers = [list((tmp_path / f"work{number}").glob("app-*/*")) for number in (1, 2)]
    assert all(workers)  # Both took part.

    sweep = load_sweep(EXAMPLE)
    # The figures on the driver are for people; the rows suffice here.
    local = SweepDirectory.of(sweep, tmp_path / "local")
    carrier = carry_runs(spark, 2, measure_run)
    play_sweep(replace(sweep, figures=()), local, {"simulation": carrier}, True, lambda _: None)
    here, there = (read_csv(Path(folder, "runs.csv")) for folder in (local.path, outcome["path"]))
    assert [comparable(row) for row in here] == [comparable(row) for row in there]
