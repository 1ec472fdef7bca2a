"""The classic format: a file header, then records with a header of 16 bytes each.

Records have no mark, so a file is read from its beginning, and what follows a
damaged record is not read. See draft-ietf-opsawg-pcap.
"""

from collections.abc import Iterator
from functools import partial
from struct import Struct

import numpy as np

from analysis.captures.frames import (
    NEVER,
    Clock,
    Frames,
    Interface,
    InterfaceTable,
    Order,
    Position,
    Records,
    Section,
)
from analysis.captures.layouts import Bytes, Ints, gather, layout
from analysis.captures.problems import BAD_VERSION, CUT_SHORT, IMPOSSIBLE_LENGTH, Problem
from analysis.captures.streams import (
    MOST_CAPTURED_BYTES,
    RECORDS_A_STRETCH,
    Window,
    guess_places,
    walk_abreast,
)

_FILE_HEADER = "IHHiIII"  # magic, version, version, zone, accuracy, longest packet, link type
FILE_HEADER_BYTES, LINK_TYPE_AT = 24, 20
RECORD_HEADER_BYTES = 16
_MICROSECONDS, _NANOSECONDS = 0xA1B2C3D4, 0xA1B23C4D
_VERSION, _MINOR_VERSION = 2, 4
_LINK_TYPE_BITS = 0x03FF_FFFF  # the bits above have the length of checksums


def read_section(window: Window) -> Section | None:
    """The section of the file header, or None if this is not a pcap file."""
    if window.size < 4:
        return None
    order: Order
    for order in ("<", ">"):
        (magic,) = Struct(order + "I").unpack_from(window.view)
        if magic in (_MICROSECONDS, _NANOSECONDS):
            header = bytes(window.view[:FILE_HEADER_BYTES]).ljust(FILE_HEADER_BYTES, b"\0")
            fields = Struct(order + _FILE_HEADER).unpack(header)
            clock = Clock(exponent=6 if magic == _MICROSECONDS else 9)
            interface = Interface("0", fields[6] & _LINK_TYPE_BITS, clock)
            return Section("pcap", order, InterfaceTable([interface]))
    return None


def header_problem(window: Window, section: Section) -> Problem | None:
    """The problem of the file header that prevents reading, or None."""
    if window.size < FILE_HEADER_BYTES:
        return Problem(
            0, CUT_SHORT, f"expected a header of {FILE_HEADER_BYTES} bytes, found {window.size}"
        )
    (version,) = Struct(section.order + "H").unpack_from(window.view, 4)
    if version != _VERSION:
        return Problem(
            4, BAD_VERSION, f"expected pcap version {_VERSION}, found {version}; nothing is read"
        )
    return None


def minor_version_problem(window: Window, section: Section) -> Problem | None:
    """The problem to report for a minor version other than the usual one."""
    (minor,) = Struct(section.order + "H").unpack_from(window.view, 6)
    if minor == _MINOR_VERSION:
        return None
    expected = f"{_VERSION}.{_MINOR_VERSION}"
    text = f"expected pcap version {expected}, found {_VERSION}.{minor}; it is read as {expected}"
    return Problem(6, BAD_VERSION, text)


def read_frames(window: Window, section: Section, number: int) -> Iterator[Frames]:
    """All packets from the beginning of the window."""
    length_at = Struct(section.order + "8xI")
    ticks_per_s = 10 ** section.table.interfaces[0].clock.exponent
    read_records = partial(_read_records, _layout(section.order), ticks_per_s)
    is_over = False
    while not is_over:
        heads, end, problem = _walk(window, length_at, section.order)
        is_over = problem is not None
        at = Position(window.offset + end, number + len(heads), section)
        problems = [problem] if problem else []
        if len(heads) or problems:
            yield Frames(window, heads, read_records, section.table, number, at, problems)
        number += len(heads)
        if not is_over and not window.move(end):
            is_over = True
            if window.size:
                problem = _cut_short(window, length_at)
                none = np.zeros(0, np.int64)
                yield Frames(window, none, read_records, section.table, number, at, [problem])


def _walk(window: Window, length_at: Struct, order: Order) -> tuple[Ints, int, Problem | None]:
    """The offsets of whole records, the end of the last one, and the problem of the next."""
    sample, at = _walk_singly(window, length_at, 0, RECORDS_A_STRETCH)
    places = _guess_places(window, order, at) if len(sample) == RECORDS_A_STRETCH else [at]
    abreast, at = _walk_abreast(window, order, places)
    rest, at = _walk_singly(window, length_at, at)
    heads = np.concatenate((sample, abreast, rest))
    if at > window.size:
        heads, at = heads[:-1], int(heads[-1])
    lengths = np.diff(heads, append=at) - RECORD_HEADER_BYTES
    if len(lengths) and lengths.max() > MOST_CAPTURED_BYTES:
        first = int(np.argmax(lengths > MOST_CAPTURED_BYTES))
        heads, at = heads[:first], int(heads[first])
    return heads, at, _impossible(window, at, length_at)


def _walk_singly(
    window: Window, length_at: Struct, at: int, most: int | None = None
) -> tuple[Ints, int]:
    """The offsets of records from a start, the last possibly incomplete, and their end."""
    view, last = window.whole_view, window.size - RECORD_HEADER_BYTES
    heads: list[int] = []
    append, unpack_from = heads.append, length_at.unpack_from
    while at <= last and len(heads) != most:
        append(at)
        at += RECORD_HEADER_BYTES + unpack_from(view, at)[0]
    return np.fromiter(heads, np.int64, len(heads)), at


def _guess_places(window: Window, order: Order, at: int) -> list[int]:
    """Probable offsets of records, about equally far apart.

    Packets near each other were captured within hours: the upper half of their seconds is equal.
    """
    view, unpack_from = window.whole_view, Struct(order + "8xII").unpack_from
    mark_at = 2 if order == "<" else 0
    mark = bytes(view[at + mark_at : at + mark_at + 2])
    last = window.size - RECORD_HEADER_BYTES

    def looks_right(marked: int) -> bool:
        captured, wire = unpack_from(view, marked - mark_at)
        following = marked + RECORD_HEADER_BYTES + captured
        return 0 < captured <= wire and following < last and view[following : following + 2] == mark

    marked = guess_places(window.buffer, mark, looks_right, at + mark_at, at, last)
    return [place - mark_at for place in marked]


def _walk_abreast(window: Window, order: Order, places: list[int]) -> tuple[Ints, int]:
    count = window.size + 1
    lengths: Ints = np.ndarray((count,), order + "u4", window.buffer, offset=8, strides=(1,))

    def following(at: Ints) -> Ints:
        behind: Ints = at + lengths[at] + RECORD_HEADER_BYTES
        return np.minimum(behind, window.size)

    return walk_abreast(np.array(places, np.int64), following)


def _impossible(window: Window, at: int, length_at: Struct) -> Problem | None:
    if at > window.size - RECORD_HEADER_BYTES:
        return None
    (length,) = length_at.unpack_from(window.view, at)
    if length <= MOST_CAPTURED_BYTES:
        return None
    return Problem(
        window.offset + at,
        IMPOSSIBLE_LENGTH,
        f"expected at most {MOST_CAPTURED_BYTES} bytes, found {length}; the rest is unread",
    )


def _cut_short(window: Window, length_at: Struct) -> Problem:
    wanted = RECORD_HEADER_BYTES
    if window.size >= RECORD_HEADER_BYTES:
        wanted += length_at.unpack_from(window.view)[0]
    return Problem(
        window.offset, CUT_SHORT, f"expected a record of {wanted} bytes, found {window.size}"
    )


def _read_records(form: np.dtype[np.void], ticks_per_s: int, data: Bytes, head: Ints) -> Records:
    rows = gather(data, head, form)
    fraction = rows["fraction"]
    ticks = rows["seconds"].astype(np.uint64) * np.uint64(ticks_per_s) + fraction
    # Not carried over into the seconds: such a fraction is damaged.
    is_fraction = fraction < ticks_per_s
    are_fractions = bool(is_fraction.all())
    if not are_fractions:
        ticks[~is_fraction] = NEVER
    return Records(
        start=head + RECORD_HEADER_BYTES,
        captured=rows["captured"].astype(np.int64),
        wire=rows["wire"].astype(np.int64),
        ticks=ticks,
        fraction=None if are_fractions else fraction,
        interface=None,
    )


def _layout(order: Order) -> np.dtype[np.void]:
    form = order + "u4"
    return layout(
        RECORD_HEADER_BYTES,
        seconds=(form, 0),
        fraction=(form, 4),
        captured=(form, 8),
        wire=(form, 12),
    )
