"""What tables are made of: contents, packets, messages, the ways of events, and checks on them."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.captures import PACKETS_SCHEMA
from analysis.errors import AnalysisError
from analysis.metrics import checks
from analysis.metrics import routing as metrics
from analysis.run_directory import RunFiles
from analysis.tables import events as event_tables
from analysis.tables import packets as packet_tables
from analysis.tables.content import box_bits, is_match, point_bits
from analysis.tables.schemas import conform
from tests.fixtures.literal_frames import literal, row_of, rows_of
from topologies.underlay import Channel, Host, Link, Router, Underlay
from workloads.content.subscription import Point, Subscription

LINE = Underlay(
    (Router("r1"), Router("r2")),
    (
        Link("r1", "r2", Channel(1_000), Channel(2_000)),
        Link("h1", "r1", Channel(10), Channel(20)),
        Link("h2", "r2", Channel(30), Channel(40)),
    ),
    (Host("h1"), Host("h2")),
)


def records(spark: SparkSession, *rows: tuple[int, str, str, dict[str, Any]]) -> DataFrame:
    names = ("time_us", "host", "what", "values")
    columns = [[r[at] if at < 3 else json.dumps(r[3]) for r in rows] for at in range(4)]
    types = (pa.int64(), pa.string(), pa.string(), pa.string())
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return spark.createDataFrame(pa.table(dict(zip(names, arrays, strict=True))))


def test_contents_match_as_agents_match_them(spark: SparkSession) -> None:
    chance = Random(5)
    boxes = [0, 66**5 - 1, *(chance.randrange(66**5) for _ in range(150))]
    points = [0, 11**5 - 1, *(chance.randrange(11**5) for _ in range(150))]
    frame = spark.createDataFrame(pa.table({"box": boxes, "point": points}))
    bits = frame.select("box", "point", box_bits(F.col("box")), point_bits(F.col("point")))
    ours = bits.toDF("box", "point", "b", "p").withColumn(
        "is_match", is_match(F.col("b"), F.col("p"))
    )
    for row in rows_of(ours):
        box, point = Subscription(row["box"]), Point(row["point"])
        assert (row["b"], row["p"]) == (box.bits, point.bits)
        assert row["is_match"] == box.matches(point)


def test_a_message_is_one_row_however_often_it_was_sent(spark: SparkSession) -> None:
    """Two copies over h1-r1-r2-h2, of which the first is lost on the way."""
    channels, nodes = packet_tables.channels(spark, LINE), packet_tables.nodes(spark, LINE)
    address = {row["node"]: row["address"] for row in rows_of(nodes)}
    sent = {"source": address["h1"], "target": address["h2"], "sender": address["h1"],
            "receiver": address["h2"], "protocol": "udp", "ttl": 64, "size_bytes": 70,
            "dropped": False, "kind": 9, "flags": 1, "hop_count": 2, "run_id": 1,
            "message_id": 77, "event_id": 5, "sent_us": 100}  # fmt: skip
    probe = dict.fromkeys(sent) | {k: sent[k] for k in ("source", "target", "protocol")}
    error = probe | {"source": address["r1"], "target": address["h1"], "protocol": "icmp"}
    log = [
        sent | {"time_us": 100, "link": "h1-r1", "direction": "ab"},
        sent | {"time_us": 110, "link": "r1-r2", "direction": "ab", "dropped": True},
        sent | {"time_us": 300, "link": "h1-r1", "direction": "ab"},
        sent | {"time_us": 310, "link": "r1-r2", "direction": "ab"},
        sent | {"time_us": 1_310, "link": "h2-r2", "direction": "ba"},
        probe | {"time_us": 5, "link": "h1-r1", "direction": "ab", "size_bytes": 9},
        error | {"time_us": 15, "link": "h1-r1", "direction": "ba", "size_bytes": 9},
    ]  # fmt: skip
    logged = spark.createDataFrame(pa.Table.from_pylist(log))
    crossings = packet_tables.logged_crossings(logged, channels)
    packets = conform(packet_tables.name_packets(crossings, nodes, None, {9: "Word"}), "packets")
    unicast = literal(spark, "unicast", {"source": "h1", "target": "h2", "crossings": 3})
    found = row_of(conform(packet_tables.messages(packets, channels, unicast), "messages"))
    assert found == {
        "sender": "h1", "receiver": "h2", "kind": 9, "kind_name": "Word", "message_id": 77,
        "event_id": 5, "hop_count": 2, "sent_us": 100, "is_reliable": True, "first_us": 100,
        "arrived_us": 1_350, "copies": 2, "copies_arrived": 1, "links": 3, "links_expected": 3,
        "packets": 5, "bytes": 350,
    }  # fmt: skip
    what = {row["what"]: row["packets"] for row in rows_of(packet_tables.traffic(packets))}
    assert what == {"Word": 2, "probe": 1, "icmp": 1}
    stress = literal(
        spark, "stress", {"event_id": 5, "link": "r1-r2", "direction": "ab", "copies": 2}
    )
    loads = {
        (row["from_node"], row["to_node"]): row
        for row in rows_of(
            conform(packet_tables.link_loads(packets, stress, channels), "link_loads")
        )
    }
    assert len(loads) == 6 and loads["r2", "r1"]["packets"] == 0
    busy = loads["r1", "r2"]
    assert (busy["packets"], busy["dropped"], busy["max_stress"], busy["events"]) == (2, 1, 2, 1)
    assert (loads["h1", "r1"]["probe_packets"], loads["r1", "h1"]["icmp_packets"]) == (1, 1)


@pytest.mark.parametrize(("name", "time_us"), [("run", 2_000_000), ("run.partial", 2_000_500)])
def test_clocks_drift_evenly_through_a_run_whose_end_is_known(
    name: str, time_us: int, spark: SparkSession
) -> None:
    """Stretched twofold, 10 s long, with a clock that was put forward by 5 ms in all."""
    clock = {"origin_ns": 1_000, "realtime_offset_ns": 7, "realtime_offset_end_ns": 5_000_007}
    experiment = {"backend": "emulation", "duration_s": 10.0, "time_scale": 2.0}
    run = RunFiles(Path(name), LINE, experiment, {"clock": clock})
    packet = {"ip_version": 4, "time_ns": 1_007 + 4_001_000_000}
    captured = spark.createDataFrame(pa.Table.from_pylist([packet], PACKETS_SCHEMA))
    crossings = packet_tables.captured_crossings(captured, packet_tables.channels(spark, LINE), run)
    assert row_of(crossings)["time_us"] == pytest.approx(time_us, abs=1)


def test_the_way_of_an_event_is_that_of_its_sender_and_one_link_more(spark: SparkSession) -> None:
    def came(host: str, sender: str, hops: int, event_id: int = 1) -> dict[str, Any]:
        return {"event_id": event_id, "host": host, "publisher": "a", "from_host": sender,
                "hops": hops, "link_us": 10 * hops}  # fmt: skip

    frame = literal(
        spark, "receptions",
        came("c", "b", 2), came("b", "a", 1), came("d", "c", 3), came("e", "gone", 3),
        came("f", "e", 4), came("b", "a", 1, event_id=2), came("a", "b", 2, event_id=2),
    )  # fmt: skip
    found = {
        (r["event_id"], r["host"]): (r["path_us"], "".join(r["path"]))
        for r in rows_of(event_tables.event_paths(frame.drop("path", "path_us")))
    }
    assert found == {
        (1, "b"): (10, "ab"), (1, "c"): (30, "abc"), (1, "d"): (60, "abcd"), (2, "b"): (10, "ab"),
    }  # fmt: skip


def test_an_interest_lasts_until_undone_or_its_agent_or_the_run_ends(spark: SparkSession) -> None:
    said = records(
        spark,
        (10, "h1", "subscribed", {"subscription": 7}),
        (20, "h1", "subscribed", {"subscription": 8}),
        (50, "h1", "unsubscribed", {"subscription": 7}),
        (70, "h1", "subscribed", {"subscription": 7}),
        (0, "h2", "agent_started", {}),
        (5, "h2", "subscribed", {"subscription": 7}),
        (60, "h2", "agent_started", {}),
        (61, "h2", "subscribed", {"subscription": 7}),
    )
    ends = event_tables.agent_ends(spark, said, [(40, "h2")]).cache()
    assert {tuple(row) for row in ends.collect()} == {("h2", 40), ("h2", 60)}
    spans = {
        (r["host"], r["subscription"], r["from_us"], r["until_us"])
        for r in rows_of(event_tables.interests(said, ends, 100))
    }
    assert spans == {
        ("h1", 7, 10, 50), ("h1", 8, 20, 100), ("h1", 7, 70, 100), ("h2", 7, 5, 40),
        ("h2", 7, 61, 100),
    }  # fmt: skip


def test_an_agent_that_says_no_more_has_ended_unless_nobody_does(spark: SparkSession) -> None:
    said = [(0, "h1", "x", {}), (7, "h1", "x", {}), (3, "h2", "x", {}), (5, "h3", "x", {})]
    silent = records(spark, *said)
    assert event_tables.agent_ends(spark, silent, [(4, "h3")]).collect() == [("h3", 4)]
    told = records(spark, *said, (9, "h2", "agent_ended", {}))
    ends = event_tables.agent_ends(spark, told, [(4, "h3")]).collect()
    assert sorted(map(tuple, ends)) == [("h1", 7), ("h3", 4)]


def test_a_link_of_a_tree_ends_when_no_end_has_it(spark: SparkSession) -> None:
    nodes = packet_tables.nodes(spark, LINE)
    at = {row["node"]: row["address"] for row in rows_of(nodes)}

    def link(time_us: int, host: str, change: str, peer: str, version: int) -> Any:
        return time_us, host, f"tree_link_{change}", {"version": version, "peer": at[peer]}

    said = records(
        spark,
        link(10, "h1", "added", "h2", 1), link(12, "h2", "added", "h1", 1),
        link(30, "h2", "removed", "h1", 1), link(33, "h1", "removed", "h2", 1),
        link(40, "h2", "added", "h1", 2),
        # h2 dies at 60 and says nothing; h1 notices later, or has died as well.
        link(41, "h1", "added", "h2", 3), link(42, "h2", "added", "h1", 3),
        link(70, "h1", "removed", "h2", 3),
        link(43, "h2", "added", "h1", 4), link(44, "h1", "added", "h2", 4),
        link(80, "h1", "added", "h2", 5), link(81, "h2", "added", "h1", 5),
    )  # fmt: skip
    ends = spark.createDataFrame([("h2", 60), ("h2", 30)], "host string, end_us long")
    unicast = literal(
        spark, "unicast",
        {"source": "h1", "target": "h2", "delay_us": 5},
        {"source": "h2", "target": "h1", "delay_us": 6},
    )  # fmt: skip
    found = event_tables.tree_edges(said, nodes, unicast, ends)
    first, *others = rows_of(conform(found, "tree_edges"))
    assert first == {
        "version": 1, "a": "h1", "b": "h2", "added_us": 10, "removed_us": 33, "ends": 2,
        "delay_us": 5, "delay_back_us": 6,
    }  # fmt: skip
    # Version 4 is still held by h1; in version 5, h2 has come back.
    assert [(row["version"], row["removed_us"], row["ends"]) for row in others] == [
        (2, 60, 1), (3, 70, 2), (4, None, 2), (5, None, 2),
    ]  # fmt: skip


def test_checks_notice_what_is_missing(spark: SparkSession) -> None:
    message = {"sender": "h1", "receiver": "h2", "kind_name": "Word", "copies": 2, "packets": 6,
               "arrived_us": 9, "links": 3, "links_expected": 3}  # fmt: skip
    messages = literal(
        spark, "messages", message, message | {"copies": 1, "links": 2, "packets": 2}
    )
    loads = literal(spark, "link_loads", {"message_packets": 9})
    kinds = spark.createDataFrame(
        pa.Table.from_pylist([{"sender": "h1", "kind_name": "Word", "sent": 3, "unsent": 0}])
    )
    copies = spark.createDataFrame(pa.Table.from_pylist([{"sender": "h1", "copies_counted": 3}]))
    assert checks.judge_check(row_of(checks.sent_by_kind(messages, kinds))) == {
        "ok": False, "expected": 3, "found": 2, "differing": 1,
    }  # fmt: skip
    assert checks.judge_check(row_of(checks.copies_sent(messages, copies)))["ok"]
    whole = checks.judge_check(row_of(checks.whole_routes(messages)))
    assert whole == {"ok": False, "expected": 2, "found": 1}
    orphans = checks.judge_check(row_of(checks.packets_of_messages(messages, loads)))
    assert orphans == {"ok": False, "expected": 9, "found": 8}
    assert checks.failing({"routes_whole": whole, "fine": {"ok": True}}) == (
        "routes_whole: expected 2, found 1"
    )


def test_a_reception_without_a_packet_on_a_link_is_noticed(spark: SparkSession) -> None:
    receptions = literal(spark, "receptions", {"event_id": 1, "from_host": "h1", "host": "h2"})
    way = [("h1-r1", "ab"), ("r1-r2", "ab"), ("h2-r2", "ba")]
    links = spark.createDataFrame(
        pa.Table.from_pylist(
            [{"from_host": "h1", "host": "h2", "link": name, "direction": d} for name, d in way]
        )
    )
    packet = {"is_ours": True, "event_id": 1, "source_host": "h1", "target_host": "h2"}
    rows = [packet | {"link": name, "direction": d} for name, d in way]
    lost = rows[2] | {"dropped": True}
    for packets, found in (
        (rows, 3), ([*rows, lost], 3), ([rows[0], rows[0], rows[2]], 2), ([*rows[:2], lost], 2),
    ):  # fmt: skip
        frame = literal(spark, "packets", *packets)
        check = checks.judge_check(row_of(checks.receptions_on_links(receptions, frame, links)))
        assert check == {"ok": found == 3, "expected": 3, "found": found}


def test_an_arrival_that_no_agent_recorded_is_noticed(spark: SparkSession) -> None:
    def came(event_id: int, receiver: str, **changes: Any) -> dict[str, Any]:
        way = {"sender": "h1", "receiver": receiver, "arrived_us": 50}
        return {"event_id": event_id, **way} | changes

    messages = [
        came(1, "h2"), came(1, "h2", sender="h3", arrived_us=60), came(1, "h3"),
        came(1, "h1", sender="h2"),  # its publisher
        came(2, "h2", arrived_us=None), came(3, "h2", arrived_us=100), came(4, "gone"),
        came(5, "h2", sender="gone"), came(6, "lossy"), came(None, "h2"),
    ]  # fmt: skip
    receptions = [{"event_id": 1, "host": host} for host in ("h2", "h3", "gone")]
    until = {"h1": 100, "h2": 100, "h3": 100, "lossy": None}
    lasting = spark.createDataFrame(list(until.items()), "host string, until_us long")

    def check(received: list[Any]) -> dict[str, Any]:
        frames = {
            "messages": messages,
            "receptions": received,
            "events": [{"event_id": 1, "publisher": "h1"}],
        }
        tables = (literal(spark, name, *rows) for name, rows in frames.items())
        return checks.judge_check(row_of(checks.arrivals_received(*tables, lasting)))

    assert check(receptions) == {"ok": True, "expected": 2, "found": 2}
    assert check(receptions[1:]) == {"ok": False, "expected": 2, "found": 1}


def test_delays_are_compared_by_records_and_by_packets(spark: SparkSession) -> None:
    """Events 1 to 4 go from h1 over h2 to h3; each hop takes 1 ms, agents 10 us at either end."""
    deliveries = [
        {"event_id": event, "publisher": "h1", "host": host, "delay_us": delay_us, "copy": 1,
         "unicast_us": 500, "is_own": False}
        for event in (1, 2, 3, 4)
        for host, delay_us in (("h2", 1_020), ("h3", 2_040))
    ]  # fmt: skip
    own = {"event_id": 1, "publisher": "h1", "host": "h1", "delay_us": 0, "copy": 1, "is_own": True}
    messages = [
        {"event_id": event, "sender": sender, "receiver": receiver, "sent_us": sent_us,
         "first_us": sent_us + 10, "arrived_us": sent_us + 1_010}
        for event in (1, 2, 3, 4)
        for sender, receiver, sent_us in (
            ("h1", "h2", event * 10_000), ("h2", "h3", event * 10_000 + 1_020),
        )
    ]  # fmt: skip
    repeated = messages[0] | {"sent_us": 15_000, "first_us": 15_010, "arrived_us": 16_000}

    def check(delivered: list[Any], sent: list[Any], agents_us: float = 30) -> dict[str, Any]:
        miles = [{"to_node": host, "delay_us": 40} for host in ("h1", "h2", "h3")]
        frames = {"deliveries": delivered, "messages": sent, "link_loads": miles}
        delays = metrics.packet_delays(*(literal(spark, n, *rows) for n, rows in frames.items()))
        return checks.judge_check(row_of(checks.delays_agree(delays, agents_us)))

    found = check([*deliveries, own], [*messages, repeated])
    assert (found["ok"], found["expected"], found["found"]) == (True, 8, 8)
    assert found["packets_us"]["mean"] == 1_520 and found["records_us"]["mean"] == 1_530
    assert found["difference_us"] == {"mean": 10, "p50": 10, "p99": 10}
    # Publishers that hold packets back contradict what the packets say of themselves.
    slow = [message | {"first_us": message["sent_us"] + 500} for message in messages]
    held_back = check(deliveries, slow)
    assert (held_back["ok"], held_back["found"], held_back["differing"]) == (False, 0, 8)
    assert check(deliveries, slow, agents_us=500)["ok"]
    # One record that is late is no contradiction, most of them are; so is one before its packet.
    late = [delivery | {"delay_us": delivery["delay_us"] + 50} for delivery in deliveries]
    held_up = check([late[0], *deliveries[1:]], messages)
    assert (held_up["ok"], held_up["expected"], held_up["found"]) == (True, 8, 7)
    for tampered in (
        check([*late[:5], *deliveries[5:]], messages),
        check([deliveries[0] | {"delay_us": 940}, *deliveries[1:]], messages),
        check(deliveries, [messages[0] | {"arrived_us": 11_090}, *messages[1:]]),
        check(deliveries, [messages[0] | {"sent_us": 9_000}, *messages[1:]]),
        check(deliveries, [messages[0] | {"first_us": 9_000}, *messages[1:]]),
    ):
        assert not tampered["ok"], tampered
    without = check(deliveries, messages[:-1])
    assert (without["expected"], without["found"]) == (7, 7)
    assert check([own], []) == {"ok": True, "expected": 0, "found": 0}


def test_a_table_without_a_column_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(AnalysisError, match="table traffic: expected the columns bytes, found"):
        conform(literal(spark, "traffic").drop("bytes"), "traffic")
