"""`tdo open`: the report of a run in the user's browser."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.testbed.test_listing import write_run

_OPEN = "import sys; from testbed.cli import main; sys.exit(main(['open']))"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with two runs and their reports."""
    for name, at_s in (("old", 100), ("new", 200)):
        run = tmp_path / "results" / "a" / name
        write_run(run, at_s, "valid", name="a", backend="simulation", seed=1)
        (run / "analysis").mkdir()
        (run / "analysis" / "report.html").write_text(name)
    return tmp_path


def open_newest(folder: Path, browser: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder, with a program as the browser."""
    return subprocess.run(
        [sys.executable, "-c", _OPEN], cwd=folder, env={**os.environ, "BROWSER": browser},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_the_newest_report_is_opened(results: Path) -> None:
    browser = results / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {results}/opened\n')
    browser.chmod(0o755)
    done = open_newest(results, str(browser))
    report = results / "results" / "a" / "new" / "analysis" / "report.html"
    assert done.returncode == 0 and done.stdout.strip() == str(report.relative_to(results))
    assert (results / "opened").read_text().strip() == report.as_uri()


def test_without_a_run_the_error_explains_how_to_make_one(tmp_path: Path) -> None:
    done = open_newest(tmp_path, "true")
    assert done.returncode == 2 and "`tdo run FILE` makes one" in done.stderr


def test_without_a_browser_the_path_of_the_report_is_printed(results: Path) -> None:
    done = open_newest(results, "false")
    assert done.returncode == 1 and "new/analysis/report.html: found no browser" in done.stderr
