"""Real and made captures, changed at random: never a crash, and nothing is lost without a word."""

import gzip
import struct
from pathlib import Path
from random import Random

import pytest

from analysis.captures import PACKETS_SCHEMA, Split, plan_splits, read_both
from tests.capture_files import (
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

MUTANTS = 1_500
ODD_NUMBERS = (0, 1, 3, 4, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
LEAST_RECORD_BYTES = 12  # no packet takes less of a file


def made_captures() -> list[bytes]:
    error = ipv4(b"\x0b\0" + bytes(6) + ipv4(udp(), options=bytes(4)), 1)
    packets = [
        PLAIN,
        ethernet(error),
        ethernet(ipv6(bytes([17, 0]) + bytes(6) + udp(), 60), 0x86DD),
    ]
    packets += [ethernet(b"\0\1\x88\x47\1\2\1\xff" + ipv4(udp()), 0x8100)]
    ends = section() + interface(options=[(2, b"eth0"), (9, b"\x09")]) + interface(RAW)
    blocks = [enhanced(packet, 9, index % 2) for index, packet in enumerate(packets)]
    simple = block(3, struct.pack("<I", len(PLAIN)) + PLAIN)
    others = block(5, bytes(8)) + section(">") + interface(order=">")
    ng = ends + b"".join(blocks) + simple + others + enhanced(PLAIN, order=">")
    links = [pcap([bytes(16) + packet for packet in packets], kind) for kind in (0, 9, 113, 276)]
    return [pcap(packets), pcap(packets, order=">"), ng, *links]


def shared_captures() -> list[bytes]:
    return [path.read_bytes() for path in sorted(SHARED_CAPTURES.glob("*"))]


def mutant(content: bytes, chance: Random) -> bytes:
    """A capture with some bytes and numbers changed, and some cut out, doubled or left off."""
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


def check(path: Path, content: bytes) -> tuple[int, int]:
    """Read a file, check that the rows make sense, and return how many there are of each kind."""
    path.write_bytes(content)
    packets = errors = 0
    for rows, problems in read_both(Split(str(path))):
        errors += len(problems)
        assert all(problem.reason and problem.detail for problem in problems)
        if rows is not None:
            rows.validate(full=True)
            assert rows.schema.equals(PACKETS_SCHEMA)
            assert rows["number"][0].as_py() == packets + 1
            packets += rows.num_rows
    return packets, errors


@pytest.mark.parametrize("source", [made_captures, shared_captures], ids=["made", "shared"])
def test_mutants_are_read_or_reported(source: object, tmp_path: Path) -> None:
    originals = source() if callable(source) else []
    if not originals:
        pytest.skip("needs the shared captures")
    chance, path = Random(5), tmp_path / "capture"
    reported = 0
    for turn in range(MUTANTS):
        changed = mutant(originals[turn % len(originals)], chance)
        packets, errors = check(path, changed)
        is_packed = changed.startswith(b"\x1f\x8b")
        assert is_packed or packets * LEAST_RECORD_BYTES <= len(changed)
        # A file with neither packets nor errors is one that ends right behind its header.
        assert packets + errors > 0 or is_packed or len(changed) < 400
        reported += errors > 0
    assert MUTANTS // 4 < reported < MUTANTS


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
