"""The tables from agents' records: published events, matching subscriptions, and deliveries.

The workload is joined with the times that agents recorded (`subscribed`, `event_published`,
`event_received`, `delivered`). The frames are pandas frames with the columns of `docs/tables.md`;
single runs and the tasks of sweeps compute them the same way.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from ipaddress import IPv4Address
from itertools import pairwise
from types import MappingProxyType

import pandas as pd

from analysis.agent_records import AgentRecords
from analysis.run_directory import RecordedRun
from analysis.tables.custody import done_times, owed_in_custody, while_placed
from analysis.tables.event_paths import EventPaths
from analysis.tables.host_paths import HostPaths
from analysis.tables.interests import interest_spans, is_wanted, wanted_events
from topologies.underlay import Underlay

SETTLE_US = 2_000_000  # time that a subscription must last after an event for an expected delivery
_RECEIVED = {
    "event_id": "int64",
    "from": "int64",
    "is_match": "boolean",
    "hop_count": "Int64",
    "published_us": "Int64",
}

_COPY = [
    "event_id",
    "host",
    "from_host",
    "publisher",
    "published_us",
    "time_us",
    "is_match",
    "hops",
]


@dataclass(frozen=True)
class EventTables:
    """The tables about events, by their names; `published` is `events` without the outcomes.

    `receptions` also has `is_match_recorded`, the agent's own record. `repeats` are the copies of
    an event that reached a host after the first one, with the columns of `copies`.
    """

    published: pd.DataFrame
    matches: pd.DataFrame
    receptions: pd.DataFrame
    deliveries: pd.DataFrame
    repeats: pd.DataFrame

    def of_events(self, events: pd.Series) -> "EventTables":
        """The rows about some events."""
        tables = (getattr(self, field.name) for field in fields(self))
        return EventTables(*(table[table["event_id"].isin(events)] for table in tables))


def build_event_tables(run: RecordedRun, paths: HostPaths) -> EventTables:
    """The tables about the events of a run."""
    records, ends = run.records, run.lives.ends_frame()
    end_us = run.duration_us or max(records.last_us().values(), default=0)
    events = published(records, event_topics(run))
    wanted = wanted_events(interest_spans(records, run.workload, ends, end_us), run.workload)
    names = host_names(run.underlay)
    came = receptions(records, events, names, wanted, paths)
    later = repeats(records, events, names, wanted)
    delivered = delivered_records(records, names)
    ways = EventPaths(
        came, later.assign(link_us=paths.unicast_us(later["from_host"], later["host"]))
    )
    came = came.join(ways.of(came).mask(came["host"] == came["publisher"]))
    orphans = lost_with_publishers(events, ends, came)
    asked = matches(events, wanted, ends, orphans, delivered, paths)
    done = done_times(records)
    if not done.empty:
        present = while_placed(wanted, records)
        asked = owed_in_custody(asked, present, ends, done, run.settle_us, end_us)
    got = deliveries(delivered, events, came, asked, paths, ways)
    return EventTables(events, asked, came, got, later)


def host_names(underlay: Underlay) -> dict[int, str]:
    """The names of nodes by their addresses as numbers."""
    return {int(IPv4Address(at)): name for at, name in underlay.name_at.items()}


def event_topics(run: RecordedRun) -> dict[int, int]:
    """The topic of each event by its number; empty in a run without topics."""
    events = run.workload.publications
    return (
        dict(zip(events["event_id"], events["content"], strict=True)) if run.is_topic_based else {}
    )


def published(
    records: AgentRecords, topics: Mapping[int, int] = MappingProxyType({})
) -> pd.DataFrame:
    """Every event once: its publisher, time and, where they are known, tree, content and topic."""
    fields = {"event_id": "int64", "version": "Int64", "point": "Int64"}
    rows = records.frame("event_published", fields)
    first = rows.sort_values(["event_id", "time_us", "host"]).drop_duplicates("event_id")
    named = first.rename(columns={"host": "publisher", "time_us": "published_us"})
    named["topic"] = named["event_id"].map(dict(topics)).astype("Int64")
    columns = ["event_id", "publisher", "published_us", "version", "point", "topic"]
    return named[columns].reset_index(drop=True)


def matches(
    events: pd.DataFrame,
    wanted: pd.DataFrame,
    ends: pd.DataFrame,
    orphans: pd.Series,
    delivered: pd.DataFrame,
    paths: HostPaths,
) -> pd.DataFrame:
    """The table `matches`: hosts and the events that they wanted; orphaned events are not owed."""
    about = events[["event_id", "publisher", "published_us"]]
    both = wanted.merge(about, on="event_id")
    at_us = both["published_us"]
    both = both[(both["from_us"] <= at_us) & (at_us <= both["until_us"])]
    has_lasted = both["published_us"] <= both["until_us"] - SETTLE_US
    keys = ["event_id", "publisher", "published_us", "host"]
    pairs = both.assign(has_lasted=has_lasted).groupby(keys, as_index=False)["has_lasted"].any()
    got = pd.MultiIndex.from_frame(delivered[["event_id", "host"]])
    return pairs.assign(
        is_own=pairs["publisher"] == pairs["host"],
        is_owed=pairs["has_lasted"].astype(bool) & ~pairs["event_id"].isin(orphans),
        is_steady=~pairs["host"].isin(ends["host"]),
        is_delivered=pd.MultiIndex.from_frame(pairs[["event_id", "host"]]).isin(got),
        unicast_us=paths.unicast_us(pairs["publisher"], pairs["host"]),
        opt_us=paths.shortest_us(pairs["publisher"], pairs["host"], pairs["published_us"]),
    )


def lost_with_publishers(events: pd.DataFrame, ends: pd.DataFrame, came: pd.DataFrame) -> pd.Series:
    """The events whose publisher ended soon after them, or before another peer had them."""
    first_us = came[came["host"] != came["publisher"]].groupby("event_id")["time_us"].min()
    both = events.merge(ends.rename(columns={"host": "publisher"}), on="publisher")
    after_us = both["end_us"] - both["published_us"]
    has_left = both["event_id"].map(first_us) <= both["end_us"]
    return both["event_id"][(after_us >= 0) & ((after_us < SETTLE_US) | ~has_left)]


def receptions(
    records: AgentRecords,
    events: pd.DataFrame,
    name_at: Mapping[int, str],
    wanted: pd.DataFrame,
    paths: HostPaths,
) -> pd.DataFrame:
    """The table `receptions` without paths: the first arrival of each event at each host.

    A reception matches if its host had a matching interest from the publication until then.
    """
    rows = records.frame("event_received", _RECEIVED)
    order = ["event_id", "host", "time_us", "from"]
    first = rows.sort_values(order, kind="stable").drop_duplicates(["event_id", "host"])
    about = events[["event_id", "publisher", "published_us"]]
    came = first.merge(about, on="event_id", how="left", suffixes=("", "_said"))
    came["from_host"] = came["from"].map(name_at)
    came["published_us"] = came["published_us"].fillna(came["published_us_said"].astype("Int64"))
    came["is_match_recorded"] = came["is_match"]
    came["is_match"] = is_wanted(wanted, came)
    came["link_us"] = paths.unicast_us(came["from_host"], came["host"])
    came["delay_us"] = came["time_us"] - came["published_us"]
    return came.rename(columns={"hop_count": "hops"})


def repeats(
    records: AgentRecords, events: pd.DataFrame, name_at: Mapping[int, str], wanted: pd.DataFrame
) -> pd.DataFrame:
    """Every copy of an event that reached a host after the first: `is_match` as in `receptions`."""
    fields = {"event_id": "int64", "from": "Int64", "hop_count": "Int64"}
    rows = records.frame("event_repeated", fields)
    about = events[["event_id", "publisher", "published_us"]]
    came = rows.merge(about, on="event_id", how="left")
    named = came.assign(is_match=is_wanted(wanted, came), from_host=came["from"].map(name_at))
    return named.rename(columns={"hop_count": "hops"})[_COPY]


def copies(tables: EventTables) -> pd.DataFrame:
    """The table `copies`: every arrival of an event at a host, the first and those after it."""
    first, later = tables.receptions.assign(is_first=True), tables.repeats.assign(is_first=False)
    both = pd.concat([first[[*_COPY, "is_first"]], later], ignore_index=True)
    return both.sort_values(["event_id", "host", "time_us"], kind="stable")


def recorded_messages(tables: EventTables) -> pd.DataFrame:
    """The number of messages with each event that each agent received from each other one.

    The columns are `event_id`, `sender`, `receiver`, and `sent` and `arrived`, which are equal.
    """
    named = {"from_host": "sender", "host": "receiver"}
    key = ["event_id", "sender", "receiver"]
    came = copies(tables).rename(columns=named).dropna(subset=["sender"])
    counts = came.groupby(key, as_index=False).agg(sent=("time_us", "size"))
    return counts.assign(arrived=counts["sent"])


def delivered_records(records: AgentRecords, name_at: Mapping[int, str]) -> pd.DataFrame:
    """The recorded deliveries, with the host that sent each (`from_host`)."""
    fields = {"event_id": "int64", "from": "Int64", "hop_count": "Int64"}
    rows = records.frame("delivered", fields)
    return rows.assign(from_host=rows["from"].map(name_at)).drop(columns="from")


def deliveries(
    delivered: pd.DataFrame,
    events: pd.DataFrame,
    receptions: pd.DataFrame,
    matches: pd.DataFrame,
    paths: HostPaths,
    ways: EventPaths,
) -> pd.DataFrame:
    """The table `deliveries`: the events delivered at each host, with delays.

    The path is that of the copy that was delivered; if hops were not recorded, of the first one.
    """
    key = ["event_id", "host"]
    got = delivered.sort_values([*key, "time_us"], kind="stable").reset_index(drop=True)
    got["copy"] = got.groupby(key).cumcount() + 1
    got = got.merge(events[["event_id", "publisher", "published_us"]], on="event_id", how="left")
    got = got.merge(receptions[[*key, "hops"]], on=key, how="left")
    asked = pd.MultiIndex.from_frame(matches[key])
    is_own = got["host"] == got["publisher"]
    got["hops"] = got["hop_count"].fillna(got["hops"]).mask(is_own, 0)
    way = ways.of(got)
    unicast_us = paths.unicast_us(got["publisher"], got["host"])
    got["published_us"] = got["published_us"].astype("Int64")
    delay_us = got["time_us"] - got["published_us"]
    rdp = delay_us.astype("Float64") / unicast_us.where(unicast_us > 0).astype("Float64")
    return got.assign(
        is_own=is_own,
        is_matching=pd.MultiIndex.from_frame(got[key]).isin(asked),
        delay_us=delay_us,
        unicast_us=unicast_us,
        opt_us=paths.shortest_us(got["publisher"], got["host"], got["published_us"]),
        rdp=rdp,
        path_us=way["path_us"].mask(is_own, 0),
        path=way["path"],
    )


def events_table(tables: EventTables, stress: pd.DataFrame) -> pd.DataFrame:
    """The table `events`: each event with its outcome.

    `stress` has the values from packets: `event_id`, `packets`, `links`, `max_stress`.
    """
    asked, came, got = tables.matches, tables.receptions, tables.deliveries
    every = copies(tables)
    parts = (
        _counts(asked, matching=True, expected=asked["is_owed"]),
        _counts(came, received=True, false_positives=~came["is_match"]),
        _counts(got, delivered=got["copy"] == 1, duplicates=got["copy"] > 1),
        _counts(every, copies=True, overhead=~every["is_match"].astype(bool)),
        stress.set_index("event_id"),
    )
    joined = tables.published.set_index("event_id")
    for part in parts:
        joined = joined.join(part)
        joined[part.columns] = joined[part.columns].fillna(0).astype("int64")
    return joined.reset_index().sort_values("event_id")


def _counts(rows: pd.DataFrame, **flags: pd.Series | bool) -> pd.DataFrame:
    """The number of rows of each event with each flag."""
    columns = {name: rows["event_id"].notna() & flag for name, flag in flags.items()}
    return pd.DataFrame({**columns, "event_id": rows["event_id"]}).groupby("event_id").sum()


def routing_load(tables: EventTables, paths: HostPaths) -> pd.DataFrame:
    """The table `routing_load`: paths from publishers to subscribers over each overlay link.

    A row for each direction of each overlay link that carried events: `load` is the paper's
    Upsilon(i, j), `events` how many events came over it, wanted or not, and `delay_us` its d.
    """
    paths_taken = to_others(tables.deliveries)["path"].dropna()
    load = Counter(hop for path in paths_taken for hop in pairwise(path))
    came = tables.receptions.dropna(subset=["from_host"])
    events = Counter(zip(came["from_host"], came["host"], strict=True))
    ends = sorted(load.keys() | events.keys())
    rows = pd.DataFrame(ends, columns=["from_host", "to_host"], dtype=object)
    return rows.assign(
        load=[load[hop] for hop in ends],
        events=[events[hop] for hop in ends],
        delay_us=paths.unicast_us(rows["from_host"], rows["to_host"]),
    )


def to_others(deliveries: pd.DataFrame) -> pd.DataFrame:
    """The first delivery of each event to each host other than the publisher."""
    is_first = (deliveries["copy"] == 1) & deliveries["publisher"].notna()
    return deliveries[is_first & ~deliveries["is_own"]]
