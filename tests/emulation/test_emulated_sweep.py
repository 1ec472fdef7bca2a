"""A sweep of emulated runs: one after another, without Spark, and not twice."""

import csv
import json
from pathlib import Path

import pytest

from testbed.cli import main

SWEEP = """
name = "few"
seed = [1, 2]
duration_s = 1
[topology]
routers = 4
hosts = 3
[overlay]
kind = "hello"
greetings = 1
"""


def test_emulated_runs_are_swept_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "few.toml").write_text(SWEEP)
    command = ["run", str(tmp_path / "few.toml"), "--out", str(tmp_path), "--json"]
    assert main(command) in (0, 3)  # a busy machine may be late
    first = json.loads(capsys.readouterr().out.splitlines()[-1])
    with Path(first["path"], "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["seed"], float(row["discovered_links"]) > 0) for row in rows] == [
        ("1", True),
        ("2", True),
    ]
    main(command)
    assert "2 runs, 2 of them done before, 0 to do" in capsys.readouterr().out
