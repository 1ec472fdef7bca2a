"""The tables that agents' records give: what was published, who wanted it, and who got it.

Everything is worked out anew from what was recorded at the time (`subscribed`, `event_published`,
`event_received`, `delivered`), not from what the workload planned.
"""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from analysis.tables.content import box_bits, is_match, point_bits

SETTLE_US = 2_000_000  # how long a subscription has to last after an event to be owed it
_FOREVER = (1 << 63) - 1


def of_kind(records: DataFrame, what: str, values: str) -> DataFrame:
    """The records of one kind, with what they hold as columns (given as a schema)."""
    held = F.from_json("values", values).alias("held")
    few = records.where(F.col("what") == what)
    return few.select("time_us", "host", held).select("time_us", "host", "held.*")


def published(records: DataFrame) -> DataFrame:
    """Every event once: its publisher, time, tree and content."""
    rows = of_kind(records, "event_published", "event_id long, version long, point long")
    first = F.min(F.struct("time_us", "host", "version", "point")).alias("first")
    return (
        rows.groupBy("event_id")
        .agg(first)
        .select(
            "event_id",
            F.col("first.host").alias("publisher"),
            F.col("first.time_us").alias("published_us"),
            "first.version",
            "first.point",
        )
    )


def agent_ends(
    spark: SparkSession, records: DataFrame, planned: Sequence[tuple[int, str]]
) -> DataFrame:
    """When agents ended while the run went on: `host`, `end_us`.

    Faults end agents; those that leave say so; and one that starts again had ended. One of which
    no end is known, while others lived to say what they counted, ended after its last record.
    """
    times = pa.array([time_us for time_us, _ in planned], pa.int64())
    hosts = pa.array([host for _, host in planned], pa.string())
    faults = spark.createDataFrame(pa.table({"host": hosts, "end_us": times}))
    said = records.where("what = 'agent_left'").select("host", F.col("time_us").alias("end_us"))
    lives = Window.partitionBy("host").orderBy("time_us")
    starts = records.where("what = 'agent_started'")
    again = starts.withColumn("life", F.row_number().over(lives)).where("life > 1")
    known = faults.union(said).union(again.select("host", "time_us")).distinct()
    ended = records.where("what = 'agent_ended'").select("host").distinct()
    some = F.broadcast(ended.limit(1).select(F.lit(True).alias("is_known")))
    silent = (
        records.join(F.broadcast(ended), "host", "left_anti")
        .join(F.broadcast(known.select("host")), "host", "left_anti")
        .groupBy("host")
        .agg(F.max("time_us").alias("end_us"))
        .crossJoin(some)
    )
    return known.union(silent.select("host", "end_us"))


def interests(records: DataFrame, ends: DataFrame, end_us: int) -> DataFrame:
    """What each host was subscribed to: `host`, `bits`, `from_us`, `until_us`."""
    box = "subscription long"
    made = of_kind(records, "subscribed", box).withColumn("is_made", F.lit(True))
    undone = of_kind(records, "unsubscribed", box).withColumn("is_made", F.lit(False))
    changes = Window.partitionBy("host", "subscription").orderBy("time_us", "is_made")
    spans = (
        made.union(undone).withColumn("next_us", F.lead("time_us").over(changes)).where("is_made")
    )
    dead = ends.where(F.col("end_us").isNotNull())
    joined = spans.join(
        F.broadcast(dead.withColumnRenamed("host", "ended")),
        (F.col("ended") == spans.host) & (F.col("end_us") > spans.time_us),
        "left",
    )
    until = F.least(F.min("end_us"), F.first("next_us"), F.lit(end_us))
    return joined.groupBy("host", "subscription", F.col("time_us").alias("from_us")).agg(
        until.alias("until_us"), F.first(box_bits(F.col("subscription"))).alias("bits")
    )


def matches(
    events: DataFrame,
    interests: DataFrame,
    ends: DataFrame,
    delivered: DataFrame,
    unicast: DataFrame,
) -> DataFrame:
    """The table `matches`: which hosts wanted which events.

    An event whose publisher ended soon after is owed to nobody: it may never have left.
    """
    points = events.withColumn("point_bits", point_bits(F.col("point")))
    wanted = points.join(
        F.broadcast(interests),
        is_match(F.col("bits"), F.col("point_bits"))
        & F.col("published_us").between(F.col("from_us"), F.col("until_us")),
    )
    lasted = F.col("published_us") <= F.col("until_us") - SETTLE_US
    pairs = wanted.groupBy("event_id", "publisher", "published_us", "host").agg(
        F.max(lasted).alias("has_lasted")
    )
    after = F.col("end_us") - F.col("published_us")
    orphans = (
        events.join(F.broadcast(ends.withColumnRenamed("host", "publisher")), "publisher")
        .where((after >= 0) & (after < SETTLE_US))
        .select("event_id", F.lit(True).alias("is_orphan"))
        .distinct()
    )
    gone = ends.select("host").distinct().withColumn("is_gone", F.lit(True))
    got = delivered.select("event_id", "host").distinct().withColumn("is_delivered", F.lit(True))
    return (
        pairs.join(F.broadcast(gone), "host", "left")
        .join(F.broadcast(orphans), "event_id", "left")
        .join(got, ["event_id", "host"], "left")
        .join(_ways(unicast), ["publisher", "host"], "left")
        .withColumn("is_own", F.col("publisher") == F.col("host"))
        .withColumn("is_owed", F.expr("has_lasted AND is_orphan IS NULL"))
        .withColumn("is_steady", F.col("is_gone").isNull())
        .withColumn("is_delivered", F.col("is_delivered").isNotNull())
        .withColumn("unicast_us", F.expr("CASE WHEN is_own THEN 0 ELSE unicast_us END"))
        .withColumn("opt_us", F.expr("CASE WHEN is_own THEN 0 ELSE opt_us END"))
    )


def receptions(
    records: DataFrame, events: DataFrame, nodes: DataFrame, unicast: DataFrame
) -> DataFrame:
    """The table `receptions`: the first time that each event came to each host."""
    held = "event_id long, `from` long, is_match boolean, hop_count long, published_us long"
    rows = of_kind(records, "event_received", held)
    order = ("time_us", "from", "is_match", "hop_count", "published_us")
    first = rows.groupBy("event_id", "host").agg(F.min(F.struct(*order)).alias("first"))
    senders = nodes.select(F.col("address").alias("from"), F.col("node").alias("from_host"))
    routes = unicast.select(
        F.col("source").alias("from_host"),
        F.col("target").alias("host"),
        F.col("delay_us").alias("link_us"),
    )
    came = (
        first.select("event_id", "host", "first.*")
        .withColumnRenamed("hop_count", "hops")
        .join(F.broadcast(senders), "from", "left")
        .join(F.broadcast(events.select("event_id", "publisher")), "event_id", "left")
        .join(routes, ["from_host", "host"], "left")
        .withColumn("delay_us", F.col("time_us") - F.col("published_us"))
    )
    return came.join(event_paths(came), ["event_id", "host"], "left")


def event_paths(came: DataFrame) -> DataFrame:
    """The way that each event took to each host: `event_id`, `host`, `path_us`, `path`.

    A host's way is that of the peer it got the event from and one link more. Ways are found for
    one number of hops after another, within one row for each event.
    """
    steps = came.where("publisher IS NOT NULL AND host != publisher")
    step = F.collect_list(F.struct("host", "from_host", "link_us")).alias("steps")
    levels = steps.groupBy("event_id", "publisher", "hops").agg(step)
    level = F.array_sort(F.collect_list(F.struct("hops", "steps"))).alias("levels")
    folded = levels.groupBy("event_id", "publisher").agg(level)
    begin = (
        "map_from_arrays(array(publisher), array(named_struct("
        "'path_us', CAST(0 AS BIGINT), 'path', array(publisher))))"
    )
    one_more = (
        "map_from_entries(transform(filter(level.steps, s -> ways[s.from_host] IS NOT NULL), "
        "s -> struct(s.host, named_struct("
        "'path_us', ways[s.from_host].path_us + s.link_us, "
        "'path', concat(ways[s.from_host].path, array(s.host))))))"
    )
    ways = f"aggregate(levels, {begin}, (ways, level) -> map_concat(ways, {one_more}))"
    return (
        folded.select("event_id", F.explode(F.expr(ways)).alias("host", "way"))
        .select("event_id", "host", "way.path_us", "way.path")
        .where("size(path) > 1")
    )


def delivered(records: DataFrame) -> DataFrame:
    """Every delivery that an agent recorded: `time_us`, `host`, `event_id`."""
    return of_kind(records, "delivered", "event_id long")


def deliveries(
    delivered: DataFrame,
    events: DataFrame,
    receptions: DataFrame,
    matches: DataFrame,
    unicast: DataFrame,
) -> DataFrame:
    """The table `deliveries`: what was handed to the user of each host, and how long it took."""
    copies = Window.partitionBy("event_id", "host").orderBy("time_us")
    about = events.select("event_id", "publisher", "published_us")
    ways = receptions.select("event_id", "host", "hops", "path_us")
    asked = matches.select("event_id", "host").withColumn("is_matching", F.lit(True))
    own = "CASE WHEN is_own THEN 0 ELSE {0} END"
    return (
        delivered.withColumn("copy", F.row_number().over(copies))
        .join(F.broadcast(about), "event_id", "left")
        .join(ways, ["event_id", "host"], "left")
        .join(asked, ["event_id", "host"], "left")
        .join(_ways(unicast), ["publisher", "host"], "left")
        .withColumn("is_own", F.col("host") == F.col("publisher"))
        .withColumn("is_matching", F.col("is_matching").isNotNull())
        .withColumn("delay_us", F.col("time_us") - F.col("published_us"))
        .withColumn("rdp", F.expr("CASE WHEN unicast_us > 0 THEN delay_us / unicast_us END"))
        .withColumn("unicast_us", F.expr(own.format("unicast_us")))
        .withColumn("opt_us", F.expr(own.format("opt_us")))
        .withColumn("hops", F.expr(own.format("hops")))
        .withColumn("path_us", F.expr(own.format("path_us")))
    )


def events_table(
    events: DataFrame,
    matches: DataFrame,
    receptions: DataFrame,
    deliveries: DataFrame,
    stress: DataFrame,
) -> DataFrame:
    """The table `events`: each event with what became of it."""
    wanted = matches.groupBy("event_id").agg(
        F.count("*").alias("matching"), F.count_if(F.col("is_owed")).alias("expected")
    )
    came = receptions.groupBy("event_id").agg(
        F.count("*").alias("received"), F.count_if(~F.col("is_match")).alias("false_positives")
    )
    got = deliveries.groupBy("event_id").agg(
        F.count_if(F.col("copy") == 1).alias("delivered"),
        F.count_if(F.col("copy") > 1).alias("duplicates"),
    )
    crossed = stress.groupBy("event_id").agg(
        F.sum("copies").alias("packets"),
        F.count("*").alias("links"),
        F.max("copies").alias("max_stress"),
    )
    joined = events
    for part in (wanted, came, got, crossed):
        joined = joined.join(part, "event_id", "left").fillna(0, part.columns[1:])
    return joined.orderBy("event_id")


def tree_edges(
    records: DataFrame, nodes: DataFrame, unicast: DataFrame, ends: DataFrame
) -> DataFrame:
    """The table `tree_edges`: the links of each version, and when the ends had them.

    An agent that ended (`ends`: `host`, `end_us`) has no links any more, though it never said so.
    """
    held = "version long, peer long"
    added = of_kind(records, "tree_link_added", held).withColumn("change", F.lit(1))
    gone = of_kind(records, "tree_link_removed", held).withColumn("change", F.lit(-1))
    peers = nodes.select(F.col("address").alias("peer"), F.col("node").alias("other"))
    order = F.expr("length(host) < length(other) OR length(host) = length(other) AND host < other")
    changes = (
        added.union(gone)
        .join(F.broadcast(peers), "peer")
        .withColumn("a", F.when(order, F.col("host")).otherwise(F.col("other")))
        .withColumn("b", F.when(order, F.col("other")).otherwise(F.col("host")))
    )
    edges = (
        _held_until(changes, ends)
        .groupBy("version", "a", "b")
        .agg(
            F.min("added_us").alias("added_us"),
            F.max("until_us").alias("last_us"),
            F.count_if(F.col("until_us").isNull()).alias("holding"),
            F.count("added_us").alias("ends"),
        )
    )
    there = unicast.select(
        F.col("source").alias("a"), F.col("target").alias("b"), F.col("delay_us")
    )
    back = there.toDF("b", "a", "delay_back_us")
    removed = F.expr("CASE WHEN holding = 0 THEN last_us END")
    return (
        edges.withColumn("removed_us", removed)
        .join(there, ["a", "b"], "left")
        .join(back, ["a", "b"], "left")
        .orderBy("version", "a", "b")
    )


def _held_until(changes: DataFrame, ends: DataFrame) -> DataFrame:
    """For each link and end of it: `added_us`, and `until_us`, null if it was held to the last."""
    holders = changes.groupBy("version", "a", "b", "host").agg(
        F.min(F.when(F.col("change") > 0, F.col("time_us"))).alias("added_us"),
        F.max(F.when(F.col("change") > 0, F.col("time_us"))).alias("again_us"),
        F.max(F.when(F.col("change") < 0, F.col("time_us"))).alias("removed_us"),
        F.sum("change").alias("holding"),
    )
    # Of two changes at one time, the sum tells which was the last.
    is_gone = "removed_us > again_us OR again_us IS NULL OR removed_us = again_us AND holding <= 0"
    ended = F.broadcast(ends.withColumnRenamed("host", "ended"))
    known = (F.col("ended") == F.col("host")) & (F.col("end_us") >= F.col("again_us"))
    until = F.expr(f"CASE WHEN {is_gone} THEN removed_us ELSE end_us END")
    return (
        holders.join(ended, known, "left")
        .groupBy("version", "a", "b", "host", "added_us", "again_us", "removed_us", "holding")
        .agg(F.min("end_us").alias("end_us"))
        .withColumn("until_us", until)
    )


def _ways(unicast: DataFrame) -> DataFrame:
    """From publishers to hosts: the delays of unicast and of the shortest overlay path."""
    return unicast.select(
        F.col("source").alias("publisher"),
        F.col("target").alias("host"),
        F.col("delay_us").alias("unicast_us"),
        F.col("overlay_us").alias("opt_us"),
    )
