"""Publications of topic-based workloads: publisher, topic and time.

An event of a topic is published by a peer that may publish to it at that time. A topic without
possible publishers, or with too few subscribers at that time, has no event in a run. Offline
computations count it as a publication without effect.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workloads.errors import WorkloadError
from workloads.topics.held_topics import HeldTopics
from workloads.topics.settings import TopicEventSettings
from workloads.workload import Interests, Numbers, Publications

_TRIES = 1_000


class Audience(NamedTuple):
    """Subscribers, and peers that may publish; all peers if `publishers` is None."""

    subscribers: Interests
    publishers: Interests | None
    peers: int
    topics: int


def draw_publications(
    audience: Audience,
    weights: NDArray[np.float64],
    settings: TopicEventSettings,
    chance: np.random.Generator,
) -> Publications:
    """Events by the settings of rate and topics; `weights` are those of the topics."""
    subscribers = HeldTopics(audience.subscribers, audience.topics)
    publishers = audience.publishers
    sources = None if publishers is None else HeldTopics(publishers, audience.topics)

    def is_open(topic: Numbers, time_us: Numbers) -> NDArray[np.bool_]:
        enough = subscribers.count(topic, time_us) >= settings.min_subscribers
        if sources is None:
            return enough
        can_publish: NDArray[np.bool_] = sources.count(topic, time_us) > 0
        return enough & can_publish

    if settings.rate_of == "topic":
        topic, time_us = _each_topic(audience.topics, settings, chance)
        keep = is_open(topic, time_us)
        topic, time_us = topic[keep], time_us[keep]
    else:
        time_us = settings.schedule.times_us(settings.events)
        possible = subscribers.sizes >= settings.min_subscribers
        if sources is not None:
            possible &= sources.sizes > 0
        topic = _redraw(weights * possible, time_us, is_open, chance)
    if sources is not None:
        return Publications(sources.draw(topic, time_us, chance), topic, time_us)
    return Publications(chance.integers(audience.peers, size=len(topic)), topic, time_us)


def _each_topic(
    topics: int, settings: TopicEventSettings, chance: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """The events of each topic at the rate, from a random time in the first interval on."""
    phase_us = (chance.random(topics) * 1e6 / settings.rate_per_s).astype(np.int64)
    time_us = (phase_us[:, np.newaxis] + settings.schedule.times_us(settings.events)).ravel()
    order = np.argsort(time_us, kind="stable")
    return np.repeat(np.arange(topics), settings.events)[order], time_us[order]


def _redraw(
    weights: NDArray[np.float64],
    time_us: Numbers,
    is_open: Callable[[Numbers, Numbers], NDArray[np.bool_]],
    chance: np.random.Generator,
) -> Numbers:
    """A topic for each time, drawn again where the topic cannot have an event then."""
    topic, left = np.zeros(len(time_us), dtype=np.int64), np.arange(len(time_us))
    shares, possible = np.cumsum(weights), np.flatnonzero(weights)
    for _ in range(_TRIES if len(possible) else 0):
        if not len(left):
            return topic
        drawn = np.searchsorted(shares, chance.random(len(left)) * shares[-1], side="right")
        topic[left] = np.minimum(drawn, possible[-1])
        left = left[~is_open(topic[left], time_us[left])]
    if len(left):
        raise WorkloadError(
            "events: expected a topic with enough subscribers and a publisher for each event, "
            f"found none for {len(left)} of {len(time_us)}; lower min_subscribers or events"
        )
    return topic
