"""The settings of the content layer, and the workload that all agents of a run share."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from agents.protocol import Value
from agents.pubsub.content.box_index import BoxIndex
from agents.pubsub.content.messages import MAX_PAYLOAD_BYTES
from workloads.content.generator import Workload, make_workload
from workloads.content.subscription import ATTRIBUTES

DEFAULTS: Mapping[str, Value] = {
    "subscriptions": 1,
    "events": 200,
    "rate_per_s": 20.0,
    "match": 0.05,
    "attributes": ATTRIBUTES,
    "psi": 1_000,
    "start_s": 40.0,  # when the first event is published
    "payload_bytes": 0,
    "replay_window_s": 60.0,  # how long events are kept to be offered
    "handover_slack_s": 30.0,  # how much older than a tree they may be
    "replay_delay_s": 0.5,  # how long offers are collected,
    "handover_delay_s": 2.0,  # those over a tree that the event was not published on,
    "update_delay_s": 0.2,  # and subscriptions
    "pace_delay_s": 0.1,  # how often what was missed goes on, offers and events,
    "pace_events": 10,  # and how many events each time to each peer that has asked for them
    "ask_after_s": 3.0,  # when a neighbour's subscriptions are missing
    "merging": False,  # whether subscriptions whose union is a box are told as one
    "history_every_events": 10,  # how often other layers are told what was matched
    "recalculate_every_events": 0,  # a new tree is asked for; 0 is never
    "churn": 0.0,  # the share of peers that leave, which is up to the stage (workloads.churn)
    "churn_every_events": 100,
}
_ABOVE_0 = (
    "rate_per_s",
    "match",
    "replay_window_s",
    "update_delay_s",
    "pace_delay_s",
    "ask_after_s",
)
_AT_LEAST_1 = ("attributes", "psi", "pace_events", "history_every_events", "churn_every_events")
_AT_MOST = {"match": 1, "churn": 1, "payload_bytes": MAX_PAYLOAD_BYTES, "attributes": ATTRIBUTES}


class Plan(NamedTuple):
    """A workload, the numbers of the events that each peer publishes, counted from 0, and the
    index that the tables of all agents of a process share.
    """

    workload: Workload
    publications: Mapping[int, tuple[int, ...]]
    boxes: BoxIndex


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raise ValueError if a setting makes no sense."""
    for key, value in settings.items():
        low = 1 if key in _AT_LEAST_1 else 0
        if key in _ABOVE_0 and value <= 0:
            raise ValueError(f"{key}: expected a number above 0, found {value}")
        if value < low:
            raise ValueError(f"{key}: expected {low} or more, found {value}")
        if value > _AT_MOST.get(key, value):
            raise ValueError(f"{key}: expected at most {_AT_MOST[key]}, found {value}")


def make_plan(distribution: str, settings: Mapping[str, Any], seed: int, peers: int) -> Plan:
    """What the settings ask for; the agents of a process share one, as all draw the same."""
    keys = ("subscriptions", "events", "match", "attributes")
    return _shared_plan(distribution, seed, peers, *(settings[key] for key in keys))


@lru_cache(maxsize=4)
def _shared_plan(
    distribution: str,
    seed: int,
    peers: int,
    subscriptions: int,
    events: int,
    match: float,
    attributes: int,
) -> Plan:
    return plan_of(
        make_workload(distribution, seed, peers, subscriptions, events, match, attributes)
    )


def plan_of(workload: Workload) -> Plan:
    """A workload with what each of its peers publishes."""
    numbers: dict[int, tuple[int, ...]] = {}
    for number, event in enumerate(workload.events):
        numbers[event.publisher] = (*numbers.get(event.publisher, ()), number)
    return Plan(workload, numbers, BoxIndex())
