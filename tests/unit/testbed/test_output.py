"""The output of a command whose reader ends early."""

import os
import subprocess
import sys

_LIST = "import sys; from testbed.cli import main; sys.exit(main(['list', 'kinds']))"


def test_a_command_ends_quietly_when_nobody_reads_its_output() -> None:
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
