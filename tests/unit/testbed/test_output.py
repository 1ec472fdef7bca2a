"""Output of a command into a pipe whose reader has ended."""

import os
import subprocess
import sys

import pytest

from testbed.commands.status import print_status

_LIST = "import sys; from testbed.cli import main; sys.exit(main(['list', 'kinds']))"


def test_a_command_ends_quietly_when_its_reader_has_ended() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", _LIST],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 1 and done.stderr == b""


def test_without_runs_the_status_names_the_command_for_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_status([], [])
    print_status([], [], "tdo remote run lab FILE")
    assert capsys.readouterr().out.splitlines() == [
        "no runs; `tdo run FILE --detach` starts one",
        "no runs; `tdo remote run lab FILE` starts one",
    ]
