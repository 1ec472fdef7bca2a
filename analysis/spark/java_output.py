"""What the Java machine writes to the terminal, without what it says at every start.

Spark asks Java for a module that Java calls incubating, and Java announces that whatever it is
told. So what is started in this block writes into a pipe, and all other lines go on from there to
where they were going.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STDERR = 2
_HARMLESS = (b"WARNING: Using incubator modules: jdk.incubator.vector",)


@contextmanager
def without_greetings() -> Iterator[None]:
    """Let processes that are started in this block write to stderr without harmless lines."""
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
    """Pass on lines until all who could write have ended."""
    with os.fdopen(reading, "rb") as lines:
        for line in lines:
            if not line.startswith(_HARMLESS):
                os.write(_STDERR, line)
