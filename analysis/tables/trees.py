"""The table `tree_edges`: the links of each version of the routing tree, with their times."""

from collections.abc import Mapping

import pandas as pd

from analysis.agent_records import AgentRecords
from analysis.tables.host_paths import HostPaths

_FIELDS = {"version": "Int64", "peer": "int64"}
_HOLDER = ["version", "a", "b", "host"]


def tree_edges(
    records: AgentRecords, name_at: Mapping[int, str], ends: pd.DataFrame, paths: HostPaths
) -> pd.DataFrame:
    """The links of each version, with the times at which their ends had them.

    An agent that ended (`ends`: `host`, `end_us`) has no links, even without a record of it.
    """
    added = records.frame("tree_link_added", _FIELDS).assign(change=1)
    removed = records.frame("tree_link_removed", _FIELDS).assign(change=-1)
    changes = pd.concat([added, removed], ignore_index=True)
    changes["other"] = changes["peer"].map(name_at)
    changes = changes.dropna(subset=["other"])
    ordered = [sorted(p, key=_place) for p in zip(changes["host"], changes["other"], strict=True)]
    changes["a"], changes["b"] = [a for a, _ in ordered], [b for _, b in ordered]
    holders = _held_until(changes, ends)
    edges = holders.groupby(["version", "a", "b"], as_index=False, dropna=False).agg(
        added_us=("added_us", "min"),
        last_us=("until_us", "max"),
        ends=("added_us", "count"),
        holding=("until_us", lambda times: times.isna().sum()),
    )
    return edges.assign(
        removed_us=edges["last_us"].mask(edges["holding"] > 0),
        delay_us=paths.unicast_us(edges["a"], edges["b"]),
        delay_back_us=paths.unicast_us(edges["b"], edges["a"]),
    ).sort_values(["version", "a", "b"])


def _place(host: str) -> tuple[int, str]:
    """The sort key of names: by length, then alphabetical."""
    return len(host), host


def _held_until(changes: pd.DataFrame, ends: pd.DataFrame) -> pd.DataFrame:
    """For each link and end of it: `added_us`, and `until_us`, missing if held to the last."""
    is_added = changes["change"] > 0
    timed = changes.assign(
        added=changes["time_us"].astype("Int64").where(is_added),
        gone=changes["time_us"].astype("Int64").mask(is_added),
    )
    holders = timed.groupby(_HOLDER, as_index=False, dropna=False).agg(
        added_us=("added", "min"),
        again_us=("added", "max"),
        removed_us=("gone", "max"),
        holding=("change", "sum"),
    )
    again_us, removed_us = holders["again_us"], holders["removed_us"]
    # The sum decides which of two changes at one time was the last.
    is_last = (removed_us > again_us) | ((removed_us == again_us) & (holders["holding"] <= 0))
    is_gone = again_us.isna() | is_last.fillna(False)
    holders["row"] = holders.index
    later = holders[["row", "host", "again_us"]].merge(ends, on="host")
    first = later[later["end_us"] >= later["again_us"]].groupby("row")["end_us"].min()
    end_us = holders["row"].map(first).astype("Int64")
    return holders.assign(until_us=removed_us.where(is_gone, end_us))
