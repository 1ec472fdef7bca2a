"""The cost of routing events over the overlay.

Definitions follow section 6.2 of Tariq, Koldehofe and Rothermel, "Efficient content-based routing
with network topology inference", DEBS 2013. For runs whose tree or peers change (section 6.2.3),
there are also the metrics of the tree of the last selection alone.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from analysis.metrics.delivery import event_counts, false_positives
from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.metrics.statistics import ratio, relative_delay
from analysis.tables.events import EventTables, to_others


class RoutingCost(NamedTuple):
    """The sum of Upsilon(i, j)·d(i, j) over overlay links, in seconds, with that of OPT.

    It is computed as the sum over events and their subscribers of the delay of the overlay path
    that the event took. OPT takes shortest paths over the overlay at the time of each event.
    `opt_s` and `efficiency` are over the deliveries for which both are known; lower is better, and
    1 is optimal.
    """

    cost_s: float | None
    per_delivery_s: float | None
    opt_s: float | None
    efficiency: float | None


def routing_cost(deliveries: pd.DataFrame) -> RoutingCost:
    """The cost of the first deliveries to other hosts than the publisher."""
    taken_us = deliveries["path_us"].dropna()
    both = deliveries.dropna(subset=["path_us", "opt_us"])
    opt_us = int(both["opt_us"].sum())
    return RoutingCost(
        int(taken_us.sum()) / 1e6 if len(taken_us) else None,
        ratio(int(taken_us.sum()) / 1e6, len(taken_us)),
        opt_us / 1e6 if len(both) else None,
        ratio(int(both["path_us"].sum()), opt_us),
    )


def tree_selections(evidence: Evidence) -> pd.Series | None:
    """For each published event, the selection of cores whose tree it was published on.

    All versions that are built for one list of cores are numbered up to that of the list. The
    selection is 0 if no cores were selected; None if no event has the version of its tree.
    """
    versions = evidence.tables.published["version"]
    if versions.isna().all():
        return None
    rows = evidence.run.records.frame("cores_selected", {"version": "int64"})
    selected = np.unique(rows["version"].to_numpy())
    if not selected.size:
        return pd.Series(0, index=versions.index)
    places = np.searchsorted(selected, versions.fillna(0).to_numpy(dtype=np.int64))
    return pd.Series(selected[np.minimum(places, selected.size - 1)], index=versions.index)


def routing_summary(evidence: Evidence, tables: EventTables) -> dict[str, Any]:
    """The metrics of events and routing of some events."""
    cost = routing_cost(to_others(tables.deliveries))
    return {
        "events": event_counts(tables, evidence.host_paths),
        "false_positives": false_positives(tables),
        "rdp_of_paths": relative_delay(to_others(tables.deliveries), "path_us"),
        "routing_cost": cost.cost_s,
        "routing_cost_per_delivery": cost.per_delivery_s,
        "routing_cost_opt": cost.opt_s,
        "routing_efficiency": cost.efficiency,
    }


def last_tree(evidence: Evidence) -> dict[str, Any] | None:
    """The metrics of the events that were published on the tree of the last selection."""
    selections = tree_selections(evidence)
    if selections is None:
        return None
    events = evidence.tables.published["event_id"][selections == selections.max()]
    return routing_summary(evidence, evidence.tables.of_events(events))


_UNKNOWN_PATH = "the path of no delivery is known"
METRICS = (
    Metric(
        "routing_cost",
        "s",
        "Routing cost",
        "Delay of the overlay path of every delivery, added up, in seconds: the load of every tree "
        "link times its delay.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        lambda evidence: routing_cost(evidence.to_others).cost_s,
        why_null=_UNKNOWN_PATH,
        summary=(Part("", "Routing cost"),),
    ),
    Metric(
        "routing_cost_per_delivery",
        "s",
        "Routing cost per delivery",
        "Routing cost divided by the deliveries to other hosts than the publisher, in seconds.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        lambda evidence: routing_cost(evidence.to_others).per_delivery_s,
        why_null=_UNKNOWN_PATH,
    ),
    Metric(
        "routing_cost_opt",
        "s",
        "Routing cost of OPT",
        "Routing cost if every event took the shortest paths over the overlay at the time of its "
        "publication, over the deliveries for which both are known.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        lambda evidence: routing_cost(evidence.to_others).opt_s,
        why_null=_UNKNOWN_PATH,
    ),
    Metric(
        "routing_efficiency",
        "times OPT",
        "Routing efficiency",
        "Routing cost divided by the routing cost of OPT. 1 is the optimum of this overlay.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        lambda evidence: routing_cost(evidence.to_others).efficiency,
        why_null=_UNKNOWN_PATH,
        headline=Headline("Routing efficiency", details=(("routing_cost", "cost"),)),
        summary=(Part("", "Routing efficiency"),),
    ),
    Metric(
        "last_tree",
        "",
        "Last tree",
        "The metrics of events and routing for the events that were published on the tree of the "
        "last selection.",
        Group.EVENTS,
        (Input.EVENTS,),
        last_tree,
        why_null="no event says which tree it was published on",
        note=lambda _: "only events published on the tree of the last selection",
    ),
)
