"""The state of a detached run, from its files; nothing runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from testbed.detached import state
from testbed.detached.state import RunFolder
from testbed.processes import boot_id

NOBODY = {"pid": 0, "pid_started": 0, "keeper": 0, "keeper_started": 0}


def make_run(folder: Path, directory: Path | None = None) -> RunFolder:
    run = RunFolder(folder / "results" / ".runs" / "mine")
    about = {"name": "short", "backend": "simulation", "project": "", "folder": str(folder)}
    named = {"directory": None if directory is None else str(directory)}
    run.create({**about, **named, **NOBODY, "started_at": state.now(), "boot": boot_id()})
    return run


def test_a_run_that_ends_during_the_check_has_not_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path)

    def end(_state: Any) -> bool:
        run.log.write_text(json.dumps({"verdict": "valid"}) + "\n")
        run.write_exit(0)
        return False

    monkeypatch.setattr(state, "_is_alive", end)
    found = run.status()
    assert (found.phase, found.verdict, found.died) == ("finished", "valid", None)


def test_a_directory_that_was_never_created_is_no_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, tmp_path / "results" / "short" / "sweep-1")
    run.write_exit(1)
    assert run.status().directory is None
    (tmp_path / "results" / "short" / "sweep-1").mkdir(parents=True)
    assert run.status().directory == str(tmp_path / "results" / "short" / "sweep-1")
