"""The rows and errors of a capture are the same for all splits."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from analysis.captures import ERRORS_SCHEMA, PACKETS_SCHEMA, plan_splits, read_errors, read_split
from tests.fixtures.capture_files import (
    PLAIN,
    RAW,
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

MB = 1 << 20


def some_packet(chance: Random) -> bytes:
    size = chance.choice([0, 10, 100, 1_400])
    content = udp(bytes(size), chance.randrange(1 << 16), chance.choice([53, 7001]))
    kinds = [
        lambda: ethernet(ipv4(content)),
        lambda: ethernet(ipv4(content, options=bytes(8))),
        lambda: ethernet(ipv6(content), 0x86DD),
        lambda: ethernet(ipv4(b"\x0b\0" + bytes(6) + ipv4(content), 1)),
        lambda: ethernet(content)[: chance.randrange(60)],
    ]
    return chance.choice(kinds)()


@cache
def pcap_file() -> bytes:
    chance = Random(1)
    return pcap([some_packet(chance) for _ in range(8_000)])


@cache
def pcapng_file() -> bytes:
    """Sections of both byte orders, a growing number of interfaces, blocks of all types."""
    chance, content, order, interfaces = Random(2), [section(), interface()], "<", 1
    for ticks in range(8_000):
        choice = chance.randrange(1_000)
        if choice == 0:
            order = chance.choice("<>")
            content += [section(order), interface(RAW, [(2, b"new")], order)]
            interfaces = 1
        elif choice < 5:
            content.append(interface(1, [(2, b"eth%d" % ticks)], order))
            interfaces += 1
        elif choice < 20:
            kind = chance.choice([3, 4, 5, 0x77])
            content.append(block(kind, bytes(4 * chance.randrange(2, 50)), order))
        number = chance.randrange(interfaces + (choice < 30))
        content.append(enhanced(some_packet(chance), ticks, number, order))
    return b"".join(content)


def read_all(path: Path, split_bytes: int) -> tuple[int, pa.Table, pa.Table]:
    splits = plan_splits(str(path), split_bytes)
    packets = [batch for split in splits for batch in read_split(split)]
    problems = [batch for split in splits for batch in read_errors(split)]
    return (
        len(splits),
        pa.Table.from_batches(packets, PACKETS_SCHEMA),
        pa.Table.from_batches(problems, ERRORS_SCHEMA).sort_by([("offset", "ascending")]),
    )


@pytest.mark.parametrize(
    ("make", "damage"),
    [
        (pcap_file, b""),
        (pcap_file, b"\1\1"),
        (pcap_file, bytes(8) + b"\xff" * 50),
        (pcapng_file, b""),
        (pcapng_file, b"\1\1"),
        (pcapng_file, bytes(3 * MB)),
        (pcapng_file, block(10, bytes(MB)) + block(6, bytes(3 * MB)) + b"\1" * 60),
    ],
    ids=lambda value: value.__name__ if callable(value) else value[:4].hex(),
)
def test_any_number_of_splits_gives_the_same_rows(
    make: Callable[[], bytes], damage: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "capture"
    path.write_bytes(make() + damage)
    count, packets, problems = read_all(path, 1 << 30)
    assert count == 1
    assert packets["number"].to_pylist() == list(range(1, packets.num_rows + 1))
    for split_bytes in (1, MB + 1):
        more, same_packets, same_problems = read_all(path, split_bytes)
        assert more > 1
        assert same_packets.combine_chunks().equals(packets.combine_chunks())
        assert same_problems.combine_chunks().equals(problems.combine_chunks())


def test_rows_are_the_same_wherever_chunks_end(tmp_path: Path) -> None:
    """A long file is read in chunks; the expected rows come from single packets."""
    path, alone = tmp_path / "capture", tmp_path / "alone"
    chance = Random(3)
    packets = [some_packet(chance) for _ in range(200)]
    path.write_bytes(pcap([PLAIN] * 30_000 + packets * 50))
    (batches,) = ([*read_split(split)] for split in plan_splits(str(path)))
    table = pa.Table.from_batches(batches)
    assert len(batches) > 2
    alone.write_bytes(pcap(packets))
    expected = pa.Table.from_batches([*read_split(plan_splits(str(alone))[0])])
    left = ["file", "number", "time_ns"]
    for turn in range(50):
        part = table.slice(30_000 + turn * 200, 200).drop_columns(left)
        assert part.combine_chunks().equals(expected.drop_columns(left).combine_chunks())
