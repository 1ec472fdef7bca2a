"""Rows of sweeps and computations: the values, the outcome and the metrics of a run or point."""

import csv
import fcntl
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from testbed.errors import UsageError

Row = dict[str, Any]

FAILED = "failed"  # instead of a verdict
_LEFT_OUT = ("notes", "histogram", "distribution")  # metrics that are not numbers, or too many


def failed_row(values: Mapping[str, Any], seed: int, error: str) -> Row:
    """The row of a failed run or point."""
    nothing = dict.fromkeys(("path", "wall_s", "commit"))
    return {**values, "seed": seed, "verdict": FAILED, "error": error, **nothing}


def flatten(prefix: str, given: Mapping[str, Any]) -> Row:
    """Nested numbers as columns with dotted names."""
    flat: Row = {}
    for key, value in given.items():
        if isinstance(value, Mapping) and key not in _LEFT_OUT:
            flat |= flatten(f"{prefix}{key}.", value)
        elif value is None or isinstance(value, str | int | float | bool):
            flat[prefix + key] = value
    return flat


def count_commits(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """The number of rows of each commit of the testbed."""
    return Counter(row["commit"] or "unknown" for row in rows)


def write_table(folder: Path, name: str, keys: Sequence[str], rows: Sequence[Row]) -> None:
    """Write `<name>.csv` and `<name>.parquet`, each in one step."""
    columns = _columns(keys, rows)
    draft = folder / f".{name}.new"
    with draft.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)
    draft.replace(folder / f"{name}.csv")
    table = {column: _array([row.get(column) for row in rows]) for column in columns}
    pq.write_table(pa.table(table), draft, compression="zstd")
    draft.replace(folder / f"{name}.parquet")


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Lock a folder for other commands; the lock ends with the process."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"{folder}: expected no other tdo on this {what}, found one; wait for it or stop it"
            ) from None
        yield


def _columns(keys: Sequence[str], rows: Sequence[Row]) -> list[str]:
    first = (*keys, "seed", "verdict", "error", "path", "wall_s", "commit")
    return list(dict.fromkeys((*first, *(column for row in rows for column in row))))


def _array(values: list[Any]) -> pa.Array:
    """A column; where texts and numbers meet, as in `5` and `none`, all are texts."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values])
