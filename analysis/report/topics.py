"""The topics of a report: size and cost of each, the links of its events, and loads of hosts.

All values are over the events of the measured window, as the metrics. Nodes and links have their
numbers on the map.
"""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from analysis.report.reported_run import ReportedRun
from topologies.underlay import Underlay

Columns = dict[str, Any]

_MOST_DRAWN = 400_000  # numbers about links, so that a report with many topics stays small
_TABLES = {
    "events": ("event_id", "publisher", "published_us", "topic", "overhead"),
    "deliveries": ("event_id", "host", "rdp", "hops", "is_own", "copy"),
    "copies": ("event_id", "host", "from_host", "is_match"),
    "matches": ("event_id", "host"),
}


def topic_section(run: ReportedRun, underlay: Underlay) -> Columns | None:
    """The topics of the page; None in a run without topics, or without tables."""
    found = {name: run.table(name, columns) for name, columns in _TABLES.items()}
    if not run.is_topic_based or any(table is None for table in found.values()):
        return None
    tables = {name: table.to_pandas() for name, table in found.items() if table is not None}
    measured = tables["events"].dropna(subset=["topic"])
    measured = measured[measured["published_us"] >= (run.window_start_us or 0)]
    if measured.empty:
        return None
    topic = measured.set_index("event_id")["topic"].astype("int64")
    rows = _about_topics(run, tables, topic, measured)
    drawn = _drawn_topics(run, tables, topic, rows, underlay)
    return {
        "rows": {"topic": rows.index.tolist(), **{c: _plain(rows[c]) for c in rows}},
        "drawn": drawn,
        "hosts": _host_columns(run, tables, topic, measured, underlay),
        "words": _words(rows, measured),
    }


def _about_topics(
    run: ReportedRun,
    tables: Mapping[str, pd.DataFrame],
    topic: pd.Series,
    measured: pd.DataFrame,
) -> pd.DataFrame:
    """A row for each topic with events, the largest first."""
    got = tables["deliveries"]
    got = got[(got["copy"] == 1) & ~got["is_own"].astype(bool)]
    got = got.assign(topic=got["event_id"].map(topic)).dropna(subset=["topic"])
    by_topic = got.groupby("topic")
    sizes = run.interests.groupby("content")["host"].nunique()
    rows = pd.DataFrame(
        {
            "subscribers": sizes,
            "events": measured.groupby("topic").size(),
            "deliveries": by_topic.size(),
            "overhead": measured.groupby("topic")["overhead"].sum(),
            "path_length": by_topic["hops"].mean(),
            "rdp": by_topic["rdp"].mean(),
            "relays": _relays(tables, topic, measured).groupby("topic").size(),
        }
    )
    rows = rows[rows["events"] > 0]
    counts = ["subscribers", "events", "deliveries", "overhead", "relays"]
    rows[counts] = rows[counts].fillna(0).astype("int64")
    per_delivery = rows["overhead"] / rows["deliveries"].where(rows["deliveries"] > 0)
    rows.insert(4, "overhead_per_delivery", per_delivery)
    rows.index = rows.index.astype("int64")
    return (
        rows.assign(number=rows.index)
        .sort_values(["subscribers", "events", "number"], ascending=[False, False, True])
        .drop(columns="number")
    )


def _forwards(tables: Mapping[str, pd.DataFrame], topic: pd.Series) -> pd.DataFrame:
    """Every copy of a measured event: `topic`, `event_id`, the `host` that sent it, `is_wanted`."""
    sent = tables["copies"][["event_id", "from_host"]].rename(columns={"from_host": "host"})
    sent = sent[sent["event_id"].isin(topic.index)]
    wanted = pd.MultiIndex.from_frame(tables["matches"])
    is_wanted = pd.MultiIndex.from_frame(sent[["event_id", "host"]]).isin(wanted)
    return sent.assign(topic=sent["event_id"].map(topic), is_wanted=is_wanted)


def _relays(
    tables: Mapping[str, pd.DataFrame], topic: pd.Series, measured: pd.DataFrame
) -> pd.DataFrame:
    """The hosts that forwarded a topic without wanting it, and how often."""
    publisher = measured.set_index("event_id")["publisher"]
    sent = _forwards(tables, topic)
    is_relay = ~sent["is_wanted"] & (sent["event_id"].map(publisher) != sent["host"])
    return sent[is_relay].groupby(["topic", "host"], as_index=False).size()


def _drawn_topics(
    run: ReportedRun,
    tables: Mapping[str, pd.DataFrame],
    topic: pd.Series,
    rows: pd.DataFrame,
    underlay: Underlay,
) -> dict[str, Columns]:
    """The drawing of each topic by its number as text, up to the size limit of the page."""
    number = {name: index for index, name in enumerate(underlay.node_names)}
    events = tables["events"].set_index("event_id")["publisher"]
    relays = _relays(tables, topic, tables["events"])
    links = _crossings(run, topic, underlay)
    interests = run.interests
    drawn: dict[str, Columns] = {}
    room = _MOST_DRAWN
    for one in rows.index:
        crossed = links[links["topic"] == one] if links is not None else None
        wants = sorted(set(interests["host"][interests["content"] == one].map(number)))
        passed = relays[relays["topic"] == one]
        room -= len(wants) + (0 if crossed is None else 3 * len(crossed))
        if room < 0:
            break
        drawn[str(one)] = {
            "subscribers": wants,
            "publishers": sorted(set(events[topic.index[topic == one]].map(number))),
            "relays": passed["host"].map(number).tolist(),
            "relayed": passed["size"].tolist(),
            "links": [] if crossed is None else crossed["link"].tolist(),
            "ab": [] if crossed is None else crossed["ab"].tolist(),
            "ba": [] if crossed is None else crossed["ba"].tolist(),
        }
    return drawn


def _crossings(run: ReportedRun, topic: pd.Series, underlay: Underlay) -> pd.DataFrame | None:
    """Crossings of events of each topic on each link and direction; None without packets."""
    table = run.table("stress", ("event_id", "link", "direction", "copies"))
    if table is None or not table.num_rows:
        return None
    rows = table.to_pandas()
    rows = rows[rows["event_id"].isin(topic.index)]
    number = {link.name: index for index, link in enumerate(underlay.links)}
    rows = rows.assign(topic=rows["event_id"].map(topic), link=rows["link"].map(number))
    ways = rows.pivot_table(
        index=["topic", "link"], columns="direction", values="copies", aggfunc="sum", fill_value=0
    )
    return ways.reindex(columns=["ab", "ba"], fill_value=0).astype("int64").reset_index()


def _host_columns(
    run: ReportedRun,
    tables: Mapping[str, pd.DataFrame],
    topic: pd.Series,
    measured: pd.DataFrame,
    underlay: Underlay,
) -> Columns:
    """Events of each host: sent, wanted, published and received."""
    came = tables["copies"][tables["copies"]["event_id"].isin(topic.index)]
    is_match = came["is_match"].astype(bool)
    columns = {
        "topics": run.interests.groupby("host")["content"].nunique(),
        "published": measured.groupby("publisher").size(),
        "received": came[is_match].groupby("host").size(),
        "unwanted": came[~is_match].groupby("host").size(),
        "forwarded": came.groupby("from_host").size(),
    }
    names = [host.name for host in underlay.hosts]
    frame = pd.DataFrame(columns).reindex(names).fillna(0).astype("int64")
    return {"host": names, **{name: frame[name].tolist() for name in frame}}


def _plain(column: pd.Series) -> list[Any]:
    """The values without those that JSON does not have."""
    return [None if pd.isna(value) else value for value in column.tolist()]


def _words(rows: pd.DataFrame, measured: pd.DataFrame) -> str:
    return (
        f"{len(measured):,} events on {len(rows):,} topics, published after all agents were ready. "
        "A click on a topic draws it."
    )
