"""The cost of forwarding subscriptions and routing events, as in figures 6 (b) to (d).

Section 6.2.2 of Tariq, Koldehofe and Rothermel, DEBS 2013: figures 6 (b) and (c) have "the
communication cost to forward subscriptions as well as route events", and the traffic of figure 6(d)
"includes all the control overhead induced in the system during leader election, selection of cores,
maintenance of SPTs [...], subscription forwarding and event dissemination". Messages are classified
by layer and role. They are those counted by agents that ran to the end, each once.
"""

from collections.abc import Callable

import pandas as pd

from analysis.message_kinds import MessageKind
from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Metric
from analysis.metrics.routing import routing_cost
from analysis.metrics.statistics import ratio
from analysis.metrics.traffic import matching_receptions
from analysis.tables.events import host_names, to_others

_US_PER_S = 1e6


def is_routed(kind: MessageKind) -> bool:
    """Whether messages of a kind are not for discovery, acknowledgements or delay measurements.

    The leader is elected and trees are maintained by periodic messages, which therefore count, too.
    """
    return kind.layer in ("routing", "pubsub")


def is_content(kind: MessageKind) -> bool:
    """Whether messages of a kind forward subscriptions or events."""
    return kind.layer == "pubsub"


def is_subscription(kind: MessageKind) -> bool:
    """Whether messages of a kind forward subscriptions, or request missing ones."""
    return kind.layer == "pubsub" and kind.role != "event"


def sent_by_host(evidence: Evidence, counts: Callable[[MessageKind], bool]) -> pd.Series:
    """The number of messages of some kinds that each agent sent."""
    names = {f"sent_{kind.name}" for kind in evidence.run.messages if counts(kind)}
    reports = evidence.run.lives.reports
    sent = {
        host: sum(report.values.get(name, 0) for name in names) for host, report in reports.items()
    }
    return pd.Series(sent, dtype="int64")


def messages_per_event(
    counts: Callable[[MessageKind], bool],
) -> Callable[[Evidence], float | None]:
    """Messages of some kinds, divided by the matching events that peers received."""
    return lambda evidence: ratio(
        int(sent_by_host(evidence, counts).sum()), matching_receptions(evidence)
    )


def tree_link_delay_us(evidence: Evidence) -> pd.Series:
    """The mean delay of the tree links of each host, over all versions of the tree."""
    links = evidence.run.records.frame("tree_link_added", {"peer": "int64"})
    links["other"] = links["peer"].map(host_names(evidence.run.underlay))
    delay_us = evidence.host_paths.unicast_us(links["host"], links["other"])
    return delay_us.groupby(links["host"]).mean().astype("float64").dropna()


def subscription_cost(evidence: Evidence) -> float | None:
    """The sum of the delays of all messages that forward subscriptions, in seconds.

    Agents count messages, but not the links that they take: each message is counted with the mean
    delay of its sender's tree links. In two simulated runs of 128 peers that is 6 and 9 % above the
    sum over the links in packets. None if there are no tree links.
    """
    delay_us = tree_link_delay_us(evidence)
    if delay_us.empty:
        return None
    sent = sent_by_host(evidence, is_subscription)
    return float((sent * delay_us.reindex(sent.index).fillna(delay_us.mean())).sum()) / _US_PER_S


def communication_cost(evidence: Evidence) -> dict[str, float] | None:
    """The cost of routing all events of a run and of forwarding subscriptions, in seconds."""
    subscriptions_s = subscription_cost(evidence)
    events_s = routing_cost(to_others(evidence.tables.deliveries)).cost_s
    if subscriptions_s is None or events_s is None:
        return None
    total_s = events_s + subscriptions_s
    return {"events": events_s, "subscriptions": subscriptions_s, "total": total_s}


def communication_cost_per_delivery(evidence: Evidence) -> dict[str, float] | None:
    """The same divided by the deliveries to other hosts than the publisher."""
    cost_s = communication_cost(evidence)
    deliveries = len(to_others(evidence.tables.deliveries))
    return cost_s and {name: seconds / deliveries for name, seconds in cost_s.items()}


_COUNTED = (Input.DELIVERIES, Input.COUNTS)
_NO_MATCH = "no matching event was received"
_NO_TREE = "no agent recorded links of a tree, or the path of no delivery is known"
METRICS = (
    Metric(
        "control_efficiency_without_discovery",
        "messages per event",
        "Control efficiency without discovery",
        "Messages of the layers routing and pubsub for each matching event received: election, "
        "selection, trees, subscriptions and events, periodic ones included, each once; as counted "
        "by agents that ran to the end. 1 is ideal.",
        Group.EVENTS,
        _COUNTED,
        messages_per_event(is_routed),
        why_null=_NO_MATCH,
    ),
    Metric(
        "communication_messages",
        "messages per event",
        "Messages of subscriptions and events",
        "Messages of the layer pubsub for each matching event received: they forward subscriptions "
        "and events.",
        Group.EVENTS,
        _COUNTED,
        messages_per_event(is_content),
        why_null=_NO_MATCH,
    ),
    Metric(
        "communication_cost",
        "s",
        "Communication cost",
        "Routing cost of all events, warm-up included, plus the delay of every other message of "
        "the layer pubsub (subscriptions), which is taken as the mean delay of its sender's tree "
        "links. The parts: events, subscriptions, total.",
        Group.EVENTS,
        _COUNTED,
        communication_cost,
        why_null=_NO_TREE,
    ),
    Metric(
        "communication_cost_per_delivery",
        "s",
        "Communication cost per delivery",
        "Communication cost divided by the deliveries to other hosts than the publisher.",
        Group.EVENTS,
        _COUNTED,
        communication_cost_per_delivery,
        why_null=_NO_TREE,
    ),
)
