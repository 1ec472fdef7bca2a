"""Sweeps that have runs in common."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from analysis.routing_metrics import measure_run
from testbed.sweep import load_sweep
from testbed.sweep_directory import Row, SweepDirectory
from testbed.sweep_runs import perform_here, play_sweep

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
) -> tuple[list[Row], dict[str, Path], str]:
    """The rows, the runs by digest, and what was said at first."""
    file = folder / f"{name}.toml"
    file.write_text(TEXT.format(hosts=hosts))
    sweep, said = load_sweep(file), list[str]()
    directory = SweepDirectory.of(sweep, folder)
    carriers = {"simulation": partial(perform_here, measure=measure_run)}
    rows = play_sweep(sweep, directory, carriers, True, said.append, elsewhere=elsewhere)
    return rows, {swept.digest: directory.run_of(swept) for swept in sweep.experiments}, said[0]


def test_what_another_sweep_has_done_is_not_done_again(tmp_path: Path) -> None:
    rows, runs, _ = play(tmp_path, "one", [4, 6])
    others, copies, said = play(tmp_path, "other", [6, 8], runs)
    assert said == "2 runs, 1 of them done before, 1 to do"
    assert others[0] == rows[1]  # even the time it took
    assert [row["topology.hosts"] for row in others] == [6, 8]
    (digest,) = runs.keys() & copies.keys()
    assert (copies[digest] / "run.json").read_bytes() == (runs[digest] / "run.json").read_bytes()
