"""Errors of failed Spark jobs in one line instead of dozens."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from analysis.errors import AnalysisError

_GONE = (Py4JNetworkError, ConnectionError, EOFError)
_CAUSE = re.compile(r"^(?:Caused by: )?((?:[\w$]+\.)*\w*(?:Error|Exception): .+)$", re.MULTILINE)
_MOST_CHARACTERS = 300


@contextmanager
def clear_failures(master: str) -> Iterator[None]:
    """Turn failures of jobs in this block into an error that names the cause."""
    try:
        yield
    except (Py4JError, PySparkException, *_GONE) as error:
        found = "its Java process ended" if isinstance(error, _GONE) else _cause(str(error))
        raise AnalysisError(
            f"Spark with master {master}: expected its jobs to succeed, found {found}; "
            "check the disk, the memory or the cluster; tdo --debug shows more"
        ) from error


def _cause(text: str) -> str:
    """The last exception in the output of Java or Python; without one, the beginning."""
    causes = _CAUSE.findall(text)
    return (causes[-1] if causes else " ".join(text.split()))[:_MOST_CHARACTERS]
