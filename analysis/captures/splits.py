"""Parts of captures that can be read apart from each other, and which parts a file has.

Records say nothing about where they are, so a large file is first walked from record to record
without looking into them, which takes a fraction of the time that reading does. Every part then
starts at a record, and knows the number of its first packet and the interfaces described before:
however many parts there are, the rows are the same. Compressed files are one part.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from analysis.captures import pcap, pcapng_blocks
from analysis.captures.frames import Frames, Position, Section
from analysis.captures.interfaces import InterfaceTable
from analysis.captures.link_layer import link_type_problem
from analysis.captures.pcapng import PcapngFrames
from analysis.captures.problems import (
    BAD_MAGIC,
    CANNOT_OPEN,
    CANNOT_READ,
    EMPTY,
    Problem,
)
from analysis.captures.streams import FileStream, Stream, is_packed, open_stream
from analysis.captures.window import CHUNK_BYTES, Window

SPLIT_BYTES = 32 << 20
_LEAST_CHUNK_BYTES, _MOST_CHUNK_BYTES = 1 << 20, 4 << 20


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
        return [Split(path)]  # reading it will say why


def read_frames(split: Split, chunk_bytes: int = CHUNK_BYTES) -> Iterator[Frames | Problem]:
    """The packets of a part, many at a time, and what is wrong with the file as a whole."""
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
    # The more at a time the quicker, but parts end where chunks do.
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
        yield Problem(0, BAD_MAGIC, f"expected pcap or pcapng, found a file that starts {found}")


def _pcap_from_header(window: Window, section: Section) -> Iterator[Frames | Problem]:
    problem = pcap.header_problem(window, section)
    if problem:
        yield problem
        return
    link_type = section.table.interfaces[0].link_type
    unknown = link_type_problem(link_type, pcap.LINK_TYPE_AT)
    if unknown:
        yield unknown
    window.move(pcap.FILE_HEADER_BYTES)
    yield from pcap.read_frames(window, section, 1)


_READERS: dict[str, Callable[[Window, Section, int], Iterable[Frames]]] = {
    "pcap": pcap.read_frames,
    "pcapng": PcapngFrames,
}
