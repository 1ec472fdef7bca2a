"""Data that could not be read: each problem is a row of `capture_errors` and ends no query.

file     the capture
offset   in bytes; for a compressed file, in the uncompressed data
reason   one of a small set of texts, to group by
detail   what was expected, what was found, and whether the rest was not read
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

ERRORS_SCHEMA = pa.schema(
    {"file": pa.string(), "offset": pa.int64(), "reason": pa.string(), "detail": pa.string()}
)

CANNOT_OPEN = "cannot be opened"
CANNOT_READ = "cannot be read"
EMPTY = "empty file"
BAD_MAGIC = "not a capture"
BAD_VERSION = "unknown version"
DAMAGED_GZIP = "damaged gzip"
CUT_SHORT = "cut short"
IMPOSSIBLE_LENGTH = "impossible length"
BAD_BLOCK = "bad block"
UNKNOWN_BLOCK = "unknown block"
BAD_OPTION = "bad option"
UNKNOWN_LINK_TYPE = "unknown link type"
UNKNOWN_INTERFACE = "unknown interface"
UNKNOWN_PROTOCOL = "unknown protocol"
BAD_TIME = "impossible time"
BAD_IP_VERSION = "bad IP version"
BAD_IP_LENGTH = "bad IP length"
PACKET_CUT_SHORT = "packet ends within a header"
TOO_MANY_HEADERS = "too many headers"
BAD_OWN_VERSION = "unknown version of our header"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem with the data of a capture."""

    offset: int
    reason: str
    detail: str


def errors_batch(file: str, problems: Sequence[Problem]) -> pa.RecordBatch:
    """Problems as rows of `capture_errors`."""
    columns = [
        pa.array([file] * len(problems), pa.string()),
        pa.array([problem.offset for problem in problems], pa.int64()),
        pa.array([problem.reason for problem in problems], pa.string()),
        pa.array([problem.detail for problem in problems], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ERRORS_SCHEMA)
