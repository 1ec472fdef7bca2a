"""The tables of packets of both backends, by the same functions.

A capture and a packet log are converted to a frame with the same columns, the crossings. All
other functions do not depend on the source of packets.
"""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from analysis.run_directory import RecordedRun
from topologies.addresses import interface_name
from topologies.underlay import Underlay

_UDP, _ICMP = 17, 1
_WANTS_ACK = 1
_SECOND_US = 1_000_000
_HEADER = (
    "kind", "flags", "hop_count", "run_id", "sender", "receiver", "message_id", "event_id",
    "sent_us",
)  # fmt: skip


def channels(spark: SparkSession, underlay: Underlay) -> DataFrame:
    """Both directions of every link, with the name of the interface that sends."""
    rows = [
        (interface_name(here, there), link.name, direction, here, there, channel.delay_us)
        for link in underlay.links
        for direction, here, there, channel in (
            ("ab", link.a, link.b, link.ab),
            ("ba", link.b, link.a, link.ba),
        )
    ]
    names = ["interface", "link", "direction", "from_node", "to_node", "delay_us"]
    return _frame(spark, names, rows)


def nodes(spark: SparkSession, underlay: Underlay) -> DataFrame:
    """Every node with its address as a number."""
    hosts = {host.name for host in underlay.hosts}
    rows = [
        (int(IPv4Address(address)), name, name in hosts)
        for name, address in underlay.address.items()
    ]
    return _frame(spark, ["address", "node", "is_host"], rows)


def captured_crossings(captured: DataFrame, channels: DataFrame, run: RecordedRun) -> DataFrame:
    """The packets of captures (`packets` of the capture reader) as crossings of links."""
    clock = run.figures.get("clock")
    raw = captured.where("ip_version = 4")
    time_us = _run_time(raw, clock, run)
    if run.is_captured_leaving:
        time_us = time_us - F.col("delay_us")
    crossed = raw.join(F.broadcast(channels), "interface", "left")
    return crossed.select(
        time_us.cast("long").alias("time_us"),
        "link",
        "direction",
        "from_node",
        "to_node",
        "source",
        "target",
        _protocol_name(F.col("protocol")).alias("protocol"),
        "ttl",
        F.col("wire_bytes").alias("bytes"),
        F.lit(None).cast("boolean").alias("dropped"),
        *_HEADER,
    )


def logged_crossings(log: DataFrame, channels: DataFrame) -> DataFrame:
    """The packets of a simulation (`agents/runtime/packet_log.py`) as crossings of links."""
    ways = channels.select("link", "direction", "from_node", "to_node")
    return log.join(F.broadcast(ways), ["link", "direction"], "left").select(
        "time_us",
        "link",
        "direction",
        "from_node",
        "to_node",
        "source",
        "target",
        "protocol",
        "ttl",
        F.col("size_bytes").cast("long").alias("bytes"),
        "dropped",
        *_HEADER,
    )


def name_packets(
    crossings: DataFrame, nodes: DataFrame, run_id: int | None, kinds: Mapping[int, str]
) -> DataFrame:
    """The table `packets`: crossings with the names of hosts and of kinds of messages."""
    is_ours = F.col("kind").isNotNull()
    if run_id is not None:
        is_ours &= F.col("run_id") == run_id
    sources = nodes.toDF("source", "source_node", "source_is_host")
    targets = nodes.toDF("target", "target_node", "target_is_host")
    named = crossings.join(F.broadcast(sources), "source", "left")
    named = named.join(F.broadcast(targets), "target", "left")
    is_icmp = F.col("protocol") == "icmp"
    return named.select(
        *("time_us", "link", "direction", "from_node", "to_node", "source", "target"),
        F.expr("CASE WHEN source_is_host THEN source_node END").alias("source_host"),
        F.expr("CASE WHEN target_is_host THEN target_node END").alias("target_host"),
        *("protocol", "ttl", "bytes", "dropped"),
        F.expr("coalesce(from_node = source_node, false)").alias("is_first"),
        F.expr("coalesce(to_node = target_node, false)").alias("is_last"),
        F.coalesce(is_ours, F.lit(False)).alias("is_ours"),
        F.expr("coalesce(protocol = 'udp' AND kind IS NULL, false)").alias("is_probe"),
        F.coalesce(is_icmp, F.lit(False)).alias("is_icmp"),
        "kind",
        _kind_name(kinds).alias("kind_name"),
        "message_id",
        F.expr("nullif(event_id, 0)").alias("event_id"),
        *("hop_count", "flags", "sent_us"),
    )


def messages(packets: DataFrame, channels: DataFrame, unicast: DataFrame) -> DataFrame:
    """The table `messages`: one row for each datagram, with counts of its copies."""
    delays = channels.select("link", "direction", F.col("delay_us").alias("link_delay_us"))
    ours = packets.where("is_ours AND source_host IS NOT NULL AND target_host IS NOT NULL")
    crossed = ours.join(F.broadcast(delays), ["link", "direction"], "left")
    has_arrived = F.expr("is_last AND NOT coalesce(dropped, false)")
    first_us, last_us = F.col("time_us"), F.col("time_us") + F.col("link_delay_us")
    found = crossed.groupBy(
        F.col("source_host").alias("sender"),
        F.col("target_host").alias("receiver"),
        *("kind", "kind_name", "message_id", "event_id", "hop_count", "sent_us"),
        (F.col("flags").bitwiseAND(F.lit(_WANTS_ACK).cast("short")) != 0).alias("is_reliable"),
    ).agg(
        F.min(F.when(F.col("is_first"), first_us)).alias("first_us"),
        F.min(F.when(has_arrived, last_us)).alias("arrived_us"),
        F.count_if(F.col("is_first")).alias("copies"),
        F.count_if(has_arrived).alias("copies_arrived"),
        F.size(F.collect_set("link")).alias("links"),
        F.count("*").alias("packets"),
        F.sum("bytes").alias("bytes"),
    )
    routes = unicast.select(
        F.col("source").alias("sender"),
        F.col("target").alias("receiver"),
        F.col("crossings").alias("links_expected"),
    )
    return found.join(routes, ["sender", "receiver"], "left")


def link_stress(packets: DataFrame) -> DataFrame:
    """The table `stress`: copies of each event's message on each physical link and direction.

    A row for each link and direction that it entered: `event_id`, `link`, `direction`, `copies`.
    Copies that were repeated because an acknowledgement was late or lost count as well: they load
    the link.
    """
    carried = packets.where("is_ours AND event_id IS NOT NULL AND link IS NOT NULL")
    key = ("event_id", "link", "direction", "from_node", "to_node")
    return carried.groupBy(*key).agg(F.count("*").alias("copies"))


def stress_of_events(stress: DataFrame) -> DataFrame:
    """The values of each event in the table `stress`: `packets`, `links`, `max_stress`."""
    return stress.groupBy("event_id").agg(
        F.sum("copies").alias("packets"),
        F.count("*").alias("links"),
        F.max("copies").alias("max_stress"),
    )


def link_loads(packets: DataFrame, stress: DataFrame, channels: DataFrame) -> DataFrame:
    """The table `link_loads`: the load of each direction of each link."""
    key = ["link", "direction"]
    is_event = F.expr("is_ours AND event_id IS NOT NULL")
    loads = packets.groupBy(*key).agg(
        F.count("*").alias("packets"),
        F.sum("bytes").alias("bytes"),
        F.count_if(F.col("is_ours")).alias("message_packets"),
        F.count_if(F.col("is_probe")).alias("probe_packets"),
        F.count_if(F.col("is_icmp")).alias("icmp_packets"),
        F.count_if(is_event).alias("event_packets"),
        F.count_if(F.expr("coalesce(dropped, false)")).alias("dropped"),
    )
    copies = stress.groupBy(*key).agg(
        F.count("*").alias("events"), F.max("copies").alias("max_stress")
    )
    joined = channels.join(loads, key, "left").join(copies, key, "left")
    counts = [name for name in (*loads.columns, *copies.columns) if name not in key]
    return joined.fillna(0, counts).orderBy("link", "direction")


def traffic(packets: DataFrame) -> DataFrame:
    """The table `traffic`: what was sent in each second, by kind."""
    what = F.coalesce(
        F.when(F.col("is_icmp"), F.lit("icmp")),
        F.when(F.col("is_probe"), F.lit("probe")),
        F.col("kind_name"),
        F.concat(F.lit("kind "), F.col("kind")),
        F.lit("other"),
    )
    second = F.floor(F.col("time_us") / _SECOND_US)
    sent = packets.where("is_first").groupBy(second.alias("second"), what.alias("what"))
    counts = sent.agg(F.count("*").alias("packets"), F.sum("bytes").alias("bytes"))
    return counts.orderBy("second", "what")


def _run_time(raw: DataFrame, clock: Mapping[str, int] | None, run: RecordedRun) -> Column:
    """Times of captures as microseconds of the run.

    The clock of captures may be adjusted during the run, so its difference is assumed
    to change linearly from the start to the end, or to be constant if the end is not known. If a
    run died early and the clocks were not recorded, the send times in packets are used: a packet is
    captured soon after its send time.
    """
    scale = 1_000.0 * run.time_scale
    if clock is None:
        ahead = F.col("time_ns") - F.col("sent_us") * F.lit(scale)
        own = raw.where("kind IS NOT NULL")
        begin_ns = own.select(F.min(ahead).cast("long")).first()
        begin = begin_ns[0] if begin_ns is not None else None
        if begin is None:
            begin = (raw.select(F.min("time_ns")).first() or [0])[0] or 0
        return F.floor((F.col("time_ns") - F.lit(begin)) / scale)
    first_ns = clock["realtime_offset_ns"]
    drift_ns = clock.get("realtime_offset_end_ns", first_ns) - first_ns
    drift = drift_ns / (run.duration_us * scale) if run.duration_us else 0.0
    since_ns = F.col("time_ns") - F.lit(clock["origin_ns"] + first_ns)
    return F.floor((since_ns - since_ns * F.lit(drift)) / scale)


def _protocol_name(protocol: Column) -> Column:
    named = F.when(protocol == _UDP, "udp").when(protocol == _ICMP, "icmp")
    return named.otherwise(protocol.cast("string"))


def _kind_name(kinds: Mapping[int, str]) -> Column:
    if not kinds:
        return F.lit(None).cast("string")
    pairs = [F.lit(value) for number, name in sorted(kinds.items()) for value in (number, name)]
    return F.try_element_at(F.create_map(*pairs), F.col("kind").cast("int"))


def _frame(spark: SparkSession, names: list[str], rows: Sequence[tuple[object, ...]]) -> DataFrame:
    return spark.createDataFrame(
        pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})
    )
