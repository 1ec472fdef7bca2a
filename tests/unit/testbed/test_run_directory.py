"""The names of run directories."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from testbed.experiment.file import Experiment
from testbed.run.directory import RunDirectory


def test_runs_of_the_same_second_get_names_of_their_own(tmp_path: Path) -> None:
    experiment = Experiment(name="twice")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: RunDirectory.create(experiment, tmp_path), range(16)))
    assert len({directory.path for directory in made}) == 16
    assert len({directory.final for directory in made}) == 16
    assert all(directory.path.is_dir() for directory in made)
