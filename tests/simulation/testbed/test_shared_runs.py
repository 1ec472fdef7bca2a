"""Sweeps that have runs in common."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from analysis.metrics.file import measure_run
from testbed.sweeps.directory import SweepDirectory, find_runs
from testbed.sweeps.file import load_sweep
from testbed.sweeps.rows import Row
from testbed.sweeps.runs import perform_here, play_sweep

TEXT = """
seed = 1
backend = "simulation"
duration_s = 3
[topology]
routers = 15
hosts = {hosts}
"""
NONE: Mapping[str, Path] = MappingProxyType({})


def play(
    folder: Path, name: str, hosts: list[int], elsewhere: Mapping[str, Path] = NONE
) -> tuple[list[Row], dict[str, Path], list[str]]:
    """The rows, the runs by digest, and the output."""
    file = folder / f"{name}.toml"
    file.write_text(TEXT.format(hosts=hosts))
    sweep, said = load_sweep(file), list[str]()
    directory = SweepDirectory.of(sweep, folder)
    carriers = {"simulation": partial(perform_here, measure=measure_run)}
    rows = play_sweep(sweep, directory, carriers, True, said.append, elsewhere=elsewhere)
    return rows, {swept.digest: directory.run_of(swept) for swept in sweep.experiments}, said


def test_runs_of_another_sweep_are_reused(tmp_path: Path) -> None:
    rows, runs, _ = play(tmp_path, "one", [4, 6])
    others, copies, said = play(tmp_path, "other", [6, 8], runs)
    assert said[0] == "2 runs, 1 of them done before, 1 to do"
    assert others[0] == rows[1]  # including the time that they took
    assert [row["topology.hosts"] for row in others] == [6, 8]
    (digest,) = runs.keys() & copies.keys()
    assert (copies[digest] / "run.json").read_bytes() == (runs[digest] / "run.json").read_bytes()


def test_only_valid_runs_of_sweeps_are_found(tmp_path: Path) -> None:
    _, runs, _ = play(tmp_path, "one", [4, 6])
    assert find_runs(tmp_path) == runs
    (_, run), (other, _) = runs.items()
    (run / "verdict.json").write_text(json.dumps({"verdict": "degraded"}))
    assert find_runs(tmp_path) == {other: runs[other]}


def test_commits_of_runs_are_stated_also_if_runs_are_missing(tmp_path: Path) -> None:
    _, runs, said = play(tmp_path, "one", [4, 6])
    assert not any("commit" in line for line in said)
    described = next(iter(runs.values())) / "run.json"
    today = json.loads(described.read_text())["commit"] or "unknown"
    described.write_text(json.dumps(json.loads(described.read_text()) | {"commit": "0ldc0de"}))
    for _ in range(2):  # and it is kept
        rows, _, said = play(tmp_path, "one", [4, 6])
        assert said[1:] == [
            f"done before: 1 of commit 0ldc0de, 1 of commit {today}; this is commit {today}"
        ]
        assert [row["commit"] for row in rows] == ["0ldc0de", None if today == "unknown" else today]
