"""The packet log: exactly one row for every link that a packet crosses."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from agents.errors import AgentFailed
from agents.protocol import Send
from agents.runtime import packet_notes
from agents.runtime.packet_log import FILE_NAME, SCHEMA
from tests.fixtures.scripted import RUN, Stage, Word, line, ring
from topologies.hosts import attach_hosts, make_asymmetric
from topologies.routes import Routes
from topologies.underlay import Channel, Underlay
from topologies.waxman import generate_waxman

Row = dict[str, Any]


def by_packet(rows: list[Row]) -> dict[tuple[int, int], list[Row]]:
    packets = defaultdict(list)
    for row in rows:
        packets[row["sender"], row["message_id"]].append(row)
    return packets


def true_crossings(
    underlay: Underlay, routes: Routes, source: str, target: str, sent_us: int
) -> Iterator[tuple[int, str, str, int]]:
    """Time, link, direction and TTL of every crossing, computed one by one."""
    path, ttl = routes.path(source, target), 64
    for here, there in pairwise(path):
        (link,) = [link for link in underlay.links if {link.a, link.b} == {here, there}]
        channel, direction = (link.ab, "ab") if link.a == here else (link.ba, "ba")
        yield sent_us, link.name, direction, ttl
        sent_us += channel.delay_us
        ttl -= 1


@pytest.mark.parametrize("write_at", [1, 7, 1 << 15])
def test_every_datagram_has_a_row_on_every_link_of_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write_at: int
) -> None:
    monkeypatch.setattr(packet_notes, "WRITE_AT", write_at)
    underlay = make_asymmetric(attach_hosts(generate_waxman(30, seed=5), 6, seed=5), 0.8, seed=5)
    stage, routes = Stage(underlay, tmp_path), Routes(underlay)
    names = [host.name for host in underlay.hosts]
    for a in names:
        others = [stage.address(b) for b in names if b != a]
        stage.cast(a, {t: [Send(b, Word(t)) for b in others] for t in (0, 1_000, 50_000)})
    stage.run(1_000_000)
    packets = by_packet(stage.packets())
    assert len(packets) == 6 * 5 * 3 == len([r for r in stage.records if r[2] == "heard"])
    for rows in packets.values():
        source, target = (
            underlay.name_at[".".join(map(str, rows[0][end].to_bytes(4)))]
            for end in ("source", "target")
        )
        found = [(row["time_us"], row["link"], row["direction"], row["ttl"]) for row in rows]
        sent_us = rows[0]["sent_us"]
        assert found == list(true_crossings(underlay, routes, source, target, sent_us))
        assert {row["sender"] for row in rows} == {stage.address(source)}
        assert {row["receiver"] for row in rows} == {stage.address(target)}
        assert not any(row["dropped"] for row in rows)


def test_packets_are_lost_on_every_link_at_its_rate(tmp_path: Path) -> None:
    middle = [Channel(1_000, loss_percent=20), Channel(1_000, loss_percent=10)]
    stage = Stage(line(*middle), tmp_path)
    times_us = range(0, 4_000_000, 1_000)
    stage.cast("h1", {at_us: [Send(stage.address("h2"), Word(at_us))] for at_us in times_us})
    stage.cast("h2")
    stage.run(5_000_000)
    ways = Counter((len(rows), rows[-1]["dropped"]) for rows in by_packet(stage.packets()).values())
    first, second, arrived = ways[2, True], ways[3, True], ways[4, False]
    assert first + second + arrived == len(times_us)
    assert arrived == len(stage.heard("h2"))
    assert stage.simulator.counts == {"lost": first + second}
    assert abs(first / len(times_us) - 0.2) < 0.03  # more than four standard deviations
    assert abs(second / (len(times_us) - first) - 0.1) < 0.03


def test_a_row_has_the_documented_columns(tmp_path: Path) -> None:
    stage = Stage(line(), tmp_path)
    stage.cast("h1", {30: [Send(stage.address("h2"), Word(1))]})
    stage.run(10_000)
    assert pq.read_schema(tmp_path / FILE_NAME).names == SCHEMA.names
    assert SCHEMA.names[-9:] == [
        "kind", "flags", "hop_count", "run_id", "sender", "receiver", "message_id", "event_id",
        "sent_us",
    ]  # fmt: skip
    h1, h2 = stage.address("h1"), stage.address("h2")
    assert stage.packets()[1] == {
        "time_us": 130, "link": "r1-r2", "direction": "ab", "source": h1, "target": h2,
        "protocol": "udp", "ttl": 63, "size_bytes": 28 + 44, "dropped": False, "kind": 253,
        "flags": 0, "hop_count": 0, "run_id": RUN, "sender": h1, "receiver": h2,
        "message_id": 0, "event_id": 0, "sent_us": 30,
    }  # fmt: skip
    assert pq.ParquetFile(tmp_path / FILE_NAME).metadata.row_group(0).column(0).compression == (
        "ZSTD"
    )


def test_a_packet_that_cannot_be_written_is_the_senders_error(tmp_path: Path) -> None:
    stage = Stage(line(), tmp_path)
    stage.cast("h1", {30: [Send(stage.address("h2"), Word(-1))]})
    sender = IPv4Address(stage.address("h1"))
    with pytest.raises(AgentFailed, match=f"^agent {sender} at 0.000030 s: Word: "):
        stage.run(10_000)


def test_a_dropped_packet_has_a_row_that_states_it(tmp_path: Path) -> None:
    slow = Channel(1_000, rate_mbit=1.0, queue_packets=2)
    stage = Stage(line(Channel(1_000, loss_percent=50), slow), tmp_path)
    words = [Send(stage.address("h2"), Word(number)) for number in range(40)]
    stage.cast("h1", {0: list(words)})
    stage.cast("h2")
    stage.run(1_000_000)
    rows = stage.packets()
    dropped = dict.fromkeys(("h1-r1", "r1-r2", "r2-r3", "h2-r3"), 0)
    crossed = dict(dropped)
    for row in rows:
        dropped[row["link"]] += row["dropped"]
        crossed[row["link"]] += not row["dropped"]
    counts = stage.simulator.counts
    assert dropped == {
        "h1-r1": 0, "r1-r2": counts["lost"], "r2-r3": counts["overflowed"], "h2-r3": 0,
    }  # fmt: skip
    assert counts["lost"] and counts["overflowed"]
    heard = len(stage.heard("h2"))
    assert crossed["h2-r3"] == crossed["r2-r3"] == heard
    assert crossed["r1-r2"] == 40 - counts["lost"] == heard + counts["overflowed"]


def test_a_packet_on_a_link_that_is_cut_is_dropped_there(tmp_path: Path) -> None:
    stage = Stage(ring(), tmp_path)
    to = stage.address("h2")
    stage.cast("h1", {0: [Send(to, Word(0))], 900: [Send(to, Word(1))]})
    stage.simulator.set_link(1_500, "r2", "r3", up=False)
    stage.run(50_000)
    lost, rerouted = (rows for _, rows in sorted(by_packet(stage.packets()).items()))
    assert [(row["link"], row["time_us"], row["dropped"]) for row in lost] == [
        ("h1-r1", 0, False),
        ("r1-r2", 100, False),
        ("r2-r3", 1_100, True),
    ]
    assert [(row["link"], row["direction"], row["time_us"]) for row in rerouted] == [
        ("h1-r1", "ab", 900),
        ("r1-r2", "ab", 1_000),
        ("r1-r2", "ba", 2_000),
        ("r1-r4", "ab", 3_000),
        ("r4-r3", "ab", 4_500),
        ("h2-r3", "ba", 6_000),
    ]
    assert [row["ttl"] for row in rerouted] == list(range(64, 58, -1))


def test_packets_in_transit_at_the_end_have_rows_for_completed_crossings(tmp_path: Path) -> None:
    stage = Stage(line(), tmp_path)
    stage.cast("h1", {0: [Send(stage.address("h2"), Word(0))]})
    stage.run(1_500)
    found = [(row["link"], row["time_us"]) for row in stage.packets()]
    assert found == [("h1-r1", 0), ("r1-r2", 100), ("r2-r3", 1_100)]


def test_a_run_without_packets_leaves_an_empty_table(tmp_path: Path) -> None:
    stage = Stage(line(), tmp_path)
    stage.run(100)
    assert stage.packets() == []
