"""Which captures a path, a pattern or a folder means."""

import glob
from collections.abc import Iterable, Iterator
from pathlib import Path

from analysis.captures.problems import (
    BAD_MAGIC,
    BAD_VERSION,
    CANNOT_OPEN,
    CANNOT_READ,
    DAMAGED_GZIP,
    EMPTY,
    Problem,
)
from analysis.captures.splits import SPLIT_BYTES, Split, plan_splits, read_frames
from analysis.errors import CaptureError

_ENDINGS = (".pcap", ".pcapng", ".cap", ".ntar")
_PACKED = ".gz"
_NOTHING_IS_READ = {BAD_MAGIC, BAD_VERSION, CANNOT_OPEN, CANNOT_READ, DAMAGED_GZIP, EMPTY}

Where = str | Path | Iterable[str | Path]


def find_captures(where: Where) -> list[str]:
    """The files, sorted; of a folder, those directly in it whose names end as captures' do."""
    places = [where] if isinstance(where, str | Path) else list(where)
    found = sorted({file for place in places for file in _find(str(place))})
    if not found:
        raise CaptureError(
            f"captures: expected files at {', '.join(map(str, places)) or 'some path'}, "
            f"found none; give a file, a pattern, or a folder with {', '.join(_ENDINGS)}"
        )
    return found


def plan_parts(files: Iterable[str], split_bytes: int = SPLIT_BYTES) -> list[list[Split]]:
    """All parts of all files, those of small files together, each of about as many bytes."""
    parts: list[list[Split]] = []
    room = 0
    for file in files:
        splits = plan_splits(file, split_bytes)
        if len(splits) > 1:
            parts += [[split] for split in splits]
            room = 0
            continue
        size = _size(file)
        if size > room or not parts:
            parts.append([])
            room = split_bytes
        parts[-1] += splits
        room -= size
    return parts


def why_no_capture(file: str) -> str | None:
    """Why nothing of a file can be read as a capture; None if something can."""
    first = next(iter(read_frames(Split(file))), None)
    if isinstance(first, Problem) and first.reason in _NOTHING_IS_READ:
        return f"{first.reason} ({first.detail})"
    return None


def _find(place: str) -> Iterator[str]:
    place = place.removeprefix("file://").removeprefix("file:")
    if Path(place).is_dir():
        for file in Path(place).iterdir():
            if file.name.lower().removesuffix(_PACKED).endswith(_ENDINGS) and file.is_file():
                yield str(file)
    elif Path(place).exists():
        yield place
    else:
        # Not Path.glob: it has no absolute patterns.
        yield from (file for file in glob.glob(place) if Path(file).is_file())  # noqa: PTH207


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0
