"""The checks of packets against records, in Spark (`analysis/metrics/checks.py` lists them).

Each result is a frame of one row with `expected` and `found`, and `differing` if single counts or
times are compared.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from analysis.metrics.checks import TIMES

_TOLERANCE, _ROUNDING_US = 0.01, 2


def receptions_on_links(
    receptions: DataFrame, packets: DataFrame, route_links: DataFrame
) -> DataFrame:
    """Every reception of an event has a packet on every link of the route from its sender.

    `route_links` has the links between hosts (`from_host`, `host`, `link`, `direction`). A packet
    that is known to be lost on a link did not cross it. A delivery is a reception, and so is the
    one at the peer before it; therefore whole paths are checked.
    """
    key = ["event_id", "from_host", "host", "link", "direction"]
    wanted = receptions.select("event_id", "from_host", "host").join(
        route_links, ["from_host", "host"]
    )
    carried = "is_ours AND event_id IS NOT NULL AND NOT coalesce(dropped, false)"
    event_packets = packets.where(carried)
    crossed = event_packets.select(
        "event_id",
        F.col("source_host").alias("from_host"),
        F.col("target_host").alias("host"),
        "link",
        "direction",
    ).distinct()
    hit = crossed.withColumn("is_crossed", F.lit(True))
    return wanted.join(hit, key, "left").agg(
        F.count("*").alias("expected"), F.count("is_crossed").alias("found")
    )


def arrivals_received(
    messages: DataFrame, receptions: DataFrame, events: DataFrame, lasting: DataFrame
) -> DataFrame:
    """Every event that arrived at a host by packets was received by its agent.

    `lasting` are the hosts whose agents ran during the whole run (`host`), and the time until which
    arrivals were certainly handled (`until_us`, null if packets can be lost after the place of
    capture). Messages of ended agents do not count, because they are not repeated. Arrivals at the
    event's own publisher do not count.
    """
    key = ["event_id", "host"]
    senders = lasting.select(F.col("host").alias("sender"))
    came = (
        messages.where("event_id IS NOT NULL")
        .withColumnRenamed("receiver", "host")
        .join(F.broadcast(senders), "sender")
        .join(F.broadcast(lasting), "host")
        .where("arrived_us < until_us")
        .select(*key)
        .distinct()
    )
    own = events.select("event_id", F.col("publisher").alias("host"))
    hit = receptions.select(*key).withColumn("is_received", F.lit(True))
    return (
        came.join(own, key, "left_anti")
        .join(hit, key, "left")
        .agg(F.count("*").alias("expected"), F.count("is_received").alias("found"))
    )


def copies_received(messages: DataFrame, copies: DataFrame, lasting: DataFrame) -> DataFrame:
    """Every message with an event that arrived is a copy that the agent there recorded, and back.

    `messages` carry events of topics, whose agents record every copy. `lasting` are as in
    `arrivals_received`; of messages that came later than that it is not known who took them.
    """
    key = ["event_id", "sender", "host"]
    senders = lasting.select(F.col("host").alias("sender"))
    came = (
        messages.where("event_id IS NOT NULL AND arrived_us IS NOT NULL")
        .withColumnRenamed("receiver", "host")
        .join(F.broadcast(senders), "sender")
        .join(F.broadcast(lasting), "host")
        .groupBy(*key)
        .agg(
            F.count("*").alias("came"),
            F.count_if(F.expr("coalesce(arrived_us >= until_us, true)")).alias("late"),
        )
    )
    said = copies.withColumnRenamed("from_host", "sender")
    said = said.join(F.broadcast(senders), "sender").join(F.broadcast(lasting), "host")
    recorded = said.groupBy(*key).agg(F.count("*").alias("recorded"))
    both = came.join(recorded, key, "full").fillna(0, ["came", "late", "recorded"])
    return both.agg(
        F.coalesce(F.sum(F.col("came") - F.col("late")), F.lit(0)).alias("expected"),
        F.coalesce(F.sum("recorded"), F.lit(0)).alias("found"),
        F.count_if(F.expr("recorded > came OR recorded < came - late")).alias("differing"),
    )


def packets_of_messages(messages: DataFrame, link_loads: DataFrame) -> DataFrame:
    """Every packet of an agent belongs to a message that left its sender over the sender's last
    mile.
    """
    ours = link_loads.agg(F.sum("message_packets").alias("expected"))
    known = messages.where("copies > 0").agg(F.coalesce(F.sum("packets"), F.lit(0)).alias("found"))
    return ours.join(known)


def sent_by_kind(messages: DataFrame, counted: DataFrame) -> DataFrame:
    """Different messages of each kind from each host, in packets and as counted by its agent.

    `counted` is `sender`, `kind_name`, `sent`, and `unsent`, the number that its machine refused.
    """
    hosts = F.broadcast(counted.select("sender").distinct())
    seen = (
        messages.join(hosts, "sender")
        .groupBy("sender", "kind_name")
        .agg(F.count("*").alias("seen"))
    )
    both = counted.join(seen, ["sender", "kind_name"], "full").fillna(0, ["sent", "seen", "unsent"])
    wrong = F.expr("seen > sent OR seen < sent - unsent")
    return both.agg(
        F.coalesce(F.sum("sent"), F.lit(0)).alias("expected"),
        F.coalesce(F.sum("seen"), F.lit(0)).alias("found"),
        F.count_if(wrong).alias("differing"),
    )


def copies_sent(messages: DataFrame, counted: DataFrame) -> DataFrame:
    """Transmissions from each host, with repetitions, in packets and as counted by its agent.

    `counted` is `sender` and `copies_counted`.
    """
    seen = messages.groupBy("sender").agg(F.sum("copies").alias("seen"))
    both = counted.join(seen, "sender", "left").fillna(0, ["seen"])
    return both.agg(
        F.coalesce(F.sum("copies_counted"), F.lit(0)).alias("expected"),
        F.coalesce(F.sum("seen"), F.lit(0)).alias("found"),
        F.count_if(F.col("seen") != F.col("copies_counted")).alias("differing"),
    )


def whole_routes(messages: DataFrame) -> DataFrame:
    """Every message that arrived crossed as many links as the route has."""
    arrived = messages.where("arrived_us IS NOT NULL")
    return arrived.agg(
        F.count("*").alias("expected"),
        F.count_if(F.col("links") == F.col("links_expected")).alias("found"),
    )


def delays_agree(delays: DataFrame, agents_us: float) -> DataFrame:
    """Deliveries took the same time by agents' records as by their packets, within 1 %.

    `delays` are the deliveries of `packet_delays`. As the machine can be held up at any
    time, half of them have to agree. Their first packets have to leave soon after the send time
    that they carry: within that 1 % and `agents_us`, which agents take. None can have left before
    it, or taken less than its packet did to enter the last mile.
    """
    known = delays.where("packets_us IS NOT NULL").withColumn(
        "difference_us", F.col("delay_us") - F.col("packets_us")
    )
    part_us = F.col("packets_us") * _TOLERANCE
    is_same = F.abs("difference_us") <= part_us + _ROUNDING_US
    agrees = F.count_if(is_same & (F.col("held_us") <= part_us + agents_us))
    is_early = F.col("delay_us") < F.col("entered_us") - part_us - _ROUNDING_US
    is_impossible = is_early | (F.col("held_us") < -_ROUNDING_US)
    found = known.agg(
        F.count("*").alias("expected"),
        agrees.alias("found"),
        F.count_if(is_impossible).alias("impossible"),
        *(
            _spread(column).alias(name)
            for name, column in zip(TIMES, ("delay_us", *TIMES[1:]), strict=True)
        ),
    )
    missing = F.expr("CASE WHEN 2 * found < expected THEN expected - found ELSE 0 END")
    return found.withColumn("differing", F.greatest("impossible", missing))


def _spread(column: str) -> Column:
    return F.struct(
        (F.sum(column) / F.count(column)).alias("mean"),
        F.percentile(column, 0.5).alias("p50"),
        F.percentile(column, 0.99).alias("p99"),
    )
