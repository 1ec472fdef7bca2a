"""The output of the Java process on the terminal, without its messages at every start.

Spark uses an incubating module of Java, and Java announces that whatever its options are. Therefore
processes started in this block write into a pipe, and all other lines are passed on to stderr.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STDERR = 2
_HARMLESS = (b"WARNING: Using incubator modules: jdk.incubator.vector",)


@contextmanager
def without_greetings() -> Iterator[None]:
    """Remove harmless lines from the stderr of processes that are started in this block."""
    kept = os.dup(_STDERR)
    reading, writing = os.pipe()
    os.dup2(writing, _STDERR)
    os.close(writing)
    threading.Thread(target=_pass_on, args=(reading,), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


def _pass_on(reading: int) -> None:
    """Pass on lines until all writers have ended."""
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            if not line.startswith(_HARMLESS):
                os.write(_STDERR, line)
