"""Tasks on Spark: each has a text as its input and a text as its result.

Every task is a separate Spark job, so that a failed one does not affect others;
Spark repeats each as often as the master or `spark.task.maxFailures` states.
"""

import importlib.metadata
import importlib.util
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from pyspark import SparkContext
from pyspark.sql import SparkSession

from analysis.errors import AnalysisError

_MOST_AT_ONCE = 256  # a thread for each waits
_PATIENCE_S = 30.0


@contextmanager
def shipped_packages(
    spark: SparkSession, packages: Sequence[str], distribution: str
) -> Iterator[None]:
    """Send these packages to the workers, so that workers need only their dependencies."""
    with tempfile.TemporaryDirectory(prefix="tdo-packages-") as folder:
        file = Path(folder, f"{Path(folder).name}.zip")  # Spark accepts every name only once
        _zip_packages(file, packages, distribution)
        searched = list(sys.path)
        spark.sparkContext.addPyFile(str(file))
        sys.path[:] = searched  # the driver has them
        yield


def carry(
    spark: SparkSession,
    work: Callable[[str], str],
    tasks: Sequence[str],
    at_once: int | None = None,
    say: Callable[[str], None] = lambda _line: None,
) -> Generator[tuple[str, str | Exception]]:
    """Run tasks on Spark; yields each task with its result or its error, as they end.

    If the iteration ends early, running tasks are cancelled.
    """
    context = spark.sparkContext
    tag = f"tdo-{uuid4().hex}"
    waiting: set[Future[str]] = set()
    pool = ThreadPoolExecutor(max(1, min(at_once or _MOST_AT_ONCE, len(tasks))))
    try:
        futures = {pool.submit(_carry_one, context, tag, work, task): task for task in tasks}
        waiting = set(futures)
        while waiting:
            ended, waiting = wait(waiting, _PATIENCE_S, FIRST_COMPLETED)
            if not ended and _executors(context) == 0:
                say(f"no worker of {context.master} has joined yet; are there free ones?")
            for future in ended:
                yield futures[future], _outcome(future, context)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if waiting:
            context.cancelJobsWithTag(tag)


def _carry_one(context: SparkContext, tag: str, work: Callable[[str], str], task: str) -> str:
    context.addJobTag(tag)  # of this thread
    done: str = context.parallelize([task], 1).map(work).collect()[0]
    return done


def _outcome(future: Future[str], context: SparkContext) -> str | Exception:
    try:
        return future.result()
    except Exception as error:
        if context._jsc.sc().isStopped():
            raise AnalysisError(
                f"Spark with master {context.master}: expected a running session, found it closed"
            ) from error
        return AnalysisError(_cause(str(error)))


def _cause(text: str) -> str:
    """The line of Spark's message that has the cause of a task's failure."""
    found = re.search(r"most recent failure: (?:Lost task [^:]*: )?(.+)", text)
    return found[1].strip() if found else " ".join(text.split())[:300]


def _executors(context: SparkContext) -> int:
    """The number of executors; in local mode, the driver is one."""
    known: int = context._jsc.sc().getExecutorMemoryStatus().size()
    return known if str(context.master).startswith("local") else known - 1


def _zip_packages(file: Path, packages: Sequence[str], distribution: str) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            spec = importlib.util.find_spec(package)
            if spec is None or not spec.submodule_search_locations:
                raise AnalysisError(f"{package}: expected an installed package, found none")
            root = Path(next(iter(spec.submodule_search_locations)))
            for path in sorted(root.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    archive.write(path, path.relative_to(root.parent))
        # Runs record the version of this distribution.
        number = importlib.metadata.version(distribution)
        archive.writestr(
            f"{distribution.replace('-', '_')}-{number}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {number}\n",
        )
