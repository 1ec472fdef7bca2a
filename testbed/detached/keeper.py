"""The process that starts a detached run, waits for it and records how it ended.

It distinguishes a normal end from a kill, takes a few megabytes, and passes on requests to end, so
that networks are removed. If it is killed, the run continues.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from testbed.detached.state import RunFolder
from testbed.processes import boot_id, start_time

DETACHED_VARIABLE = "TDO_DETACHED"


def keep(folder: RunFolder) -> None:
    """Start the run of a folder, report that on standard output, and wait until it has ended."""
    state = folder.read()
    with folder.log.open("ab") as log:
        run = subprocess.Popen(
            state["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=state["folder"],
            env={**os.environ, DETACHED_VARIABLE: folder.path.name, "PYTHONUNBUFFERED": "1"},
        )

    def hand_on(number: int, _frame: FrameType | None) -> None:
        run.send_signal(number)

    for request_to_end in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(request_to_end, hand_on)
    processes = {"pid": run.pid, "keeper": os.getpid()}
    started = {f"{name}_started": start_time(pid) for name, pid in processes.items()}
    try:
        folder.write({**state, **processes, **started, "boot": boot_id()})
    except OSError:
        run.terminate()
        raise
    print("started", flush=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    folder.write_exit(run.wait())


if __name__ == "__main__":
    keep(RunFolder(Path(sys.argv[1])))
