"""Parquet files of runs, which may be damaged. Those that the testbed writes have checksums."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

# A file whose damage was not noticed may have any bytes as text.
DAMAGE = (OSError, ValueError, KeyError, pa.ArrowException)


def read_columns(file: Path, columns: Sequence[str]) -> pa.Table:
    """Some columns of a file; one of `DAMAGE` is raised if they cannot be read."""
    with pq.ParquetFile(file, page_checksum_verification=True) as opened:
        return opened.read(list(columns))


def why_unreadable(file: Path) -> str | None:
    """Why a file is not complete Parquet; None if it is. All of it is read, not only its footer."""
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            for _ in opened.iter_batches():
                pass
    except DAMAGE as error:
        return f"expected whole Parquet, found: {' '.join(str(error).split())[:200]}"
    return None
