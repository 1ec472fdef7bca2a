"""One point of a computation, computed in this process or as a task on another machine.

A task is a JSON text, and so is its outcome. The requesting process stores the outcome, so other
machines need no folder in common.
"""

import json
import time
import traceback
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from testbed.sweeps.progress import ATTEMPTS
from topologies.errors import TestbedError

Function = Callable[..., Mapping[str, Any]]
Work = Callable[[str], str]
GiveUp = Callable[[str, Exception], str]
# Takes a function, a function for tasks that failed, and tasks; yields each task with its
# outcome, in any order. Closed early, it cancels the rest.
PointCarrier = Callable[[Work, GiveUp, Sequence[str]], Generator[tuple[str, str]]]


def write_point_task(name: str, values: Mapping[str, Any], seed: int) -> str:
    """The task of a point, with everything that a worker needs."""
    return json.dumps({"point": name, "values": dict(values), "seed": seed})


def compute_point(task: str, function: Function) -> str:
    """The result of a point, or why it cannot be computed; other failures are tried again.

    An error of the testbed means that the arguments are wrong, so it is not tried again.
    """
    given = json.loads(task)
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _compute(function, given["values"], given["seed"])
        except Exception as error:
            outcome = _failure(error)
            if isinstance(error, TestbedError) or attempt == ATTEMPTS:
                break
    return outcome


def compute_here(work: Work, _give_up: GiveUp, tasks: Sequence[str]) -> Generator[tuple[str, str]]:
    """Compute points one after another in this process; yields each task with its outcome."""
    for task in tasks:
        yield task, work(task)


def give_up_point(_task: str, error: Exception) -> str:
    """The outcome of a point whose worker was lost too often."""
    return _failure(error)


def _compute(function: Function, values: Mapping[str, Any], seed: int) -> str:
    start = time.monotonic()
    result = dict(function(seed=seed, **values))
    seconds = round(time.monotonic() - start, 3)
    return json.dumps({"result": result, "seconds": seconds}, allow_nan=False)


def _failure(error: Exception) -> str:
    name = type(error).__name__
    text = str(error) if isinstance(error, TestbedError) else f"{name}: {error}"
    lines = traceback.format_exception(error)
    return json.dumps({"error": " ".join(text.split()) or name, "traceback": "".join(lines)})
