"""Files that are removed from another machine, and files that remain; the machine is a folder."""

from pathlib import Path
from typing import Any

import pytest

from testbed.remote.far_side import look, tidy
from testbed.remote.jobs import plan_cleaning

RUN = {"phase": "finished", "project": "/far/projects/old", "is_fetched": False}
GOES_ON = {**RUN, "id": "live", "phase": "running", "directory": "/far/results/x/3.partial"}
UNFETCHED = {**RUN, "id": "unfetched", "directory": "/far/results/x/1"}
FETCHED = {**RUN, "id": "fetched", "directory": "/far/results/x/2", "is_fetched": True}
EMPTY = {**RUN, "id": "empty", "phase": "failed", "directory": None}


@pytest.mark.parametrize(
    "runs, with_runs, gone, kept",
    [
        ([], True, [], []),
        ([UNFETCHED], True, [], ["/far/projects/new"]),
        ([FETCHED], False, [], ["/far/projects/new"]),
        ([FETCHED, EMPTY], True, ["fetched", "empty"], []),
        ([EMPTY], False, [], ["/far/projects/new"]),
        ([GOES_ON, FETCHED], True, ["fetched"], ["/far/projects/old"]),
        ([GOES_ON, EMPTY], False, [], ["/far/projects/old", "/far/projects/new"]),
    ],
)
def test_a_project_remains_as_long_as_one_of_its_runs(
    runs: list[dict[str, Any]], with_runs: bool, gone: list[str], kept: list[str]
) -> None:
    plan = plan_cleaning(runs, "/far/projects/new", with_runs)
    assert [run["id"] for run in plan.runs] == gone
    assert plan.kept_projects == kept
    assert plan.is_busy == (GOES_ON in runs)


def test_remaining_files_are_listed_with_a_reason() -> None:
    plan = plan_cleaning([GOES_ON, UNFETCHED, FETCHED, EMPTY], "/far/projects/new", False)
    assert plan.left == [
        "run live and its project: the run is going on",
        "run unfetched in /far/results/x/1: it was not fetched",
        "run fetched in /far/results/x/2: --runs removes it",
        "run empty in no directory: --runs removes it",
        "project /far/projects/new: it is needed to list and fetch the remaining runs",
    ]


def test_a_remaining_project_still_answers(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / "projects" / name / ".venv" / "bin").mkdir(parents=True)
        (tmp_path / "projects" / name / ".venv" / "bin" / "tdo").touch()
    for name in ("experiments/a", "results/.runs/unfetched", "results/.runs/empty"):
        (tmp_path / name).mkdir(parents=True)
    tidy(str(tmp_path), [str(tmp_path / "projects" / "new")], [("empty", None)], is_busy=False)
    assert look(str(tmp_path))["projects"] == ["new"]
    left = sorted(path.name for path in tmp_path.glob("*/*"))
    assert left == [".runs", "new"]
    assert [path.name for path in tmp_path.glob("results/.runs/*")] == ["unfetched"]
