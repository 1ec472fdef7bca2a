"""Content-based workloads that are drawn: independent at random, or around hotspots."""

from collections.abc import Iterable, Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from workloads.churn import draw_churn
from workloads.content.generator import DrawnContent, make_workload
from workloads.content.hotspots import Place, Radii
from workloads.content.subscription import ATTRIBUTES, Point, Subscription
from workloads.event_settings import EventSettings
from workloads.workload import (
    Interests,
    Matches,
    Publications,
    Workload,
    WorkloadKind,
    lasting_interests,
)

_EVENTS_AT_ONCE = 256


class ContentSettings(EventSettings, frozen=True, kw_only=True):
    """Settings of all content-based workloads."""

    attributes: Annotated[int, Meta(ge=1, le=ATTRIBUTES, description="attributes of an event")] = (
        ATTRIBUTES
    )


class DrawnSettings(ContentSettings, frozen=True, kw_only=True):
    """Settings of subscriptions and events that are drawn together."""

    subscriptions: Annotated[int, Meta(ge=0, description="subscriptions of each peer")] = 1
    match: Annotated[
        float, Meta(gt=0, le=1, description="share of the subscriptions that an event matches")
    ] = 0.05


class ZipfSettings(DrawnSettings, frozen=True, kw_only=True):
    """Settings of subscriptions and events around hotspots."""

    radii: Annotated[
        Radii,
        Meta(
            description="fitted: narrower ranges at popular hotspots, so that each event matches "
            "as many subscriptions; equal: ranges as wide at all hotspots"
        ),
    ] = "fitted"
    hotspots: Annotated[
        Literal["scattered", "located"],
        Meta(description="peers of a hotspot are anywhere, or close to each other in the network"),
    ] = "scattered"


class ContentUniform(WorkloadKind):
    """Subscriptions and events independent at random."""

    Settings = DrawnSettings
    pubsub: ClassVar[str] = "content"
    matching = "boxes"

    @classmethod
    def draw(cls, settings: DrawnSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts."""
        drawn = make_workload(
            "uniform",
            seed,
            len(hosts),
            settings.subscriptions,
            settings.events,
            settings.match,
            settings.attributes,
        )
        return content_workload(drawn, settings, seed, hosts)


class ContentZipf(WorkloadKind):
    """Subscriptions and events around hotspots."""

    Settings = ZipfSettings
    pubsub: ClassVar[str] = "content"
    matching = "boxes"

    @classmethod
    def draw(cls, settings: ZipfSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of hosts without places."""
        if settings.hotspots == "located":
            raise ValueError("hotspots: expected hosts with places for `located`, found none")
        return cls._draw(settings, seed, hosts, ())

    @classmethod
    def draw_at(
        cls, settings: ZipfSettings, seed: int, hosts: Sequence[str], places: Sequence[Place]
    ) -> Workload:
        """The workload of hosts at these places."""
        return cls._draw(settings, seed, hosts, places if settings.hotspots == "located" else ())

    @classmethod
    def _draw(
        cls, settings: ZipfSettings, seed: int, hosts: Sequence[str], places: Sequence[Place]
    ) -> Workload:
        drawn = make_workload(
            "zipf",
            seed,
            len(hosts),
            settings.subscriptions,
            settings.events,
            settings.match,
            settings.attributes,
            settings.radii,
            places,
        )
        return content_workload(drawn, settings, seed, hosts)


def content_workload(
    drawn: DrawnContent, settings: ContentSettings, seed: int, hosts: Sequence[str]
) -> Workload:
    """Subscriptions and events with their times, and churn."""
    # A peer that has drawn a subscription twice has one interest.
    held = [
        (peer, number)
        for peer, some in enumerate(drawn.subscriptions)
        for number in dict.fromkeys(subscription.number for subscription in some)
    ]
    interests = lasting_interests([peer for peer, _ in held], [number for _, number in held])
    schedule = settings.schedule
    publications = Publications(
        np.array([event.publisher for event in drawn.events], dtype=np.int64),
        np.array([event.point.number for event in drawn.events], dtype=np.int64),
        schedule.times_us(len(drawn.events)),
    )
    churn = draw_churn(
        seed, hosts, settings.events, schedule, settings.churn, settings.churn_every_events
    )
    return Workload(
        interests,
        publications,
        match_boxes(interests, publications),
        churn,
        settings.payload_bytes,
        "subscription",
        "point",
    )


def match_boxes(interests: Interests, publications: Publications) -> Matches:
    """The matching rule of content: a box matches the points that lie in it."""
    boxes = _bits(Subscription(number).bits for number in interests.content.tolist())
    points = _bits(Point(number).bits for number in publications.content.tolist())
    event_ids, matching = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for first in range(0, len(points), _EVENTS_AT_ONCE):
        some = points[first : first + _EVENTS_AT_ONCE, np.newaxis]
        event, interest = np.nonzero(boxes & some == some)
        event_ids.append(event + first + 1)
        matching.append(interest)
    return Matches(np.concatenate(event_ids), np.concatenate(matching))


def _bits(sets: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    return np.fromiter(sets, dtype=np.uint64)
