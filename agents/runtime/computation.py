"""A computation in a separate process, so that agents continue meanwhile.

The function and its arguments go to the process as a pickle in a file, and the result comes back
in another. The end of the process makes a descriptor readable, which an event loop can wait for.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from tempfile import TemporaryFile
from typing import Any

_LAST_WORDS_BYTES = 2_000


class Computation:
    """A function call that runs in another process."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._result = TemporaryFile()  # noqa: SIM115 - open until it has ended
        self._errors = TemporaryFile()  # noqa: SIM115
        with TemporaryFile() as task:
            pickle.dump((function, arguments), task)
            task.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "agents.runtime.computation"],
                stdin=task,
                stdout=self._result,
                stderr=self._errors,
            )
        self._descriptor = os.pidfd_open(self._process.pid)

    def fileno(self) -> int:
        """The descriptor that is readable once the process has ended."""
        return self._descriptor

    def finish(self) -> Any:
        """The result; raises if the function did."""
        status = self._process.wait()
        os.close(self._descriptor)
        with self._result, self._errors:
            if status != 0:
                self._errors.seek(0)
                words = self._errors.read()[-_LAST_WORDS_BYTES:].decode(errors="replace")
                last = words.strip().rpartition("\n")[2]
                raise RuntimeError(f"a computation exited {status}: {last}")
            self._result.seek(0)
            return pickle.load(self._result)

    def cancel(self) -> None:
        """End the process without a result."""
        self._process.kill()
        self._process.wait()
        os.close(self._descriptor)
        self._result.close()
        self._errors.close()


def main() -> None:
    """Call the function on standard input."""
    with suppress(OSError):  # agents have real-time priority, which is not for long computations
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    function, arguments = pickle.load(sys.stdin.buffer)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of the function is not the result
    with answers:
        pickle.dump(function(*arguments), answers)


if __name__ == "__main__":
    main()
