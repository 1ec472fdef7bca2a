"""The metrics of event routing on a few literal rows, worked out by hand."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from analysis.analyze import gather
from analysis.metrics import routing as metrics
from tests.fixtures.literal_frames import literal, row_of, rows_of

# Event 1, published by a: to b directly, from b to c and to d, whom it does not concern.
# Event 2, published by c: to itself only.
DELIVERIES = [
    {"event_id": 1, "host": "b", "publisher": "a", "delay_us": 30, "unicast_us": 20,
     "opt_us": 20, "hops": 1, "path_us": 20, "is_own": False, "is_matching": True, "copy": 1},
    {"event_id": 1, "host": "c", "publisher": "a", "delay_us": 90, "unicast_us": 30,
     "opt_us": 45, "hops": 2, "path_us": 60, "is_own": False, "is_matching": True, "copy": 1},
    {"event_id": 1, "host": "c", "publisher": "a", "delay_us": 99, "unicast_us": 30,
     "opt_us": 45, "hops": 2, "path_us": 60, "is_own": False, "is_matching": True, "copy": 2},
    {"event_id": 2, "host": "c", "publisher": "c", "delay_us": 0, "unicast_us": 0,
     "opt_us": 0, "hops": 0, "path_us": 0, "is_own": True, "is_matching": False, "copy": 1},
]  # fmt: skip
RECEPTIONS: list[dict[str, Any]] = [
    {"event_id": 1, "host": "b", "publisher": "a", "from_host": "a", "is_match": True,
     "hops": 1, "link_us": 20, "path_us": 20, "path": ["a", "b"]},
    {"event_id": 1, "host": "c", "publisher": "a", "from_host": "b", "is_match": True,
     "hops": 2, "link_us": 40, "path_us": 60, "path": ["a", "b", "c"]},
    {"event_id": 1, "host": "d", "publisher": "a", "from_host": "b", "is_match": False,
     "hops": 2, "link_us": 10, "path_us": 30, "path": ["a", "b", "d"]},
]  # fmt: skip
UNICAST = [
    {"source": "a", "target": "b", "delay_us": 20},
    {"source": "b", "target": "c", "delay_us": 40},
    {"source": "b", "target": "d", "delay_us": 10},
]


@pytest.fixture(scope="module")
def deliveries(spark: SparkSession) -> DataFrame:
    return literal(spark, "deliveries", *DELIVERIES)


@pytest.fixture(scope="module")
def receptions(spark: SparkSession) -> DataFrame:
    return literal(spark, "receptions", *RECEPTIONS)


def packet(link: str, event_id: int | None, is_ours: bool = True, **more: Any) -> dict[str, Any]:
    ends = {"from_node": link[0], "to_node": link[-1], "direction": "ab"}
    return {"link": link, "event_id": event_id, "is_ours": is_ours, **ends, **more}


def test_link_stress_counts_copies_of_each_event_on_each_link_and_direction(
    spark: SparkSession,
) -> None:
    back = {"direction": "ba", "from_node": "y", "to_node": "x"}
    packets = literal(
        spark, "packets",
        packet("x-y", 1), packet("x-y", 1), packet("x-y", 1), packet("x-y", 1) | back,
        packet("x-y", 2), packet("y-z", 1), packet("x-y", None), packet("x-y", 1, is_ours=False),
    )  # fmt: skip
    stress = metrics.link_stress(packets)
    found = {(r["event_id"], r["link"], r["direction"]): r["copies"] for r in rows_of(stress)}
    assert found == {
        (1, "x-y", "ab"): 3, (1, "x-y", "ba"): 1, (2, "x-y", "ab"): 1, (1, "y-z", "ab"): 1,
    }  # fmt: skip
    assert row_of(metrics.stress_summary(stress)) == {"total": 6, "mean": 1.5, "max": 3, "count": 4}
    assert rows_of(metrics.stress_distribution(stress)) == [
        {"copies": 1, "times": 3},
        {"copies": 3, "times": 1},
    ]


def test_rdp_is_of_first_deliveries_to_others(deliveries: DataFrame) -> None:
    found = row_of(metrics.relative_delay(deliveries))
    assert found == {
        "mean": 2.25, "p50": 2.25, "p90": pytest.approx(2.85), "max": 3.0, "count": 2,
        "of_sums": 120 / 50,
    }  # fmt: skip
    paths = row_of(metrics.relative_delay(deliveries, "path_us"))
    assert (paths["mean"], paths["max"], paths["of_sums"]) == (1.5, 2.0, 80 / 50)
    assert row_of(metrics.delivery_hops(deliveries)) == {"mean": 1.5, "max": 2, "count": 2}


def test_false_positives_are_per_event_delivered_to_others(
    receptions: DataFrame, deliveries: DataFrame
) -> None:
    found = row_of(metrics.false_positives(receptions, deliveries))
    assert found == {"false_positives": 1, "delivered": 2, "share": 0.5}


def test_the_routing_load_times_delay_is_the_routing_cost(
    spark: SparkSession, receptions: DataFrame, deliveries: DataFrame
) -> None:
    unicast = literal(spark, "unicast", *UNICAST)
    loads = rows_of(metrics.routing_load(receptions, deliveries, unicast))
    assert {(r["from_host"], r["to_host"]): (r["load"], r["events"]) for r in loads} == {
        ("a", "b"): (2, 1), ("b", "c"): (1, 1), ("b", "d"): (0, 1),
    }  # fmt: skip
    cost = row_of(metrics.routing_cost(deliveries))
    assert sum(row["load"] * row["delay_us"] for row in loads) == cost["cost_us"] == 80
    assert (cost["opt_us"], cost["efficiency"]) == (65, 80 / 65)


def test_routing_efficiency_is_of_deliveries_with_both_paths_known(spark: SparkSession) -> None:
    lost = DELIVERIES[0] | {"event_id": 3, "path_us": None}
    alone = DELIVERIES[0] | {"event_id": 4, "opt_us": None, "path_us": 500}
    found = row_of(metrics.routing_cost(literal(spark, "deliveries", *DELIVERIES, lost, alone)))
    assert (found["cost_us"], found["paths"]) == (580, 3)
    assert (found["opt_us"], found["efficiency"]) == (65, 80 / 65)


def test_control_efficiency_counts_every_transmission(
    spark: SparkSession, receptions: DataFrame
) -> None:
    messages = literal(spark, "messages", {"copies": 1}, {"copies": 4}, {"copies": 0})
    found = row_of(metrics.control_efficiency(messages, receptions))
    assert found == {"sent": 5, "matching": 2, "ratio": 2.5}


def test_delivery_tells_what_was_owed_from_what_came(
    spark: SparkSession, deliveries: DataFrame
) -> None:
    owed = {"is_owed": True, "is_steady": True, "is_delivered": True}
    matches = literal(
        spark, "matches",
        owed, owed, owed | {"is_delivered": False}, owed | {"is_owed": False},
        owed | {"is_steady": False}, owed | {"is_steady": False, "is_delivered": False},
    )  # fmt: skip
    assert row_of(metrics.delivery(matches, deliveries)) == {
        "expected": 3, "delivered": 2, "unsteady_expected": 2, "unsteady_delivered": 1,
        "duplicates": 1, "unasked": 1,
    }  # fmt: skip


def test_counts_of_events_messages_and_packets(
    spark: SparkSession, receptions: DataFrame, deliveries: DataFrame
) -> None:
    events = literal(spark, "events", {"event_id": 1}, {"event_id": 2})
    message = {"kind": 9, "copies": 2, "packets": 6}
    messages = literal(
        spark, "messages",
        message | {"kind_name": "Word", "arrived_us": 5}, message | {"kind_name": "Word"}, message,
    )  # fmt: skip
    load = {"packets": 9, "message_packets": 5, "probe_packets": 3, "icmp_packets": 1}
    loads = literal(spark, "link_loads", load | {"bytes": 7, "dropped": 2}, load | {"bytes": 3})
    found = gather(
        {
            "events": metrics.event_counts(events, receptions, deliveries),
            "messages": metrics.message_counts(messages),
            "packets": metrics.packet_counts(loads),
        }
    )
    assert found["events"] == [
        {"published": 2, "received": 3, "in_vain": 1, "delivered": 2, "own": 1}
    ]
    assert sorted(found["messages"], key=lambda row: row["kind"]) == [
        {"kind": "Word", "sent": 2, "copies": 4, "arrived": 1, "packets": 12},
        {"kind": "kind 9", "sent": 1, "copies": 2, "arrived": 0, "packets": 6},
    ]
    assert found["packets"] == [
        {"total": 18, "ours": 10, "probes": 6, "icmp": 2, "bytes": 10, "dropped": 2}
    ]


def test_of_nothing_every_metric_is_null_or_0(spark: SparkSession) -> None:
    none = {
        name: literal(spark, name)
        for name in ("packets", "deliveries", "receptions", "messages", "matches", "unicast")
    }
    stress = metrics.link_stress(none["packets"])
    found = gather(
        {
            "stress": metrics.stress_summary(stress),
            "rdp": metrics.relative_delay(none["deliveries"]),
            "false": metrics.false_positives(none["receptions"], none["deliveries"]),
            "cost": metrics.routing_cost(none["deliveries"]),
            "load": metrics.routing_load(none["receptions"], none["deliveries"], none["unicast"]),
            "control": metrics.control_efficiency(none["messages"], none["receptions"]),
            "delivery": metrics.delivery(none["matches"], none["deliveries"]),
        }
    )
    assert found["stress"] == [{"count": 0}] and found["rdp"] == [{"count": 0}]
    assert found["false"] == [{"false_positives": 0, "delivered": 0}]
    assert found["cost"] == [{"paths": 0}] and found["load"] == []
    assert found["control"] == [{"matching": 0}]
    assert set(found["delivery"][0].values()) == {0}
