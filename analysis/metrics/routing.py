"""The metrics of event routing, each in one function from frames to a frame.

Definitions follow sections 2 and 6.2 of Tariq, Koldehofe and Rothermel, "Efficient content-based
routing with network topology inference", DEBS 2013; `analysis/metrics/overlay.py` has those of
section 6.1, about the discovery overlay. The frames are the tables of `analysis/tables/build.py`.
Sums are of whole numbers or decimals, so that no figure depends on how rows are spread over tasks.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

_EXACT = "decimal(30, 15)"


def link_stress(packets: DataFrame) -> DataFrame:
    """Copies of each event's message on each physical link and direction.

    A row for each that it entered at all: `event_id`, `link`, `direction`, `copies`. Copies that
    were repeated, as an acknowledgement was late or lost, count as well: they load the link.
    """
    carried = packets.where("is_ours AND event_id IS NOT NULL AND link IS NOT NULL")
    key = ("event_id", "link", "direction", "from_node", "to_node")
    return carried.groupBy(*key).agg(F.count("*").alias("copies"))


def stress_summary(stress: DataFrame) -> DataFrame:
    """Mean and maximum of link stress over events, links and directions that were crossed.

    `total` is the load of events on the network: one for each link that each copy crossed.
    """
    return stress.agg(
        F.sum("copies").alias("total"),
        (F.sum("copies") / F.count("*")).alias("mean"),
        F.max("copies").alias("max"),
        F.count("*").alias("count"),
    )


def stress_distribution(stress: DataFrame) -> DataFrame:
    """How often each number of copies occurs: `copies`, `times`."""
    return stress.groupBy("copies").agg(F.count("*").alias("times")).orderBy("copies")


def relative_delay(deliveries: DataFrame, over: str = "delay_us") -> DataFrame:
    """RDP: delay from publisher to subscriber over the overlay, divided by unicast delay.

    Over the first delivery of each event to each host other than its publisher. `of_sums` is the
    sum of the former divided by the sum of the latter. The delay is the recorded one, or that
    of the overlay path by the truth with `over="path_us"`.
    """
    counted = _to_others(deliveries).where(f"unicast_us > 0 AND {over} IS NOT NULL")
    rdp = F.col(over) / F.col("unicast_us")
    return _spread(counted.withColumn("rdp", rdp), "rdp").join(
        counted.agg((F.sum(over) / F.sum("unicast_us")).alias("of_sums"))
    )


def packet_delays(deliveries: DataFrame, messages: DataFrame, link_loads: DataFrame) -> DataFrame:
    """The same deliveries with `packets_us`, the time that their packets were under way.

    It is from the send time that the first packet of the event carries until one first came to
    the subscriber's host. `entered_us` is the part of it until the subscriber's last mile, which
    packets were seen to enter; `held_us` is the part before the publisher's.
    """
    carried = messages.where("event_id IS NOT NULL")
    left = carried.groupBy("event_id", F.col("sender").alias("publisher")).agg(
        F.min("sent_us").alias("sent_us"), F.min("first_us").alias("left_us")
    )
    came = carried.groupBy("event_id", F.col("receiver").alias("host")).agg(
        F.min("arrived_us").alias("came_us")
    )
    last_miles = link_loads.groupBy(F.col("to_node").alias("host")).agg(
        F.max("delay_us").alias("last_mile_us")
    )
    return (
        _to_others(deliveries)
        .join(left, ["event_id", "publisher"], "left")
        .join(came, ["event_id", "host"], "left")
        .join(F.broadcast(last_miles), "host", "left")
        .withColumn("packets_us", F.col("came_us") - F.col("sent_us"))
        .withColumn("held_us", F.col("left_us") - F.col("sent_us"))
        .withColumn("entered_us", F.col("packets_us") - F.col("last_mile_us"))
    )


def delivery_hops(deliveries: DataFrame) -> DataFrame:
    """Overlay links between publisher and subscriber, over the same deliveries as RDP."""
    counted = _to_others(deliveries).where("hops IS NOT NULL")
    return counted.agg(
        (F.sum("hops") / F.count("*")).alias("mean"),
        F.max("hops").alias("max"),
        F.count("*").alias("count"),
    )


def false_positives(receptions: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Events that peers received without a matching subscription, per event delivered.

    The publisher's own deliveries, for which nothing is sent, do not count. `share` is null
    where nothing was delivered.
    """
    wrong = receptions.agg(F.count_if(~F.col("is_match")).alias("false_positives"))
    right = _to_others(deliveries).agg(F.count("*").alias("delivered"))
    return wrong.join(right).withColumn("share", F.expr("try_divide(false_positives, delivered)"))


def routing_load(receptions: DataFrame, deliveries: DataFrame, unicast: DataFrame) -> DataFrame:
    """The routing load of overlay links: paths from publishers to subscribers over each.

    A row for each direction of each overlay link that carried events: `load` is the paper's
    Upsilon(i, j), `events` how many events came over it, wanted or not, and `delay_us` its d.
    """
    wanted = _to_others(deliveries).select("event_id", "host")
    paths = receptions.join(wanted, ["event_id", "host"]).where("path IS NOT NULL")
    hops = F.expr("transform(sequence(1, size(path) - 1), i -> struct(path[i - 1], path[i]))")
    steps = paths.select(F.explode(hops).alias("hop")).select("hop.*").toDF("from_host", "to_host")
    loads = steps.groupBy("from_host", "to_host").agg(F.count("*").alias("load"))
    came = receptions.groupBy("from_host", F.col("host").alias("to_host")).agg(
        F.count("*").alias("events")
    )
    delays = unicast.select(
        F.col("source").alias("from_host"), F.col("target").alias("to_host"), "delay_us"
    )
    key = ["from_host", "to_host"]
    joined = came.join(loads, key, "full").fillna(0, ["events", "load"])
    return joined.join(delays, key, "left").orderBy(*key)


def routing_cost(deliveries: DataFrame) -> DataFrame:
    """The cost of routing, Σ Upsilon(i, j)·d(i, j) over overlay links, beside that of OPT.

    Summed the other way round: over events and the subscribers that they were delivered to, the
    delay of the overlay path that the event took. OPT takes shortest paths over the overlay,
    for each event on its own. `opt_us` and `efficiency` are over the deliveries of which both are
    known; lower is better, and 1 is optimal.
    """
    routed = _to_others(deliveries)
    both = F.expr("path_us IS NOT NULL AND opt_us IS NOT NULL")
    return routed.agg(
        F.sum("path_us").alias("cost_us"),
        F.count("path_us").alias("paths"),
        F.sum(F.when(both, F.col("path_us"))).alias("comparable_us"),
        F.sum(F.when(both, F.col("opt_us"))).alias("opt_us"),
    ).withColumn("efficiency", F.expr("try_divide(comparable_us, opt_us)"))


def control_efficiency(messages: DataFrame, receptions: DataFrame) -> DataFrame:
    """Every message sent, divided by the matching events that peers received.

    Messages are counted as often as they were sent, acknowledgements included. 1 is ideal: every
    event goes straight to those who want it, and nothing else is sent.
    """
    sent = messages.agg(F.sum("copies").alias("sent"))
    matching = receptions.agg(F.count_if(F.col("is_match")).alias("matching"))
    return sent.join(matching).withColumn("ratio", F.expr("try_divide(sent, matching)"))


def delivery(matches: DataFrame, deliveries: DataFrame) -> DataFrame:
    """What subscribers were owed and got.

    `expected` are pairs of an event and a host that lived through the whole run, where a matching
    subscription was made before the event and lasted for a while after; `delivered` those of them
    that were delivered. `duplicates` are deliveries more than one of an event to a host, and
    `unasked` deliveries without any matching subscription.
    """
    owed = matches.where("is_owed")
    return owed.agg(
        F.count_if(F.col("is_steady")).alias("expected"),
        F.count_if(F.expr("is_steady AND is_delivered")).alias("delivered"),
        F.count_if(F.expr("NOT is_steady")).alias("unsteady_expected"),
        F.count_if(F.expr("NOT is_steady AND is_delivered")).alias("unsteady_delivered"),
    ).join(
        deliveries.agg(
            F.count_if(F.col("copy") > 1).alias("duplicates"),
            F.count_if(~F.col("is_matching")).alias("unasked"),
        )
    )


def event_counts(events: DataFrame, receptions: DataFrame, deliveries: DataFrame) -> DataFrame:
    """How many events were published, received over the network, and delivered.

    `in_vain` are those received without a matching subscription.
    """
    in_vain = F.count_if(~F.col("is_match")).alias("in_vain")
    return (
        events.agg(F.count("*").alias("published"))
        .join(receptions.agg(F.count("*").alias("received"), in_vain))
        .join(
            deliveries.agg(
                F.count_if(F.expr("copy = 1 AND NOT is_own")).alias("delivered"),
                F.count_if(F.expr("copy = 1 AND is_own")).alias("own"),
            )
        )
    )


def message_counts(messages: DataFrame) -> DataFrame:
    """Messages by kind: how many, how often sent, how many arrived."""
    name = F.coalesce(F.col("kind_name"), F.concat(F.lit("kind "), F.col("kind")))
    return (
        messages.groupBy(name.alias("kind"))
        .agg(
            F.count("*").alias("sent"),
            F.sum("copies").alias("copies"),
            F.count("arrived_us").alias("arrived"),
            F.sum("packets").alias("packets"),
        )
        .orderBy("kind")
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


def _to_others(deliveries: DataFrame) -> DataFrame:
    """The first delivery of each event to each host other than the publisher."""
    return deliveries.where("copy = 1 AND publisher IS NOT NULL AND NOT is_own")


def _spread(frame: DataFrame, column: str) -> DataFrame:
    """Mean, percentiles and maximum of a column."""
    return frame.agg(
        _mean(F.col(column)).alias("mean"),
        F.percentile(column, 0.5).alias("p50"),
        F.percentile(column, 0.9).alias("p90"),
        F.max(column).alias("max"),
        F.count(column).alias("count"),
    )


def _mean(values: Column) -> Column:
    # A sum of floating-point numbers would depend on their order.
    return F.sum(values.cast(_EXACT)).cast("double") / F.count(values)
