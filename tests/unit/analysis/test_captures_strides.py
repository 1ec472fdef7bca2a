"""Records found in parallel are those found one by one, for any guesses of offsets."""

import struct
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from analysis.captures import Split, pcap, pcapng, read_both
from analysis.captures.streams import guess_places, walk_abreast
from tests.fixtures.capture_files import block, enhanced, interface, record, section
from tests.fixtures.capture_files import pcap as pcap_file

NOW_S = 1_700_000_000
HEADER = pcap_file([])
BLOCKS = section() + interface() + interface()


def bodies(chance: Random, count: int) -> list[bytes]:
    return [bytes(chance.choice((20, 60, 130))) for _ in range(count)]


def plain_pcap(chance: Random, order: str = "<") -> bytes:
    packets = [record(body, NOW_S, at, order) for at, body in enumerate(bodies(chance, 9_000))]
    return pcap_file([], order=order) + b"".join(packets)


def plain_pcapng(chance: Random, order: str = "<") -> bytes:
    begin = section(order) + interface(order=order)
    packets = [enhanced(body, at, order=order) for at, body in enumerate(bodies(chance, 9_000))]
    return begin + b"".join(packets)


def pcap_in_pcap(chance: Random) -> bytes:
    """Packets that contain bytes like plausible records."""
    inner = [record(bytes(14), NOW_S, 5) * 8, bytes(40)]
    return HEADER + b"".join(record(chance.choice(inner), NOW_S, 7) for _ in range(9_000))


def pcapng_in_pcapng(chance: Random) -> bytes:
    inner = [enhanced(bytes(16)) * 6, bytes(40)]
    return BLOCKS + b"".join(enhanced(chance.choice(inner), 7) for _ in range(6_000))


def pcap_from_the_epoch(chance: Random) -> bytes:
    """The pattern of a record is two zeros, and there is little else."""
    return HEADER + b"".join(record(body, 0, 1) for body in bodies(chance, 9_000))


def pcap_in_which_the_mark_changes(chance: Random) -> bytes:
    first_s = (25_000 << 16) - 4_000
    packets = enumerate(bodies(chance, 9_000), first_s)
    return HEADER + b"".join(record(body, seconds, 1) for seconds, body in packets)


def pcapng_with_other_blocks(chance: Random) -> bytes:
    """Some are too short for a packet; they belong to two interfaces and to one that does not
    exist.
    """
    others = [block(5, bytes(8)), interface(), block(6, b""), enhanced(b"stranger", number=99)]
    parts = [enhanced(body, number=chance.randrange(2)) for body in bodies(chance, 9_000)]
    for _ in range(20):
        parts.insert(chance.randrange(len(parts)), chance.choice(others))
    return BLOCKS + b"".join(parts)


def pcap_of_bursts(_: Random) -> bytes:
    """Long records first, so that stretches have more records than the reader follows."""
    sizes = [1_000] * 70 + [0] * 30_000 + [1_000] * 700
    return HEADER + b"".join(record(bytes(size), NOW_S, 1) for size in sizes)


def lengths_of_pcap(content: bytes) -> list[int]:
    """The lengths of packets, found sequentially."""
    lengths, at, order = [], 24, "<" if content[0] == 0xD4 else ">"
    while at < len(content):
        lengths += struct.unpack_from(order + "I", content, at + 8)
        at += 16 + lengths[-1]
    return lengths


def lengths_of_pcapng(content: bytes) -> list[int]:
    lengths, at, interfaces, order = [], 0, 0, "<" if content[8] == 0x4D else ">"
    while at < len(content):
        kind, size, number, _, _, length = struct.unpack_from(
            order + "6I", content.ljust(at + 24), at
        )
        interfaces += kind == 1
        if kind == 6 and size >= 32 and number < interfaces:
            lengths.append(length)
        at += size
    return lengths


@pytest.mark.parametrize(
    ("make", "most_alone"),
    [
        (plain_pcap, 0.2),
        (lambda chance: plain_pcap(chance, ">"), 0.2),
        (plain_pcapng, 0.2),
        (lambda chance: plain_pcapng(chance, ">"), 0.2),
        (pcap_in_pcap, 1),
        (pcapng_in_pcapng, 1),
        (pcap_from_the_epoch, 1),
        (pcap_in_which_the_mark_changes, 0.7),
        (pcapng_with_other_blocks, 1),
        (pcap_of_bursts, 1),
    ],
)
def test_no_record_is_missed_or_invented(
    make: Callable[[Random], bytes],
    most_alone: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content, path = make(Random(4)), tmp_path / "capture"
    path.write_bytes(content)
    abreast: list[int] = []

    def watched(*given: object) -> tuple[np.ndarray, int]:
        heads, at = walk_abreast(*given)  # type: ignore[arg-type]
        abreast.append(len(heads))
        return heads, at

    for module in (pcap, pcapng):
        monkeypatch.setattr(module, "walk_abreast", watched)
    read = [rows for rows, _ in read_both(Split(str(path))) if rows is not None]
    lengths = [length for rows in read for length in rows["captured_bytes"].to_pylist()]
    is_pcapng = content[:4] == BLOCKS[:4]
    assert lengths == (lengths_of_pcapng if is_pcapng else lengths_of_pcap)(content)
    assert len(lengths) > 3_000
    assert abreast and sum(abreast) >= (1 - most_alone) * len(lengths)


def chain(length: int) -> np.ndarray:
    """A chain of records, each of which begins at a multiple of 3 that is no multiple of 9."""
    following = np.arange(length) + 1
    for at in range(0, length, 3):
        following[at] = at + (6 if at % 9 == 6 else 3)
    return np.minimum(following, length - 1)


def test_records_after_a_wrong_guess_are_not_accepted() -> None:
    following = chain(9_000)
    true, at = [0], 0
    while at < 8_900:
        at = int(following[at])
        true.append(at)
    places = np.array([start for start in true[::50] if start < 8_500])
    heads, end = walk_abreast(places, lambda at: following[at])
    assert end == places[-1] and heads.tolist() == [start for start in true if start < end]
    wrong = places.copy()
    wrong[20] = next(at for at in range(int(wrong[20]), 9_000) if at not in true)
    heads, end = walk_abreast(wrong, lambda at: following[at])
    assert end == places[19] and heads.tolist() == [start for start in true if start < end]


def test_a_walk_without_progress_ends() -> None:
    places = np.arange(0, 3_000, 100)
    heads, end = walk_abreast(places, lambda at: np.where(at < 250, at + 10, at))
    assert end == 200 and heads.tolist() == list(range(0, 200, 10))


def test_guesses_are_spaced_and_few_are_tried() -> None:
    tried: list[int] = []

    def looks_right(at: int) -> bool:
        tried.append(at)
        return at > 500

    data = bytearray(b"x" * 1_000)
    assert guess_places(data, b"x", looks_right, 0, 100, 1_000) == [0, *range(512, 1_000, 100)]
    assert len(tried) == 4 * 4 + 5
