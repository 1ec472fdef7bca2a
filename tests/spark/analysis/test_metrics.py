"""The metrics of packets on a few literal rows, computed by hand."""

from typing import Any

from pyspark.sql import SparkSession

from analysis.metrics import packet_summary as metrics
from analysis.tables.packets import link_stress, stress_of_events
from tests.fixtures.literal_frames import literal, row_of, rows_of


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
    stress = link_stress(packets)
    found = {(r["event_id"], r["link"], r["direction"]): r["copies"] for r in rows_of(stress)}
    assert found == {
        (1, "x-y", "ab"): 3, (1, "x-y", "ba"): 1, (2, "x-y", "ab"): 1, (1, "y-z", "ab"): 1,
    }  # fmt: skip
    assert row_of(metrics.stress_summary(stress)) == {"total": 6, "mean": 1.5, "max": 3, "count": 4}
    assert sorted(tuple(row.values()) for row in rows_of(stress_of_events(stress))) == [
        (1, 5, 3, 3), (2, 1, 1, 1),
    ]  # fmt: skip


def test_messages_and_packets_are_counted(spark: SparkSession) -> None:
    message = {"kind": 9, "copies": 2, "packets": 6}
    messages = literal(
        spark, "messages",
        message | {"kind_name": "Word", "arrived_us": 5}, message | {"kind_name": "Word"}, message,
    )  # fmt: skip
    load = {"packets": 9, "message_packets": 5, "probe_packets": 3, "icmp_packets": 1}
    loads = literal(spark, "link_loads", load | {"bytes": 7, "dropped": 2}, load | {"bytes": 3})
    found = metrics.gather(
        {"messages": metrics.message_counts(messages), "packets": metrics.packet_counts(loads)}
    )
    assert sorted(found["messages"], key=lambda row: row["kind"]) == [
        {"kind": "Word", "sent": 2, "copies": 4, "arrived": 1, "packets": 12},
        {"kind": "kind 9", "sent": 1, "copies": 2, "arrived": 0, "packets": 6},
    ]
    assert found["packets"] == [
        {"total": 18, "ours": 10, "probes": 6, "icmp": 2, "bytes": 10, "dropped": 2}
    ]


def test_without_packets_link_stress_is_null(spark: SparkSession) -> None:
    stress = link_stress(literal(spark, "packets"))
    assert metrics.gather({"stress": metrics.stress_summary(stress)})["stress"] == [{"count": 0}]
