"""The newer format: blocks of many types, in sections, with a table of interfaces.

A block has its length at both ends. Where the two differ, the file is damaged, and what
follows is not read. A complete block with invalid content is skipped, and the next is read.
"""

from collections.abc import Iterator
from struct import Struct

import numpy as np

from analysis.captures import pcapng_blocks as blocks
from analysis.captures import problems as reasons
from analysis.captures.frames import Frames, InterfaceTable, Order, Position, Section
from analysis.captures.layouts import Ints
from analysis.captures.link_layer import link_type_problem
from analysis.captures.pcapng_blocks import FORMS, PacketForm, Words
from analysis.captures.problems import Problem
from analysis.captures.streams import RECORDS_A_STRETCH, Window, guess_places, walk_abreast

_MOST_BLOCK_BYTES = 1 << 19  # of a block in memory; a packet and its options are smaller
_MOST_INTERFACES = 1 << 16
_REST = "the rest is unread"


class PcapngFrames:
    """All packets from the beginning of the window."""

    def __init__(self, window: Window, section: Section, number: int) -> None:
        self._window = window
        self._order: Order = section.order
        self._table = InterfaceTable(list(section.table.interfaces))
        self._number = number
        self._at = 0
        self._form: PacketForm = FORMS[blocks.ENHANCED_PACKET]
        self._runs: list[Ints] = []
        self._problems: list[Problem] = []
        self._is_over = False
        self._words: Words = np.zeros(0, np.uint32)
        self._may_stride = True  # in this window

    def __iter__(self) -> Iterator[Frames]:
        """Read the file, one window after another."""
        self._see_words()
        while not self._is_over:
            yield from self._read_window()
            if self._is_over:
                break
            wanted = self._at - self._window.size
            before = self._window.offset + self._window.size
            moved = self._window.move(self._at)
            self._at = 0
            self._see_words()
            if not moved:
                self._is_over = True
                if self._window.offset < before + wanted:
                    self._note(reasons.CUT_SHORT, "the file ends within a block")
                elif self._window.size:
                    self._note(reasons.CUT_SHORT, self._what_is_cut())
        yield from self._flush()

    def _see_words(self) -> None:
        """The window as numbers in the machine's byte order; blocks begin at multiples of 4."""
        whole = self._window.data[: self._window.size & ~3]
        self._words = whole.view(self._order + "u4").astype(np.uint32, copy=False)
        self._may_stride = True

    def _read_window(self) -> Iterator[Frames]:
        while not self._is_over and self._at + blocks.LEAST_BLOCK_BYTES <= self._window.size:
            kind = int(self._words[self._at >> 2])
            if kind in FORMS:
                if FORMS[kind] is not self._form:
                    yield from self._flush()
                    self._form = FORMS[kind]
                if self._walk(kind):
                    continue
            elif kind == blocks.SECTION_HEADER:
                yield from self._flush()
            if not self._read_block(kind):
                break
        yield from self._flush()

    def _walk(self, kind: int) -> bool:
        """Read packets up to the first other block, and return whether there were any."""
        begin = self._at >> 2
        sample, at = self._walk_singly(kind, begin, RECORDS_A_STRETCH)
        abreast = sample[:0]
        if len(sample) == RECORDS_A_STRETCH and self._may_stride:
            abreast, at = self._walk_abreast(kind, at, at - begin)
        rest, at = self._walk_singly(kind, at)
        heads = np.concatenate((sample, abreast, rest))
        if at > len(self._words):
            heads, at = heads[:-1], int(heads[-1])
        found = self._trusted(heads)
        if len(found) < len(heads):
            at = int(heads[len(found)])
        self._at = at << 2
        self._keep(found)
        return len(found) > 0

    def _walk_singly(self, kind: int, at: int, most: int | None = None) -> tuple[Ints, int]:
        """The offsets of packets from a start, the last possibly incomplete, and their end."""
        words, heads = self._words.data, list[int]()
        append, least, count = heads.append, self._form.least_bytes >> 2, len(words)
        while at + least <= count and words[at] == kind and len(heads) != most:
            size = words[at + 1] >> 2
            if size < least:
                break
            append(at)
            at += size
        return np.fromiter(heads, np.int64, len(heads)), at

    def _walk_abreast(self, kind: int, at: int, apart: int) -> tuple[Ints, int]:
        """The offsets of packets from a start, as far as they are found in parallel."""
        self._may_stride = False  # may find nothing where other blocks are in between
        words, last = self._words, len(self._words) - 2
        places = self._guess_places(kind, at, apart)

        def following(at: Ints) -> Ints:
            return np.minimum(at + (words[at + 1] >> 2), last)

        heads, at = walk_abreast(np.array(places, np.int64) >> 2, following)
        is_packet = (words[heads] == kind) & (words[heads + 1] >> 2 >= self._form.least_bytes >> 2)
        if not is_packet.all():
            other = int(np.argmin(is_packet))
            heads, at = heads[:other], int(heads[other])
        return heads, at

    def _guess_places(self, kind: int, at: int, apart: int) -> list[int]:
        """Probable offsets of packets, in bytes."""
        words, count, least = self._words.data, len(self._words), self._form.least_bytes >> 2

        def looks_right(place: int) -> bool:
            at = place >> 2
            size = words[at + 1] >> 2
            following = at + size
            return (
                place & 3 == 0
                and size >= least
                and following < count
                and words[following - 1] == words[at + 1]
                and words[following] == kind
            )

        mark = kind.to_bytes(4, "little" if self._order == "<" else "big")
        end = (count - 1) << 2
        return guess_places(self._window.buffer, mark, looks_right, at << 2, apart << 2, end)

    def _trusted(self, heads: Ints) -> Ints:
        """The blocks before the first whose lengths at both ends differ or are too large."""
        lengths = self._words[heads + 1]
        ends = self._words[heads + (lengths >> 2).astype(np.int64) - 1]
        wrong = (lengths != ends) | (lengths & 3 != 0) | (lengths > _MOST_BLOCK_BYTES)
        return heads[: int(np.argmax(wrong))] if wrong.any() else heads

    def _keep(self, heads: Ints) -> None:
        """Keep valid packets, and the problems of the others."""
        fits, knows = self._form.check(self._words, heads, self._order, len(self._table))
        good = fits & knows
        if not good.all():
            for index in np.flatnonzero(~good).tolist():
                place, wrong = int(heads[index]) << 2, not fits[index]
                self._note(
                    reasons.IMPOSSIBLE_LENGTH if wrong else reasons.UNKNOWN_INTERFACE,
                    "expected a packet that fits into its block; it is left out"
                    if wrong
                    else f"expected one of {len(self._table)} interfaces; the packet is left out",
                    place,
                )
            heads = heads[good]
        if len(heads):
            self._runs.append(heads << 2)

    def _flush(self) -> Iterator[Frames]:
        """The packets and problems since the last call."""
        if not self._runs and not self._problems:
            return
        heads = np.concatenate(self._runs) if self._runs else np.zeros(0, np.int64)
        first, self._number = self._number, self._number + len(heads)
        section = Section("pcapng", self._order, self._table)
        end = Position(self._window.offset + self._at, self._number, section)
        read = self._form.reader(self._order, self._table)
        problems, self._runs, self._problems = self._problems, [], []
        yield Frames(self._window, heads, read, self._table, first, end, problems)

    def _read_block(self, kind: int) -> bool:
        """Read or skip one block, and return whether to continue in this window."""
        view = self._window.view[self._at :]
        order = self._order
        if kind == blocks.SECTION_HEADER:
            found = blocks.section_order(view)
            if found is None:
                return self._stop(reasons.BAD_BLOCK, "expected a byte-order mark, found none")
            order = found
        (length,) = Struct(order + "I").unpack_from(view, 4)
        if length < blocks.LEAST_BLOCK_BYTES or length % 4:
            text = f"expected 12 bytes or more and a multiple of 4, found {length}"
            return self._stop(reasons.IMPOSSIBLE_LENGTH, text)
        if length > _MOST_BLOCK_BYTES:
            return self._pass_by(kind, length)
        if length > len(view):
            return False
        (end,) = Struct(order + "I").unpack_from(view, length - 4)
        if end != length:
            text = f"expected the length {length} again at the block's end, found {end}"
            return self._stop(reasons.BAD_BLOCK, text)
        self._take(kind, view[:length], order)
        if not self._is_over:
            self._at += length
        return not self._is_over

    def _take(self, kind: int, block: memoryview, order: Order) -> None:
        if kind == blocks.SECTION_HEADER:
            self._open_section(block, order)
        elif kind == blocks.INTERFACE:
            self._add_interface(block)
        elif kind in FORMS:
            text = f"expected {self._form.least_bytes} bytes or more, found {len(block)}"
            self._note(reasons.IMPOSSIBLE_LENGTH, text + "; the packet is left out")
        elif kind not in blocks.OF_NO_INTEREST:
            self._note(reasons.UNKNOWN_BLOCK, f"found type {kind:#x}; it is left out")

    def _open_section(self, block: memoryview, order: Order) -> None:
        if len(block) < blocks.LEAST_SECTION_BYTES:
            self._stop(reasons.IMPOSSIBLE_LENGTH, f"found a section header of {len(block)} bytes")
            return
        version = Struct(order + "HH").unpack_from(block, 12)
        if version not in blocks.VERSIONS:
            text = f"expected pcapng version 1.0 or 1.2, found {version[0]}.{version[1]}"
            self._stop(reasons.BAD_VERSION, text)
            return
        self._order, self._table = order, InterfaceTable()
        self._see_words()

    def _add_interface(self, block: memoryview) -> None:
        if len(block) < blocks.LEAST_INTERFACE_BYTES:
            self._stop(reasons.IMPOSSIBLE_LENGTH, f"found an interface of {len(block)} bytes")
        elif len(self._table) >= _MOST_INTERFACES:
            self._stop(reasons.BAD_BLOCK, f"expected at most {_MOST_INTERFACES} interfaces")
        else:
            interface, oddities = blocks.read_interface(block, self._order, len(self._table))
            self._table.add(interface)
            problem = link_type_problem(interface.link_type, self._window.offset + self._at)
            self._problems += [problem] if problem else []
            for oddity in oddities:
                self._note(reasons.BAD_OPTION, oddity)

    def _pass_by(self, kind: int, length: int) -> bool:
        """Skip a block that is too long to be in memory."""
        if kind in (blocks.SECTION_HEADER, blocks.INTERFACE):
            return self._stop(reasons.IMPOSSIBLE_LENGTH, f"found a description of {length} bytes")
        if kind not in blocks.OF_NO_INTEREST:
            text = f"found a block of type {kind:#x} with {length} bytes; it is left out"
            self._note(reasons.IMPOSSIBLE_LENGTH, text)
        self._at += length
        return self._at < self._window.size

    def _what_is_cut(self) -> str:
        if self._window.size < 8:
            return f"expected a block, found {self._window.size} bytes"
        length = int(self._words[1])
        return f"expected a block of {length} bytes, found {self._window.size}"

    def _note(self, reason: str, detail: str, at: int | None = None) -> None:
        place = self._at if at is None else at
        self._problems.append(Problem(self._window.offset + place, reason, detail))

    def _stop(self, reason: str, detail: str) -> bool:
        self._note(reason, f"{detail}; {_REST}")
        self._is_over = True
        return False
