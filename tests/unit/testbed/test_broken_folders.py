"""Folders that are no runs, or damaged ones: one clear line, and exit status 2."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from testbed.cli import main

BROKEN = {
    "nothing": {},
    "empty": {"run.json": "", "experiment.toml": ""},
    "no experiment": {"run.json": "{}", "experiment.toml": ""},
    "a list": {"run.json": "[]", "experiment.toml": ""},
    "not resolved": {"run.json": '{"experiment": 3}', "experiment.toml": ""},
    "no file": {"run.json": json.dumps({"experiment": {"name": "a"}})},
    "no underlay": {"run.json": json.dumps({"experiment": {"name": "a"}}), "experiment.toml": ""},
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("command", ["rerun", "report"])
def test_a_broken_folder_is_one_clear_line(
    command: str, broken: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in BROKEN[broken].items():
        (tmp_path / name).write_text(text)
    if command == "report" and broken in ("no file", "no underlay"):
        assert main([command, str(tmp_path)]) == 0  # The message names the missing file.
        return
    assert main([command, str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path) in line
    assert "expected" in line
    assert "Errno" not in line
    assert line.partition("found")[2].strip(": ") not in ("", "'experiment'")


def test_an_interrupted_run_reports_its_location(tmp_path: Path) -> None:
    file = tmp_path / "long.toml"
    file.write_text('backend = "simulation"\nduration_s = 1_000_000\ncapture = "none"\n')
    command = [sys.executable, "-c", "import sys; from testbed.cli import main; sys.exit(main())"]
    with subprocess.Popen(
        [*command, "run", str(file), "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        while process.poll() is None and not list(tmp_path.glob("out/long/*/agents/*.jsonl")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        after, errors = process.communicate(timeout=60)
    (partial,) = (tmp_path / "out" / "long").iterdir()
    assert partial.name.endswith(".partial")
    assert f"tdo analyze {partial}" in after
    assert errors.splitlines()[-1] == "tdo: interrupted"
    assert process.returncode == 1
