"""Data files of users: where they are searched, and errors if they are missing."""

import re
import shutil
from pathlib import Path

import pytest

from testbed.data_files import default_data_folder, find_data_file
from testbed.errors import ExperimentError
from testbed.experiment.file import load_experiment
from testbed.remote.parcels import pack_experiment
from testbed.run.underlay import make_underlay
from testbed.run.workload import make_workload
from testbed.sweeps.file import load_sweep

GRAPH = Path(__file__).parents[2] / "fixtures" / "social" / "friends.txt"
FILE = """
[overlay]
kind = "tdo-walk"
[workload]
kind = "topics-social"
file = "social/friends.txt"
events = 5
[pubsub]
kind = "topic-flood"
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment file in its own folder, and a current folder without data."""
    monkeypatch.delenv("TDO_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "experiments" / "mine.toml"
    path.parent.mkdir()
    path.write_text(FILE)
    return path


def add_graph(folder: Path, text: str | None = None) -> Path:
    (folder / "social").mkdir(parents=True)
    place = folder / "social" / "friends.txt"
    return shutil.copy(GRAPH, place) if text is None else Path(place.write_text(text) and place)


def test_the_experiments_folder_precedes_the_data_folder(tmp_path: Path) -> None:
    (near, far) = (add_graph(tmp_path / name) for name in ("near", "far"))
    name = "social/friends.txt"
    assert find_data_file(name, tmp_path / "near", tmp_path / "far") == near
    assert find_data_file(name, tmp_path, tmp_path / "far") == far
    assert find_data_file(str(far), tmp_path, tmp_path) == far
    assert find_data_file(name, tmp_path, tmp_path) is None
    assert find_data_file("social", tmp_path / "near", tmp_path) is None


def test_the_data_folder_is_that_of_the_environment_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TDO_DATA", raising=False)
    assert default_data_folder() == tmp_path / "data"
    monkeypatch.setenv("TDO_DATA", str(tmp_path / "mine"))
    assert default_data_folder() == tmp_path / "mine"


@pytest.mark.parametrize("place", ["experiments", "data", "elsewhere"])
def test_a_run_finds_its_file(place: str, experiment: Path) -> None:
    add_graph(experiment.parents[1] / place)
    changes = {"data": str(experiment.parents[1] / "elsewhere")} if place == "elsewhere" else {}
    loaded = load_experiment(experiment, changes)
    work = make_workload(loaded, make_underlay(loaded))
    assert work is not None and len(work.publications) == 5
    assert loaded.workload["file"] == "social/friends.txt"  # as written, also in run.json


def test_an_error_of_a_missing_file_has_its_form_and_the_searched_folders(
    experiment: Path,
) -> None:
    loaded = load_experiment(experiment)
    message = (
        "workload.file: expected an edge list, a text file with a line 'a b' of two whole numbers "
        "for each link and comments after # or %; found no social/friends.txt in "
        f"{experiment.parent} and in {experiment.parents[1] / 'data'}; say where it is with --data"
    )
    with pytest.raises(ExperimentError, match=f"^{re.escape(message)}$"):
        make_workload(loaded, make_underlay(loaded))


def test_a_malformed_file_is_an_error_of_the_experiment(experiment: Path) -> None:
    add_graph(experiment.parent, "1 2\nthree four\n")
    loaded = load_experiment(experiment)
    with pytest.raises(ExperimentError, match="^workload.file: .*: 'three four' in line 2$"):
        make_workload(loaded, make_underlay(loaded))


def test_the_digest_depends_on_the_content_and_not_on_the_path(experiment: Path) -> None:
    missing = load_sweep(experiment).digest
    data = experiment.parents[1] / "data"
    add_graph(data)
    found = load_sweep(experiment).digest
    assert found != missing
    data.rename(data.with_name("elsewhere"))
    elsewhere = {"data": str(data.with_name("elsewhere"))}
    assert load_sweep(experiment, elsewhere).digest == found
    add_graph(experiment.parent, "1 2\n")
    assert load_sweep(experiment, elsewhere).digest != found


def test_data_files_are_sent_to_where_the_experiment_finds_them(experiment: Path) -> None:
    with pytest.raises(ExperimentError, match="workload.file: expected a file named from the"):
        pack_experiment(experiment, load_sweep(experiment))
    far = add_graph(experiment.parents[1] / "data")
    parcel, name = pack_experiment(experiment, load_sweep(experiment))
    assert str(name) == "mine.toml"
    near = add_graph(experiment.parent)
    far.unlink()
    assert pack_experiment(experiment, load_sweep(experiment)) == (parcel, name)
    assert near.is_file()
