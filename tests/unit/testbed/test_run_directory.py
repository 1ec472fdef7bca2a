"""Run directories: their names, and their content."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.experiment.file import Experiment, experiment_from_dict
from testbed.run.directory import RunDirectory
from testbed.run.underlay import make_underlay


def test_runs_of_the_same_second_have_different_names(tmp_path: Path) -> None:
    experiment = Experiment(name="twice")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: RunDirectory.create(experiment, tmp_path), range(16)))
    assert len({directory.path for directory in made}) == 16
    assert len({directory.final for directory in made}) == 16
    assert all(directory.path.is_dir() for directory in made)


def test_run_json_lists_the_messages_of_its_protocols(tmp_path: Path) -> None:
    experiment = experiment_from_dict({"name": "roles", "overlay": {"kind": "tdo-walk"}}, "test")
    directory = RunDirectory.create(experiment, tmp_path)
    directory.describe(experiment, "", make_underlay(experiment), None)
    written = json.loads((directory.path / "run.json").read_text())
    assert {"number": 40, "name": "Join", "layer": "overlay", "role": "join"} in written["messages"]
    assert {kind["number"] for kind in written["messages"]} == {1, 2, 3, *range(40, 49)}
