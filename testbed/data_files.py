"""The places of users' data files: social graphs, latency matrices.

A file is looked up from the folder of the experiment file, then in the folder given by `--data`,
else in `$TDO_DATA`, else in `data/`. None of these files are part of the testbed.
"""

import os
from pathlib import Path


def default_data_folder() -> Path:
    """The folder for data files if no command names another."""
    return Path(os.environ.get("TDO_DATA") or "data").resolve()


def find_data_file(name: str, folder: Path | str, data: Path | str) -> Path | None:
    """The path of a data file in the folder of an experiment, else in that for data."""
    paths = (Path(place, name) for place in (folder, data))
    return next((path.resolve() for path in paths if name and path.is_file()), None)
