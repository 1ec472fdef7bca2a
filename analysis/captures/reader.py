"""From files to rows: finds the captures of a path, splits them, and reads their rows.

Records say nothing about where they are, so a large file is first walked from record to record
without decoding them, which takes a fraction of the time of reading. Every part then
starts at a record, with the number of its first packet and the interfaces described before:
the rows do not depend on the number of parts. A compressed file is one part.
"""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from analysis.captures import pcap, pcapng_blocks
from analysis.captures.frames import Frames, InterfaceTable, Position, Section
from analysis.captures.layouts import Flags
from analysis.captures.link_layer import link_type_problem
from analysis.captures.packets import PACKETS_SCHEMA, Packets, TableMaker
from analysis.captures.pcapng import PcapngFrames
from analysis.captures.problems import (
    BAD_MAGIC,
    BAD_VERSION,
    CANNOT_OPEN,
    CANNOT_READ,
    DAMAGED_GZIP,
    EMPTY,
    Problem,
    errors_batch,
)
from analysis.captures.streams import (
    CHUNK_BYTES,
    FileStream,
    Stream,
    Window,
    is_packed,
    open_stream,
)
from analysis.errors import CaptureError

SPLIT_BYTES = 32 << 20
_LEAST_CHUNK_BYTES, _MOST_CHUNK_BYTES = 1 << 20, 4 << 20
_ENDINGS = (".pcap", ".pcapng", ".cap", ".ntar")
_PACKED = ".gz"
_NOTHING_IS_READ = {BAD_MAGIC, BAD_VERSION, CANNOT_OPEN, CANNOT_READ, DAMAGED_GZIP, EMPTY}

Where = str | Path | Iterable[str | Path]


def find_captures(where: Where) -> list[str]:
    """The files, sorted; in a folder, the files directly in it with an extension of captures."""
    places = [where] if isinstance(where, str | Path) else list(where)
    found = sorted({file for place in places for file in _find(str(place))})
    if not found:
        raise CaptureError(
            f"captures: expected files at {', '.join(map(str, places)) or 'some path'}, "
            f"found none; give a file, a pattern, or a folder with {', '.join(_ENDINGS)}"
        )
    return found


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


def why_no_capture(file: str) -> str | None:
    """The reason why a file cannot be read as a capture; None if it can."""
    first = next(iter(read_frames(Split(file))), None)
    if isinstance(first, Problem) and first.reason in _NOTHING_IS_READ:
        return f"{first.reason} ({first.detail})"
    return None


@dataclass(frozen=True)
class Split:
    """A part of a capture."""

    path: str
    start: Position | None = None  # None: the beginning of the file
    end: int | None = None  # None: its end


def plan_splits(path: str, split_bytes: int = SPLIT_BYTES) -> list[Split]:
    """The parts of a file, each of about as many bytes."""
    try:
        if Path(path).stat().st_size <= split_bytes or is_packed(Path(path)):
            return [Split(path)]
        return list(_walk(path, split_bytes))
    except OSError:
        return [Split(path)]  # reading it reports why


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


def _size(file: str) -> int:
    try:
        return Path(file).stat().st_size
    except OSError:
        return 0


def read_frames(split: Split, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Frames | Problem]:
    """The packets of a part, many at a time, and the problems of the whole file."""
    try:
        stream = _open(split)
    except OSError as error:
        yield Problem(0, CANNOT_OPEN, error.strerror or str(error))
        return
    try:
        window = Window(stream, split.start.offset if split.start else 0, chunk_bytes)
        yield from _frames(window, split.start)
        if stream.problem:
            yield stream.problem
    except OSError as error:
        yield Problem(0, CANNOT_READ, error.strerror or str(error))
    finally:
        stream.close()


def _walk(path: str, split_bytes: int) -> Iterator[Split]:
    start: Position | None = None
    # Larger chunks are faster, but parts end at the end of a chunk.
    chunk_bytes = min(max(split_bytes // 8, _LEAST_CHUNK_BYTES), _MOST_CHUNK_BYTES)
    for frames in read_frames(Split(path), chunk_bytes):
        if isinstance(frames, Problem) or not frames.is_boundary:
            continue
        if frames.end.offset - (start.offset if start else 0) >= split_bytes:
            yield Split(path, start, frames.end.offset)
            start = frames.end.as_of_now()
    yield Split(path, start)


def _open(split: Split) -> Stream:
    path = Path(split.path)
    if split.start is None and split.end is None:
        return open_stream(path)
    return FileStream(path, split.start.offset if split.start else 0, split.end)


def _frames(window: Window, start: Position | None) -> Iterator[Frames | Problem]:
    if start:
        yield from _READERS[start.section.form](window, start.section, start.number)
    elif not window.size:
        yield Problem(0, EMPTY, "expected a capture, found no bytes")
    elif section := pcap.read_section(window):
        yield from _pcap_from_header(window, section)
    elif bytes(window.view[:4]) == pcapng_blocks.MAGIC:
        yield from PcapngFrames(window, Section("pcapng", "<", InterfaceTable()), 1)
    else:
        found = bytes(window.view[:4]).hex()
        yield Problem(0, BAD_MAGIC, f"expected pcap or pcapng, found first bytes {found}")


def _pcap_from_header(window: Window, section: Section) -> Iterator[Frames | Problem]:
    problem = pcap.header_problem(window, section)
    if problem:
        yield problem
        return
    link_type = section.table.interfaces[0].link_type
    oddities = (
        pcap.minor_version_problem(window, section),
        link_type_problem(link_type, pcap.LINK_TYPE_AT),
    )
    yield from filter(None, oddities)
    window.move(pcap.FILE_HEADER_BYTES)
    yield from pcap.read_frames(window, section, 1)


_READERS: dict[str, Callable[[Window, Section, int], Iterable[Frames]]] = {
    "pcap": pcap.read_frames,
    "pcapng": PcapngFrames,
}


@dataclass(frozen=True)
class Choice:
    """A filter of packets; all conditions given must hold."""

    port: int | None = None  # of UDP or TCP, on either side
    only_tdo: bool = False  # has our own header
    from_ns: int | None = None
    until_ns: int | None = None  # and not at this time itself

    def keeps(self, packets: Packets) -> Flags | None:
        """Which packets to keep, or None to keep all."""
        flags: list[Flags] = []
        if self.port is not None:
            layer = packets.transport
            ends = (layer.rows["source_port"], layer.rows["target_port"])
            flags += [layer.has_ports & ((ends[0] == self.port) | (ends[1] == self.port))]
        if self.only_tdo:
            flags += [packets.transport.is_own]
        if self.from_ns is not None or self.until_ns is not None:
            time_ns, known = packets.frames.time_ns
            flags += [known]
            flags += [time_ns >= self.from_ns] if self.from_ns is not None else []
            flags += [time_ns < self.until_ns] if self.until_ns is not None else []
        return np.logical_and.reduce(flags) if flags else None


ALL = Choice()


def read_split(
    split: Split, schema: pa.Schema = PACKETS_SCHEMA, choice: Choice = ALL
) -> Iterator[pa.RecordBatch]:
    """The packets of a part as rows of `packets`, or of those columns that the schema has."""
    maker = TableMaker(split.path, schema)
    for packets in _packets(split):
        if not isinstance(packets, Problem) and len(packets):
            yield _rows(packets, maker, choice)


def read_errors(split: Split) -> Iterator[pa.RecordBatch]:
    """The problems of a part as rows of `capture_errors`."""
    for packets in _packets(split):
        problems = [packets] if isinstance(packets, Problem) else packets.problems()
        if problems:
            yield errors_batch(split.path, problems)


def read_both(
    split: Split, schema: pa.Schema = PACKETS_SCHEMA
) -> Iterator[tuple[pa.RecordBatch | None, Sequence[Problem]]]:
    """The packets of a part as rows, with its problems, in one pass."""
    maker = TableMaker(split.path, schema)
    for packets in _packets(split):
        if isinstance(packets, Problem):
            yield None, [packets]
        else:
            rows = _rows(packets, maker, ALL) if len(packets) else None
            yield rows, packets.problems()


def _packets(split: Split) -> Iterator[Packets | Problem]:
    for frames in read_frames(split):
        yield frames if isinstance(frames, Problem) else Packets(frames)


def _rows(packets: Packets, maker: TableMaker, choice: Choice) -> pa.RecordBatch:
    rows, kept = maker.batch(packets), choice.keeps(packets)
    return rows if kept is None else rows.filter(pa.array(kept))
