"""Hosts and the events that they wanted: matches of the workload, at the recorded times.

The workload decides which interest matches which event; only it interprets contents.
Agents record when they subscribed and unsubscribed.
"""

import pandas as pd

from analysis.agent_records import AgentRecords
from analysis.workload_files import WorkloadTables

_FIELDS = {"interest": "Int64", "subscription": "Int64"}


def interest_spans(
    records: AgentRecords, workload: WorkloadTables, ends: pd.DataFrame, end_us: int
) -> pd.DataFrame:
    """The times of interests of hosts: `host`, `interest`, `from_us`, `until_us`.

    An interest ends when the agent unsubscribes, when the agent ends (`ends`: `host`, `end_us`),
    or with the run. Agents of format 1 record the content of an interest instead of its number.
    """
    made = records.frame("subscribed", _FIELDS).assign(is_made=True)
    undone = records.frame("unsubscribed", _FIELDS).assign(is_made=False)
    changes = _with_numbers(pd.concat([made, undone], ignore_index=True), workload.interests)
    changes = changes.sort_values(["host", "interest", "time_us", "is_made"], kind="stable")
    changes["next_us"] = changes.groupby(["host", "interest"])["time_us"].shift(-1)
    spans = changes[changes["is_made"]].reset_index(drop=True)
    spans["row"] = spans.index
    later = spans[["row", "host", "time_us"]].merge(ends, on="host")
    first = later[later["end_us"] > later["time_us"]].groupby("row")["end_us"].min()
    bounds = pd.DataFrame(
        {"next_us": spans["next_us"], "end_us": spans["row"].map(first), "run_us": end_us}
    )
    return pd.DataFrame(
        {
            "host": spans["host"],
            "interest": spans["interest"].astype("int64"),
            "from_us": spans["time_us"],
            "until_us": bounds.min(axis=1).astype("int64"),
        }
    )


def _with_numbers(changes: pd.DataFrame, interests: pd.DataFrame) -> pd.DataFrame:
    """Changes of interests of the workload, each with the number of its interest."""
    known = interests.drop_duplicates(["host", "content"]).set_index(["host", "content"])
    keys = pd.MultiIndex.from_arrays([changes["host"], changes["subscription"].fillna(-1)])
    found = known["interest"].reindex(keys).to_numpy()
    numbers = changes["interest"].fillna(pd.Series(found, index=changes.index).astype("Int64"))
    return changes.assign(interest=numbers).dropna(subset=["interest"])


def wanted_events(spans: pd.DataFrame, workload: WorkloadTables) -> pd.DataFrame:
    """Hosts with an interest that matches an event: `event_id`, `host`, `from_us`, `until_us`."""
    return workload.matches.merge(spans, on="interest")[["event_id", "host", "from_us", "until_us"]]


def is_wanted(wanted: pd.DataFrame, came: pd.DataFrame) -> pd.Series:
    """Whether the host of each reception had a matching interest until then.

    That is from the publication (`published_us`, where it is known) until `time_us`.
    """
    rows = came[["event_id", "host", "published_us", "time_us"]].reset_index(names="row")
    both = rows.merge(wanted, on=["event_id", "host"])
    since_us = both["published_us"].fillna(both["time_us"])
    lasted = both[(both["from_us"] <= since_us) & (both["time_us"] <= both["until_us"])]
    return pd.Series(came.index.isin(lasted["row"]), index=came.index)
