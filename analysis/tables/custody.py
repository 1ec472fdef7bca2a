"""Expected deliveries where events are in custody: those at hosts that stay.

The publisher records when an event is done (`event_done`). An event whose publisher ended before
that is not owed to any host. A host stays if it is up and subscribed from shortly before the event
until it is done, and at least as long as a subscriber may need to find another parent after its
parent has failed. An agent is up once it has a place in the overlay, where
that is recorded (`placed`).
"""

import pandas as pd

from analysis.agent_records import AgentRecords

STAY_US = 20_000_000  # after the publication; a failed peer is noticed within 3 s by default


def done_times(records: AgentRecords) -> pd.Series:
    """When each event was done, by its number; empty where events are not in custody."""
    return records.frame("event_done", {"event_id": "int64"}).groupby("event_id")["time_us"].min()


def while_placed(wanted: pd.DataFrame, records: AgentRecords) -> pd.DataFrame:
    """From when until when hosts wanted events and had a place, where agents record places."""
    placed = records.frame("placed", {})[["host", "time_us"]].sort_values("time_us")
    if placed.empty:
        return wanted
    started = records.frame("agent_started", {})[["host", "time_us"]].sort_values("time_us")
    spans = pd.merge_asof(
        wanted.sort_values("from_us"), started.rename(columns={"time_us": "start_us"}),
        left_on="from_us", right_on="start_us", by="host",
    )  # fmt: skip
    spans["start_us"] = spans["start_us"].fillna(0).astype("int64")
    spans = pd.merge_asof(
        spans.sort_values("start_us"), placed.rename(columns={"time_us": "placed_us"}),
        left_on="start_us", right_on="placed_us", by="host", direction="forward",
    )  # fmt: skip
    spans = spans.dropna(subset=["placed_us"])
    from_us = spans[["from_us", "placed_us"]].max(axis=1).astype("int64")
    return spans.assign(from_us=from_us)[list(wanted.columns)]


def owed_in_custody(
    matches: pd.DataFrame,
    wanted: pd.DataFrame,
    ends: pd.DataFrame,
    done: pd.Series,
    settle_us: int,
    run_end_us: int,
) -> pd.DataFrame:
    """The table `matches` with `is_owed` and `is_steady` as custody promises deliveries.

    `wanted` has the times from and until which hosts wanted events, while they were up and placed.
    """
    orphans = _orphans(matches, ends, done)
    spans = matches[["event_id", "host", "published_us"]].merge(wanted, on=["event_id", "host"])
    stayed = spans[_has_stayed(spans, done, settle_us, run_end_us)]
    pairs = pd.MultiIndex.from_frame(matches[["event_id", "host"]])
    is_steady = pairs.isin(pd.MultiIndex.from_frame(stayed[["event_id", "host"]]))
    is_owed = (matches["is_owed"] | is_steady) & ~matches["event_id"].isin(orphans)
    return matches.assign(is_owed=is_owed, is_steady=is_steady)


def _orphans(matches: pd.DataFrame, ends: pd.DataFrame, done: pd.Series) -> pd.Series:
    """The events whose publisher ended before they were done."""
    events = matches.drop_duplicates("event_id")[["event_id", "publisher", "published_us"]]
    both = events.merge(ends.rename(columns={"host": "publisher"}), on="publisher")
    is_undone = ~both["event_id"].isin(done.index)
    return both["event_id"][(both["end_us"] >= both["published_us"]) & is_undone]


def _has_stayed(spans: pd.DataFrame, done: pd.Series, settle_us: int, run_end_us: int) -> pd.Series:
    """Whether a host was up and subscribed during the time that an event requires."""
    published_us = spans["published_us"]
    done_us = spans["event_id"].map(done).fillna(published_us)
    wanted_us = done_us.clip(lower=published_us + STAY_US).clip(upper=run_end_us)
    is_early = spans["from_us"] <= published_us - settle_us
    return is_early & (spans["until_us"] >= wanted_us)


def count_repeats(deliveries: pd.DataFrame, ends: pd.DataFrame) -> pd.Series:
    """The number of each delivery among those of its event to the same agent, from 1.

    A restarted agent counts as another one.
    """
    both = deliveries[["host", "time_us"]].reset_index(names="row").merge(ends, on="host")
    former = both[both["end_us"] <= both["time_us"]].groupby("row").size()
    agent = pd.Series(deliveries.index, index=deliveries.index).map(former).fillna(0)
    key = [deliveries["event_id"], deliveries["host"], agent]
    return deliveries.groupby(key).cumcount() + 1
