"""Published, received and delivered events."""

from typing import Any

import pandas as pd

from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.metrics.statistics import ratio
from analysis.readiness import NEVER_US
from analysis.tables.custody import count_repeats, done_times
from analysis.tables.events import EventTables, to_others
from analysis.tables.host_paths import HostPaths

EXACTLY_ONCE = "exactly-once"


def delivery(evidence: Evidence) -> dict[str, int]:
    """Expected deliveries, and those that were made.

    `expected` are pairs of an event and a host whose agent ran during the whole run, with a
    matching subscription from before the event until a while after it. `delivered` are those of
    them that were delivered. `duplicates` are deliveries of an event to a host after the first, and
    `unasked` deliveries without a matching subscription.
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
    """The number of events published, received over the network, and delivered.

    `crossings` are the physical links on the unicast routes that they took. `in_vain` is the former
    name of `false_positives`.
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

    Deliveries at the publisher itself do not count, because nothing is sent for them.
    """
    wrong = int((~tables.receptions["is_match"]).sum())
    return ratio(wrong, len(to_others(tables.deliveries)))


def warm_up(evidence: Evidence) -> dict[str, Any] | None:
    """The events that were published before the measured window, and the start of that."""
    start_us = evidence.run.window_start_us
    if start_us is None:
        return None
    early = len(evidence.tables.published) - len(evidence.measured.published)
    return {"events": early, "until_s": None if start_us == NEVER_US else start_us / 1e6}


def routing_overhead(evidence: Evidence) -> dict[str, Any]:
    """Receptions of an event by hosts without a matching subscription, each copy counted."""
    tables = evidence.measured
    total = sum(int((~copies["is_match"]).sum()) for copies in (tables.receptions, tables.repeats))
    return {"total": total, "per_delivery": ratio(total, len(evidence.to_others))}


def guarantee(evidence: Evidence) -> dict[str, Any] | None:
    """Deliveries that are missing or repeated at hosts whose agents ran all the time.

    Where events are in custody, these are hosts that were there long enough for an event, and
    agents that got it twice.
    """
    if evidence.run.guarantee != EXACTLY_ONCE:
        return None
    matches, got = evidence.tables.matches, evidence.tables.deliveries
    missing = matches[matches["is_owed"] & matches["is_steady"] & ~matches["is_delivered"]]
    if done_times(evidence.run.records).empty:
        repeated = got[(got["copy"] > 1) & ~got["host"].isin(evidence.run.lives.ended)]
    else:
        repeated = got[count_repeats(got, evidence.run.lives.ends_frame()) > 1]
    return {
        "promised": EXACTLY_ONCE,
        "missing": len(missing),
        "repeated": len(repeated),
        "first_missing": _name_first(missing),
        "first_repeated": _name_first(repeated),
    }


def _name_first(rows: pd.DataFrame) -> str | None:
    if rows.empty:
        return None
    first = rows.sort_values(["event_id", "host"]).iloc[0]
    return f"event {first['event_id']} at {first['host']}"


def _events(evidence: Evidence) -> dict[str, Any]:
    return event_counts(evidence.tables, evidence.host_paths)


METRICS = (
    Metric(
        "warm_up",
        "events",
        "Warm-up",
        "Events that were published before the measured window, which begins when all agents are "
        "ready or at `measure_from_s`; until_s is its start. RDP, hops, link stress, routing "
        "overhead and routing cost are over the events after it.",
        Group.EVENTS,
        (Input.EVENTS,),
        warm_up,
        why_null="agents did not record when they were ready: the whole run is measured",
        summary=(Part("events", "Warm-up, events not measured"),),
    ),
    Metric(
        "guarantee",
        "deliveries",
        "Guarantee",
        "Deliveries that are missing or repeated although the publish/subscribe system promises "
        "each exactly once, at hosts whose agents ran during the whole run.",
        Group.EVENTS,
        (Input.EVENTS,),
        guarantee,
        why_null="the publish/subscribe system promises nothing, or it was not recorded",
    ),
    Metric(
        "routing_overhead",
        "receptions",
        "Routing overhead",
        "Receptions of an event by hosts without a matching subscription, each copy counted: in "
        "total, and for each delivery.",
        Group.EVENTS,
        (Input.DELIVERIES,),
        routing_overhead,
        summary=(
            Part("per_delivery", "Routing overhead, per delivery", "receptions per delivery"),
        ),
    ),
    Metric(
        "delivery",
        "deliveries",
        "Deliveries",
        "Deliveries expected at subscribers whose agents ran during the whole run, and how many of "
        "them were made (delivered). Further deliveries of an event to the same host (duplicates), "
        "and deliveries without a matching subscription (unasked). `unsteady_` counts are those at "
        "agents that ended or restarted.",
        Group.EVENTS,
        (Input.EVENTS,),
        delivery,
        headline=Headline(
            "Deliveries, made",
            "delivered",
            "delivery.expected",
            (("delivery.duplicates", "duplicates"),),
        ),
        summary=(
            Part("expected", "Deliveries, expected"),
            Part("delivered", "Deliveries, made"),
        ),
        parts=(
            Part("unasked", "Deliveries, without a matching subscription"),
            Part("unsteady_expected", "Deliveries, expected at agents that ended or restarted"),
            Part("unsteady_delivered", "Deliveries, made at agents that ended or restarted"),
        ),
    ),
    Metric(
        "events",
        "events",
        "Events",
        "Events that were published, received by a host over the network, received without a "
        "matching subscription (`false_positives`, formerly `in_vain`), delivered to other hosts "
        "than the publisher, and delivered to the publisher itself (own); and the links that they "
        "crossed on the routes between hosts (crossings).",
        Group.EVENTS,
        (Input.RECORDS,),
        _events,
        summary=(
            Part("published", "Events, published"),
            Part("false_positives", "Events, false positives"),
        ),
        parts=(
            Part("delivered", "Events, delivered to other hosts"),
            Part("own", "Events, delivered to their publisher"),
            Part("crossings", "Events, link crossings", "crossings"),
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
        summary=(Part("", "False positives"),),
    ),
)
