"""What was published, received and delivered."""

from typing import Any

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.metrics.statistics import ratio
from analysis.tables.events import EventTables, to_others
from analysis.tables.host_paths import HostPaths


def delivery(evidence: Evidence) -> dict[str, int]:
    """What subscribers were owed and got.

    `expected` are pairs of an event and a host that lived through the whole run, where a matching
    subscription was made before the event and lasted for a while after; `delivered` those of them
    that were delivered. `duplicates` are deliveries more than one of an event to a host, and
    `unasked` deliveries without any matching subscription.
    """
    matches, deliveries = evidence.tables.matches, evidence.tables.deliveries
    owed = matches[matches["is_owed"]]
    steady, unsteady = owed[owed["is_steady"]], owed[~owed["is_steady"]]
    return {
        "expected": len(steady),
        "delivered": int(steady["is_delivered"].sum()),
        "unsteady_expected": len(unsteady),
        "unsteady_delivered": int(unsteady["is_delivered"].sum()),
        "duplicates": int((deliveries["copy"] > 1).sum()),
        "unasked": int((~deliveries["is_matching"]).sum()),
    }


def event_counts(tables: EventTables, paths: HostPaths) -> dict[str, int]:
    """How many events were published, received over the network, and delivered.

    `crossings` are the physical links on the unicast routes over which they came. `in_vain` is the
    former name of `false_positives`.
    """
    came, got = tables.receptions, tables.deliveries
    wrong = int((~came["is_match"]).sum())
    to_peers = came[came["publisher"].notna() & (came["host"] != came["publisher"])]
    crossed = paths.crossings(to_peers["from_host"], to_peers["host"])
    return {
        "published": len(tables.published),
        "received": len(came),
        "in_vain": wrong,
        "false_positives": wrong,
        "delivered": len(to_others(got)),
        "own": int(((got["copy"] == 1) & got["is_own"]).sum()),
        "crossings": int(crossed.sum()),
    }


def false_positives(tables: EventTables) -> float | None:
    """Events that peers received without a matching subscription, per event delivered.

    The publisher's own deliveries, for which nothing is sent, do not count.
    """
    wrong = int((~tables.receptions["is_match"]).sum())
    return ratio(wrong, len(to_others(tables.deliveries)))


def _events(evidence: Evidence) -> dict[str, Any]:
    return event_counts(evidence.tables, evidence.host_paths)


METRICS = (
    Metric(
        "delivery",
        "deliveries",
        "Delivery",
        "Deliveries that were owed to subscribers whose agents lived through the run, how many of "
        "them came, how many came twice (duplicates), and how many nobody asked for (unasked). "
        "Unsteady ones are owed to agents that ended or restarted.",
        Group.EVENTS,
        (Input.EVENTS,),
        delivery,
        headline=Headline(
            "Delivered", "delivered", "delivery.expected", (("delivery.duplicates", "twice"),)
        ),
        summary=(
            Part("expected", "deliveries expected"),
            Part("delivered", "deliveries made"),
        ),
    ),
    Metric(
        "events",
        "events",
        "Events",
        "How many were published, were received by a host over the network, were received without "
        "a matching subscription (false positives; in vain is the former name), were delivered to "
        "other hosts than the publisher, and to the publisher itself (own), and how many links "
        "they crossed on the routes between hosts (crossings).",
        Group.EVENTS,
        (Input.RECORDS,),
        _events,
        summary=(
            Part("published", "events published"),
            Part("false_positives", "false positives"),
        ),
    ),
    Metric(
        "false_positives",
        "per delivery",
        "False positives",
        "Events received by a host without a matching subscription (first arrivals), for each "
        "event delivered.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        lambda evidence: false_positives(evidence.tables),
        headline=Headline("False positives"),
        summary=(Part("", "false positives per delivery"),),
    ),
)
