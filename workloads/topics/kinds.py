"""Random topic-based workloads, by the popularity of topics."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workloads.chance import make_generator
from workloads.churn import ChurnStep, draw_churn, draw_crashes
from workloads.number_range import parse_range, parse_whole_range
from workloads.schedule import Schedule
from workloads.topics.changes import change_interests
from workloads.topics.interests import Wanted, deal_equally, draw_interests
from workloads.topics.popularity import Popularity
from workloads.topics.publications import Audience, draw_publications
from workloads.topics.roles import part_each_topic, part_peers
from workloads.topics.settings import (
    ExponentialSettings,
    TopicEventSettings,
    TopicSettings,
    UniformSettings,
    ZipfSettings,
)
from workloads.workload import (
    Interests,
    Numbers,
    Publications,
    Workload,
    WorkloadKind,
    lasting_interests,
    match_equal,
)

Chances = NDArray[np.float64]


class TopicsUniform(WorkloadKind):
    """Topics that are equally popular."""

    Settings = UniformSettings

    @classmethod
    def draw(cls, settings: UniformSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts."""
        popularity = Popularity("uniform")
        if settings.topic_sizes == "equal":
            dealt = deal_equally(len(hosts), settings.topics, seed)
            return _draw_from(dealt, popularity, settings, seed, hosts)
        return _draw_by(popularity, settings, seed, hosts)


class TopicsZipf(WorkloadKind):
    """Topics whose popularity is a power of their rank."""

    Settings = ZipfSettings

    @classmethod
    def draw(cls, settings: ZipfSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts."""
        popularity = Popularity("zipf", exponent=settings.exponent)
        return _draw_by(popularity, settings, seed, hosts)


class TopicsExponential(WorkloadKind):
    """Topics whose popularity falls exponentially with their rank."""

    Settings = ExponentialSettings

    @classmethod
    def draw(cls, settings: ExponentialSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts."""
        popularity = Popularity("exponential", decay=settings.decay)
        return _draw_by(popularity, settings, seed, hosts)


def topic_workload(
    interests: Interests,
    publications: Publications,
    settings: TopicEventSettings,
    seed: int,
    hosts: Sequence[str],
) -> Workload:
    """Interests and events with their matches, and churn."""
    return Workload(
        interests,
        publications,
        match_equal(interests, publications),
        _draw_leaving(settings, len(publications), seed, hosts),
        settings.payload_bytes,
        interest_key="topic",
        event_key="topic",
    )


def _draw_by(
    popularity: Popularity, settings: TopicSettings, seed: int, hosts: Sequence[str]
) -> Workload:
    sizes = parse_whole_range("topics_per_peer", settings.topics_per_peer)
    drawn = draw_interests(len(hosts), settings.topics, sizes, popularity, seed)
    return _draw_from(drawn, popularity, settings, seed, hosts)


def _draw_from(
    drawn: Wanted, popularity: Popularity, settings: TopicSettings, seed: int, hosts: Sequence[str]
) -> Workload:
    chances = popularity.chances(settings.topics)
    audience = _assign_roles(drawn, chances, settings, seed, len(hosts))
    weights = chances if settings.event_topics == "popularity" else np.ones(settings.topics)
    events = draw_publications(audience, weights, settings, make_generator(seed, "events"))
    return topic_workload(audience.subscribers, events, settings, seed, hosts)


def _assign_roles(
    drawn: Wanted, chances: Chances, settings: TopicSettings, seed: int, peers: int
) -> Audience:
    """Subscribers with their times, and publishers."""
    share, chance = settings.publisher_share, make_generator(seed, "publishers")
    subscribers, publishers = drawn, None
    if settings.publishers == "share-of-topic":
        subscribers, publishers = part_each_topic(drawn, settings.topics, share, chance)
    elif settings.publishers == "share-of-peers":
        subscribers, publishers = part_peers(drawn, peers, share, chance)
    changes_us = _change_times_us(settings)
    held = change_interests(subscribers, chances, changes_us, make_generator(seed, "changes"))
    sources = held if settings.publishers == "subscribers" else None
    if publishers is not None:
        sources = lasting_interests(publishers.peer, publishers.topic)
    return Audience(held, sources, peers, settings.topics)


def _change_times_us(settings: TopicSettings) -> Numbers:
    """The times at which interests change, while events are published."""
    if not settings.changes_per_s:
        return np.zeros(0, dtype=np.int64)
    count = int(settings.events / settings.rate_per_s * settings.changes_per_s)
    return Schedule(settings.start_s, settings.changes_per_s).times_us(count)


def _draw_leaving(
    settings: TopicEventSettings, events: int, seed: int, hosts: Sequence[str]
) -> tuple[ChurnStep, ...]:
    if settings.crashes_per_min:
        end_s = settings.start_s + settings.events / settings.rate_per_s
        return draw_crashes(
            seed,
            hosts,
            (settings.start_s, end_s),
            settings.crashes_per_min,
            parse_range("return_after_s", settings.return_after_s),
        )
    rate_per_s = settings.rate_per_s * events / max(1, settings.events)  # of all topics together
    schedule = Schedule(settings.start_s, rate_per_s)
    return draw_churn(seed, hosts, events, schedule, settings.churn, settings.churn_every_events)
