"""The workload of a run from its folder `workload/`: interests, publications and matches.

Content is a number that only the workload interprets. Runs of format 1 have no such files: their
workload is drawn again from `run.json` into `analysis/workload/`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.errors import AnalysisError
from analysis.parquet_files import DAMAGE, read_columns
from workloads.kinds import draw_workload

_COLUMNS: dict[str, dict[str, Any]] = {
    "interests": {"interest": "int64", "host": object, "content": "int64"},
    "publications": {"event_id": "int64", "host": object, "content": "int64"},
    "matches": {"event_id": "int64", "interest": "int64"},
}


@dataclass(frozen=True)
class WorkloadTables:
    """Interests, publications, and which match by content; `note` says if they were redrawn."""

    interests: pd.DataFrame
    publications: pd.DataFrame
    matches: pd.DataFrame
    note: str = ""


def read_workload(folder: Path) -> WorkloadTables:
    """The tables in a folder."""
    return WorkloadTables(**{name: _read_table(folder / f"{name}.parquet") for name in _COLUMNS})


def redraw_workload(
    folder: Path, section: Mapping[str, Any], seed: int, hosts: Sequence[str]
) -> WorkloadTables:
    """The tables of a workload drawn from its section of an experiment, written to `folder`."""
    try:
        draw_workload(section, seed, hosts).write(folder, hosts)
    except (KeyError, ValueError) as error:
        raise AnalysisError(
            f"workload: expected a section that a workload can be drawn from, found: {error}"
        ) from error
    found = read_workload(folder)
    note = "the run has no readable workload/: it was drawn again from run.json"
    return WorkloadTables(found.interests, found.publications, found.matches, note)


def no_workload(note: str = "") -> WorkloadTables:
    """Tables without rows."""
    empty = {
        name: pd.DataFrame({column: pd.Series(dtype=dtype) for column, dtype in columns.items()})
        for name, columns in _COLUMNS.items()
    }
    return WorkloadTables(**empty, note=note)


def _read_table(file: Path) -> pd.DataFrame:
    wanted = list(_COLUMNS[file.stem])
    try:
        return read_columns(file, wanted).to_pandas()[wanted]
    except DAMAGE as error:
        raise AnalysisError(
            f"{file}: expected a Parquet file with {', '.join(wanted)}, found: {error}"
        ) from error
