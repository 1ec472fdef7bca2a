"""The settings of the content layer, and the workload that all agents of a run share."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from agents.pubsub.content.box_index import BoxIndex
from agents.pubsub.content.messages import MAX_PAYLOAD_BYTES
from workloads.content.generator import Workload, make_workload
from workloads.content.subscription import ATTRIBUTES


class ForwarderSettings(Struct, frozen=True, kw_only=True):
    """How subscriptions and events are passed on."""

    psi: Annotated[
        int, Meta(ge=1, description="last events by which other layers compare interests")
    ] = 1_000
    payload_bytes: Annotated[
        int, Meta(ge=0, le=MAX_PAYLOAD_BYTES, description="bytes that each event carries")
    ] = 0
    replay_window_s: Annotated[
        float, Meta(gt=0, description="time for which events are kept to be offered")
    ] = 60.0
    handover_slack_s: Annotated[
        float, Meta(ge=0, description="how much older than a tree an offered event may be")
    ] = 30.0
    replay_delay_s: Annotated[
        float, Meta(ge=0, description="time for which offers are collected")
    ] = 0.5
    handover_delay_s: Annotated[
        float, Meta(ge=0, description="the same for events published on another tree")
    ] = 2.0
    update_delay_s: Annotated[
        float, Meta(gt=0, description="time for which subscriptions are collected")
    ] = 0.2
    pace_delay_s: Annotated[
        float, Meta(gt=0, description="time from one burst of missed events and offers to the next")
    ] = 0.1
    pace_events: Annotated[
        int, Meta(ge=1, description="missed events in a burst to each peer that asked for them")
    ] = 10
    ask_after_s: Annotated[
        float, Meta(gt=0, description="time after which missing subscriptions are asked for")
    ] = 3.0
    merging: Annotated[
        bool, Meta(description="subscriptions whose union is a box are told as one")
    ] = False
    history_every_events: Annotated[
        int, Meta(ge=1, description="matched events after which other layers are told of them")
    ] = 10
    recalculate_every_events: Annotated[
        int, Meta(ge=0, description="events after which a new tree is asked for; 0: never")
    ] = 0


class ContentSettings(ForwarderSettings, frozen=True, kw_only=True):
    """What all content workloads have in common."""

    events: Annotated[int, Meta(ge=0, description="events published by all peers together")] = 200
    rate_per_s: Annotated[float, Meta(gt=0, description="events published in a second")] = 20.0
    attributes: Annotated[int, Meta(ge=1, le=ATTRIBUTES, description="attributes of an event")] = (
        ATTRIBUTES
    )
    start_s: Annotated[float, Meta(ge=0, description="when the first event is published")] = 40.0
    churn: Annotated[
        float, Meta(ge=0, le=1, description="share of the peers that leave at a time")
    ] = 0.0
    churn_every_events: Annotated[
        int, Meta(ge=1, description="events after which peers leave, and others return")
    ] = 100


class DrawnContentSettings(ContentSettings, frozen=True, kw_only=True):
    """The settings of a workload that is drawn from the seed."""

    subscriptions: Annotated[int, Meta(ge=0, description="subscriptions of a peer")] = 1
    match: Annotated[
        float, Meta(gt=0, le=1, description="share of the events that a subscription matches")
    ] = 0.05


class Plan(NamedTuple):
    """A workload, the numbers of the events that each peer publishes, counted from 0, and the
    index that the tables of all agents of a process share.
    """

    workload: Workload
    publications: Mapping[int, tuple[int, ...]]
    boxes: BoxIndex


def make_plan(distribution: str, settings: DrawnContentSettings, seed: int, peers: int) -> Plan:
    """What the settings ask for; the agents of a process share one, as all draw the same."""
    wanted = settings.subscriptions, settings.events, settings.match, settings.attributes
    return _shared_plan(distribution, seed, peers, *wanted)


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
