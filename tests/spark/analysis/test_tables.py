"""Tables of packets and messages, and the checks on them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from analysis.captures import PACKETS_SCHEMA
from analysis.errors import AnalysisError
from analysis.metrics import packet_checks as checks
from analysis.metrics.checks import failing, judge_check
from analysis.metrics.packet_summary import packet_delays
from analysis.run_directory import RecordedRun
from analysis.tables import packets as packet_tables
from analysis.tables.schemas import conform
from tests.fixtures.literal_frames import literal, row_of, rows_of
from topologies.underlay import Channel, Host, Link, Router, Underlay

LINE = Underlay(
    (Router("r1"), Router("r2")),
    (
        Link("r1", "r2", Channel(1_000), Channel(2_000)),
        Link("h1", "r1", Channel(10), Channel(20)),
        Link("h2", "r2", Channel(30), Channel(40)),
    ),
    (Host("h1"), Host("h2")),
)


def test_a_message_is_one_row_for_any_number_of_transmissions(spark: SparkSession) -> None:
    """Two copies cross h1-r1-r2-h2; the first is lost on the way."""
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
def test_a_clock_offset_is_spread_evenly_over_a_run_with_known_end(
    name: str, time_us: int, tmp_path: Path, spark: SparkSession
) -> None:
    """The time scale is 2, the run takes 10 s, and its clock was set forward by 5 ms in all."""
    clock = {"origin_ns": 1_000, "realtime_offset_ns": 7, "realtime_offset_end_ns": 5_000_007}
    experiment = {"backend": "emulation", "duration_s": 10.0, "time_scale": 2.0}
    run = RecordedRun(tmp_path / name)
    run.path.mkdir()
    (run.path / "run.json").write_text(json.dumps({"experiment": experiment}))
    (run.path / "verdict.json").write_text(json.dumps({"figures": {"clock": clock}}))
    packet = {"ip_version": 4, "time_ns": 1_007 + 4_001_000_000}
    captured = spark.createDataFrame(pa.Table.from_pylist([packet], PACKETS_SCHEMA))
    crossings = packet_tables.captured_crossings(captured, packet_tables.channels(spark, LINE), run)
    assert row_of(crossings)["time_us"] == pytest.approx(time_us, abs=1)


def test_checks_find_missing_packets_and_records(spark: SparkSession) -> None:
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
    assert judge_check(row_of(checks.sent_by_kind(messages, kinds))) == {
        "ok": False, "expected": 3, "found": 2, "differing": 1,
    }  # fmt: skip
    assert judge_check(row_of(checks.copies_sent(messages, copies)))["ok"]
    whole = judge_check(row_of(checks.whole_routes(messages)))
    assert whole == {"ok": False, "expected": 2, "found": 1}
    orphans = judge_check(row_of(checks.packets_of_messages(messages, loads)))
    assert orphans == {"ok": False, "expected": 9, "found": 8}
    assert failing({"routes_whole": whole, "fine": {"ok": True}}) == (
        "routes_whole: expected 2, found 1"
    )


def test_a_reception_without_a_packet_on_a_link_is_found(spark: SparkSession) -> None:
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
        check = judge_check(row_of(checks.receptions_on_links(receptions, frame, links)))
        assert check == {"ok": found == 3, "expected": 3, "found": found}


def test_an_arrival_that_no_agent_recorded_is_found(spark: SparkSession) -> None:
    def came(event_id: int, receiver: str, **changes: Any) -> dict[str, Any]:
        way = {"sender": "h1", "receiver": receiver, "arrived_us": 50}
        return {"event_id": event_id, **way} | changes

    messages = [
        came(1, "h2"), came(1, "h2", sender="h3", arrived_us=60), came(1, "h3"),
        came(1, "h1", sender="h2"),  # the publisher
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
        return judge_check(row_of(checks.arrivals_received(*tables, lasting)))

    assert check(receptions) == {"ok": True, "expected": 2, "found": 2}
    assert check(receptions[1:]) == {"ok": False, "expected": 2, "found": 1}


def test_copies_by_packets_and_by_records_are_compared_one_by_one(spark: SparkSession) -> None:
    def came(sender: str, receiver: str, arrived_us: int | None) -> dict[str, Any]:
        way = {"event_id": 1, "sender": sender, "receiver": receiver}
        return way | {"arrived_us": arrived_us}

    messages = [
        came("h1", "h2", 10), came("h1", "h2", 20), came("h2", "h1", 30), came("h1", "h2", None),
        came("h2", "h1", 200), came("gone", "h2", 40), came("h1", "gone", 40),
    ]  # fmt: skip
    until = spark.createDataFrame([("h1", 100), ("h2", 100)], "host string, until_us long")
    taken = [("h1", "h2"), ("h1", "h2"), ("h2", "h1"), ("gone", "h2")]

    def check(*ways: tuple[str, str]) -> dict[str, Any]:
        copies = [{"event_id": 1, "from_host": a, "host": b} for a, b in ways]
        tables = (literal(spark, "messages", *messages), literal(spark, "copies", *copies))
        return judge_check(row_of(checks.copies_received(*tables, until)))

    assert check(*taken) == {"ok": True, "expected": 3, "found": 3}
    assert check(*taken, ("h2", "h1")) == {"ok": True, "expected": 3, "found": 4}  # the late one
    assert check(*taken[1:]) == {"ok": False, "expected": 3, "found": 2, "differing": 1}
    again = check(*taken, ("h1", "h2"))
    assert again == {"ok": False, "expected": 3, "found": 4, "differing": 1}


def test_delays_by_records_and_by_packets_are_compared(spark: SparkSession) -> None:
    """Events 1 to 4 go from h1 over h2 to h3; a hop takes 1 ms, an agent 10 us on each side."""
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
        delays = packet_delays(*(literal(spark, n, *rows) for n, rows in frames.items()))
        return judge_check(row_of(checks.delays_agree(delays, agents_us)))

    found = check([*deliveries, own], [*messages, repeated])
    assert (found["ok"], found["expected"], found["found"]) == (True, 8, 8)
    assert found["packets_us"]["mean"] == 1_520 and found["records_us"]["mean"] == 1_530
    assert found["difference_us"] == {"mean": 10, "p50": 10, "p99": 10}
    # Delayed packets of publishers contradict the times in their packets.
    slow = [message | {"first_us": message["sent_us"] + 500} for message in messages]
    held_back = check(deliveries, slow)
    assert (held_back["ok"], held_back["found"], held_back["differing"]) == (False, 0, 8)
    assert check(deliveries, slow, agents_us=500)["ok"]
    # One late record is no contradiction; many late ones are, and so is one before its packet.
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
    assert check([own], []) == {"ok": None, "expected": 0, "found": 0}


def test_a_table_without_a_column_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(AnalysisError, match="table traffic: expected the columns bytes, found"):
        conform(literal(spark, "traffic").drop("bytes"), "traffic")
