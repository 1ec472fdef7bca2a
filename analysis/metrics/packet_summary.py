"""A summary of the packets of a run, computed by Spark in one job."""

import json
from collections.abc import Iterator, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.agent_records import AgentRecord
from analysis.errors import AnalysisError
from analysis.metrics import packet_checks as checks
from analysis.metrics.evidence import PacketSummary
from analysis.run_directory import RecordedRun
from analysis.tables.build import Tables
from analysis.tables.events import SETTLE_US
from analysis.tables.overlay import route_links
from topologies.underlay import Underlay

Rows = dict[str, list[dict[str, Any]]]
_CHECK = "check "


def summarise_packets(spark: SparkSession, run: RecordedRun, tables: Tables) -> PacketSummary:
    """The summary of the packets of a run, and the checks against its records."""
    start_us = _window_start_us(run)
    frames = _summaries(tables, start_us) | _checks(spark, run, tables)
    delays = None
    if not run.has_changing_network:
        found = packet_delays(tables["deliveries"], tables["messages"], tables["link_loads"])
        frames[f"{_CHECK}delays_agree"] = checks.delays_agree(found, run.agents_us)
        delays = _published_from(found, start_us).select("packets_us", "unicast_us").toPandas()
    carried = event_messages(tables["messages"], run) if run.is_topic_based else None
    rows = gather(frames)
    return PacketSummary(
        rows["stress"][0],
        {row["copies"]: row["times"] for row in rows["distribution"]},
        tuple(sorted(rows["messages"], key=lambda row: str(row["kind"]))),
        tuple(rows["roles"]),
        rows["packets"][0],
        rows["errors"][0]["count"],
        delays,
        None if carried is None else carried.toPandas(),
        {
            name.removeprefix(_CHECK): some[0]
            for name, some in rows.items()
            if name.startswith(_CHECK) and some
        },
    )


def gather(frames: Mapping[str, DataFrame]) -> Rows:
    """The rows of some small frames, fetched in one job."""
    if not frames:
        return {}
    texts = [
        frame.select(F.lit(name).alias("name"), F.to_json(F.struct(*frame.columns)).alias("row"))
        for name, frame in frames.items()
    ]
    rows: Rows = {name: [] for name in frames}
    for name, text in reduce(DataFrame.union, texts).collect():
        rows[name].append(json.loads(text))
    return rows


def _summaries(tables: Tables, start_us: int | None) -> dict[str, DataFrame]:
    measured = _published_from(tables["events"], start_us).select("event_id")
    stress = tables["stress"].join(F.broadcast(measured), "event_id")
    return {
        "stress": stress_summary(stress),
        "distribution": stress.groupBy("copies").agg(F.count("*").alias("times")),
        "messages": message_counts(tables["messages"]),
        "roles": sent_by_kind_number(tables["messages"]),
        "packets": packet_counts(tables["link_loads"]),
        "errors": tables["capture_errors"].agg(F.count("*").alias("count")),
    }


def _published_from(rows: DataFrame, start_us: int | None) -> DataFrame:
    """The rows about events of the measured window."""
    return rows if start_us is None else rows.where(F.col("published_us") >= start_us)


def stress_summary(stress: DataFrame) -> DataFrame:
    """Mean and maximum of link stress over events, links and directions that were crossed."""
    return stress.agg(
        F.sum("copies").alias("total"),
        (F.sum("copies") / F.count("*")).alias("mean"),
        F.max("copies").alias("max"),
        F.count("*").alias("count"),
    )


def message_counts(messages: DataFrame) -> DataFrame:
    """Messages by kind: messages, transmissions and arrivals."""
    name = F.coalesce(F.col("kind_name"), F.concat(F.lit("kind "), F.col("kind")))
    return messages.groupBy(name.alias("kind")).agg(
        F.count("*").alias("sent"),
        F.sum("copies").alias("copies"),
        F.count("arrived_us").alias("arrived"),
        F.sum("packets").alias("packets"),
    )


def sent_by_kind_number(messages: DataFrame) -> DataFrame:
    """The sent messages of each kind, by its number: messages, transmissions and their bytes."""
    sent_bytes = F.expr("bytes div packets * copies")
    return messages.groupBy("kind").agg(
        F.count("*").alias("sent"),
        F.sum("copies").alias("copies"),
        F.sum(sent_bytes).alias("bytes"),
    )


def event_messages(messages: DataFrame, run: RecordedRun) -> DataFrame:
    """How many messages with each event went from each agent to each other one, and arrived.

    Retransmissions do not count: a message is one with all its transmissions.
    """
    kinds = [kind.number for kind in run.messages if kind.role == "event"]
    carried = messages.where(F.col("event_id").isNotNull() & F.col("kind").isin(kinds))
    return carried.groupBy("event_id", "sender", "receiver").agg(
        F.count("*").alias("sent"), F.count("arrived_us").alias("arrived")
    )


def packet_counts(link_loads: DataFrame) -> DataFrame:
    """Packets on all links, one for each link that each crossed."""
    return link_loads.agg(
        F.sum("packets").alias("total"),
        F.sum("message_packets").alias("ours"),
        F.sum("probe_packets").alias("probes"),
        F.sum("icmp_packets").alias("icmp"),
        F.sum("bytes").alias("bytes"),
        F.sum("dropped").alias("dropped"),
    )


def packet_delays(deliveries: DataFrame, messages: DataFrame, link_loads: DataFrame) -> DataFrame:
    """The first deliveries to others with `packets_us`, the time that their packets took.

    It is the time from the send time in the first packet of the event until the first arrival at
    the subscriber's host. `entered_us` is the part of it until the subscriber's last mile, which
    packets were captured on; `held_us` is the part before the first packet left the publisher.
    """
    carried = messages.where("event_id IS NOT NULL")
    left = carried.groupBy("event_id", F.col("sender").alias("publisher")).agg(
        F.min("sent_us").alias("sent_us"), F.min("first_us").alias("left_us")
    )
    key, arrived = ["event_id", "host"], F.min("arrived_us")
    came = carried.withColumnRenamed("receiver", "host")
    first = came.groupBy(*key).agg(arrived.alias("first_us"))
    came = came.withColumnRenamed("sender", "from_host")
    came = came.groupBy(*key, "from_host").agg(arrived.alias("from_us"))
    came_us = F.expr("CASE WHEN from_host IS NULL THEN first_us ELSE from_us END")
    last_miles = link_loads.groupBy(F.col("to_node").alias("host")).agg(
        F.max("delay_us").alias("last_mile_us")
    )
    return (
        deliveries.where("copy = 1 AND publisher IS NOT NULL AND NOT is_own")
        .join(left, ["event_id", "publisher"], "left")
        .join(first, key, "left")
        .join(came, [*key, "from_host"], "left")
        .join(F.broadcast(last_miles), "host", "left")
        .withColumn("came_us", came_us)
        .withColumn("packets_us", F.col("came_us") - F.col("sent_us"))
        .withColumn("held_us", F.col("left_us") - F.col("sent_us"))
        .withColumn("entered_us", F.col("packets_us") - F.col("last_mile_us"))
    )


def _checks(spark: SparkSession, run: RecordedRun, tables: Tables) -> dict[str, DataFrame]:
    """The checks that this run allows, but for that of delays."""
    t = tables
    found = {
        "packets_belong_to_messages": checks.packets_of_messages(t["messages"], t["link_loads"])
    }
    lasting = _lasting_agents(run)
    if lasting:
        found |= _count_checks(spark, run, t, lasting)
    if not run.has_changing_network:
        found |= _route_checks(spark, run, t)
    if lasting and not run.has_changing_network:
        taking = _taking_hosts(spark, run, lasting)
        found["arrivals_received"] = checks.arrivals_received(
            t["messages"], t["receptions"], t["events"], taking
        )
        if run.is_topic_based:
            numbers = [kind.number for kind in run.messages if kind.role == "event"]
            of_events = t["messages"].where(F.col("kind").isin(numbers))
            found["copies_received"] = checks.copies_received(of_events, t["copies"], taking)
    return {f"{_CHECK}{name}": frame for name, frame in found.items()}


def _window_start_us(run: RecordedRun) -> int | None:
    try:
        return run.window_start_us
    except AnalysisError:
        return None  # the tables have a note about that


def _lasting_agents(run: RecordedRun) -> Mapping[str, AgentRecord]:
    try:
        return run.lives.lasting
    except AnalysisError:
        return {}  # the tables have a note about that


def _route_checks(spark: SparkSession, run: RecordedRun, t: Tables) -> dict[str, DataFrame]:
    pairs = t["receptions"].where("from_host IS NOT NULL").select("from_host", "host").distinct()
    known = route_links(run.unicast, ((row[0], row[1]) for row in pairs.collect()))
    links = F.broadcast(spark.createDataFrame(known))
    return {
        "deliveries_have_packets": checks.receptions_on_links(t["receptions"], t["packets"], links),
        "routes_whole": checks.whole_routes(t["messages"]),
    }


def _count_checks(
    spark: SparkSession, run: RecordedRun, t: Tables, lasting: Mapping[str, AgentRecord]
) -> dict[str, DataFrame]:
    copies = [
        {"sender": host, "copies_counted": _transmissions(report.values)}
        for host, report in lasting.items()
    ]
    frame = spark.createDataFrame(pa.Table.from_pylist(copies))
    found = {"copies_sent": checks.copies_sent(t["messages"], frame)}
    by_kind = [
        {
            "sender": host,
            "kind_name": name.removeprefix("sent_"),
            "sent": count,
            "unsent": report.values.get("unsent", 0),
        }
        for host, report in lasting.items()
        for name, count in report.values.items()
        if name.startswith("sent_")
    ]
    if by_kind and run.document:  # which names the kinds
        frame = spark.createDataFrame(pa.Table.from_pylist(by_kind))
        found["sent_by_kind"] = checks.sent_by_kind(t["messages"], frame)
    return found


def _transmissions(counts: Mapping[str, int]) -> int:
    return counts.get("sent", 0) + counts.get("resent", 0) - counts.get("unsent", 0)


def _taking_hosts(
    spark: SparkSession, run: RecordedRun, lasting: Mapping[str, AgentRecord]
) -> DataFrame:
    """Hosts, and the time until which their agents handled arrivals: not the last moments of the
    run.
    """
    # For a captured packet it is unknown whether it left the link that it entered.
    lossy = set(_lossy_ends(run.underlay)) if run.is_emulated else set()
    lossy |= {host for host, report in lasting.items() if report.values.get("too_old")}
    processes = run.figures.get("processes", ())
    lags = [
        one[key]["max_us"] for one in processes for key in ("lag", "datagram_lag") if key in one
    ]
    before_us = max([SETTLE_US, *lags])
    rows = [
        {"host": host, "until_us": None if host in lossy else report.time_us - before_us}
        for host, report in lasting.items()
    ]
    schema = pa.schema({"host": pa.string(), "until_us": pa.int64()})
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema))


def _lossy_ends(underlay: Underlay) -> Iterator[str]:
    """The ends of channels that lose packets, by a loss or a full queue."""
    for link in underlay.links:
        for end, channel in ((link.b, link.ab), (link.a, link.ba)):
            if channel.loss_percent or channel.rate_mbit is not None:
                yield end
