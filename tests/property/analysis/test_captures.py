"""Real and generated captures with random changes: the reader never fails, and reports losses."""

import gzip
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from analysis.captures import PACKETS_SCHEMA, Split, plan_splits, problems, read_both
from tests.fixtures.capture_files import (
    BEFORE_IPV4,
    ETHERNET,
    MICRO,
    NANO,
    PLAIN,
    RAW,
    SHARED_CAPTURES,
    block,
    enhanced,
    ethernet,
    interface,
    ipv4,
    ipv6,
    pcap,
    section,
    udp,
)

# With any other reason for an error, the packet has its row.
LOSSES = {
    problems.EMPTY, problems.BAD_MAGIC, problems.BAD_VERSION, problems.DAMAGED_GZIP,
    problems.CUT_SHORT, problems.IMPOSSIBLE_LENGTH, problems.BAD_BLOCK, problems.UNKNOWN_BLOCK,
    problems.UNKNOWN_INTERFACE,
}  # fmt: skip
PCAPNG_MAGIC, PCAPNG_PACKETS = 0x0A0D0D0A, (2, 3, 6)
ODD_NUMBERS = (0, 1, 3, 4, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
LEAST_RECORD_BYTES = 12  # no packet occupies fewer bytes of a file


def made_captures() -> list[bytes]:
    error = ipv4(b"\x0b\0" + bytes(6) + ipv4(udp(), options=bytes(4)), 1)
    packets = [
        PLAIN,
        ethernet(error),
        ethernet(ipv6(bytes([17, 0]) + bytes(6) + udp(), 60), 0x86DD),
    ]
    behind = [(kind, before + ipv4(udp(b"x"))) for kind, before in BEFORE_IPV4.values()]
    packets += [packet for kind, packet in behind if kind == ETHERNET]
    ends = section() + interface(options=[(2, b"eth0"), (9, b"\x09")]) + interface(RAW)
    blocks = [enhanced(packet, 9, index % 2) for index, packet in enumerate(packets)]
    simple = block(3, struct.pack("<I", len(PLAIN)) + PLAIN)
    others = block(5, bytes(8)) + section(">") + interface(order=">")
    ng = ends + b"".join(blocks) + simple + others + enhanced(PLAIN, order=">")
    links = [pcap([bytes(16) + packet for packet in packets], kind) for kind in (0, 9, 113, 276)]
    links += [pcap([packet for kind, packet in behind if kind == of], of) for of in (9, 104, 107)]
    return [pcap(packets), pcap(packets, order=">"), ng, *links]


def shared_captures() -> list[bytes]:
    return [path.read_bytes() for path in sorted(SHARED_CAPTURES.glob("*"))]


def mutant(content: bytes, chance: Random) -> bytes:
    """A capture with changed bytes and numbers, and with parts removed, repeated or cut off."""
    changed = bytearray(content)
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(changed) + 1)
        size = chance.randrange(1, 40)
        match chance.randrange(6):
            case 0:
                changed[at : at + 1] = chance.randbytes(1)
            case 1:
                order = chance.choice("<>")
                changed[at : at + 4] = struct.pack(order + "I", chance.choice(ODD_NUMBERS))
            case 2:
                del changed[at : at + size]
            case 3:
                changed[at:at] = changed[at : at + size]
            case 4:
                changed[at:at] = chance.randbytes(size)
            case 5:
                del changed[at:]
    return bytes(changed)


def packets_in(content: bytes) -> int | None:
    """The number of packets by the capture's own lengths; None if they do not lead to its end."""
    try:
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        return packets_in_pcapng(content) if is_pcapng(content) else packets_in_pcap(content)
    except (EOFError, OSError, zlib.error, struct.error):
        return None


def is_pcapng(content: bytes) -> bool:
    return content.startswith(struct.pack("<I", PCAPNG_MAGIC))


def packets_in_pcap(content: bytes) -> int | None:
    little, big = (struct.unpack_from(order + "I", content)[0] for order in "<>")
    if not {little, big} & {MICRO, NANO}:
        return None
    order = "<" if little in (MICRO, NANO) else ">"
    at, count = 24, 0
    while at < len(content):
        at += 16 + struct.unpack_from(order + "8xI4x", content, at)[0]
        count += 1
    return count if at == len(content) else None


def packets_in_pcapng(content: bytes) -> int | None:
    at, count, order = 0, 0, "<"
    while at < len(content):
        if content[at : at + 4] == struct.pack("<I", PCAPNG_MAGIC):
            order = "<" if content[at + 8 : at + 12] == struct.pack("<I", 0x1A2B3C4D) else ">"
        kind, size = struct.unpack_from(order + "II", content, at)
        (size_again,) = struct.unpack_from(order + "I", content, at + max(size, 12) - 4)
        if size < 12 or size_again != size:
            return None
        count += kind in PCAPNG_PACKETS
        at += size
    return count if at == len(content) else None


def check(path: Path, content: bytes) -> tuple[int, int]:
    """Read a file, check its rows, and return the numbers of rows and errors.

    Either every packet has a row, or an error reports that something was left out.
    """
    path.write_bytes(content)
    packets = errors = 0
    is_lossy = False
    for rows, found in read_both(Split(str(path))):
        errors += len(found)
        assert all(problem.reason and problem.detail for problem in found)
        is_lossy |= any(problem.reason in LOSSES for problem in found)
        if rows is not None:
            rows.validate(full=True)
            assert rows.schema.equals(PACKETS_SCHEMA)
            assert rows["number"][0].as_py() == packets + 1
            packets += rows.num_rows
    assert is_lossy or packets == packets_in(content)
    return packets, errors


@pytest.mark.parametrize(
    ("source", "mutants"),
    [(made_captures, 1_500), (shared_captures, 10_000)],
    ids=["made", "shared"],
)
def test_mutants_are_read_or_reported(
    source: Callable[[], list[bytes]], mutants: int, tmp_path: Path
) -> None:
    originals = source()
    if not originals:
        pytest.skip("needs the shared captures")
    chance, path = Random(5), tmp_path / "capture"
    reported = 0
    for turn in range(mutants):
        changed = mutant(originals[turn % len(originals)], chance)
        packets, errors = check(path, changed)
        is_packed = changed.startswith(b"\x1f\x8b")
        assert is_packed or packets * LEAST_RECORD_BYTES <= len(changed)
        reported += errors > 0
    assert mutants // 4 < reported < mutants


def test_mutants_are_the_same_when_split(tmp_path: Path) -> None:
    chance, path = Random(6), tmp_path / "capture"
    bulk = [PLAIN] * 14_000
    for content in (pcap(bulk), section() + interface() + b"".join(map(enhanced, bulk))):
        for _ in range(6):
            changed = mutant(content, chance)
            whole = check(path, changed)
            splits = plan_splits(str(path), 1)
            parts = [read_both(split) for split in splits]
            counts = [
                (rows.num_rows if rows is not None else 0, len(problems))
                for part in parts
                for rows, problems in part
            ]
            assert whole == (sum(count for count, _ in counts), sum(count for _, count in counts))


def test_damaged_packed_files(tmp_path: Path) -> None:
    chance, path = Random(7), tmp_path / "capture.gz"
    packed = gzip.compress(pcap([ethernet(ipv4(udp(chance.randbytes(50)))) for _ in range(50)]))
    for _ in range(200):
        packets, errors = check(path, mutant(packed, chance))
        assert packets <= 500
        assert errors or packets == 50
