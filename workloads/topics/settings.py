"""The settings of topic-based workloads."""

from typing import Annotated, Literal

from msgspec import Meta

from workloads.event_settings import EventSettings
from workloads.number_range import RANGE, parse_range, parse_whole_range

Publishers = Literal["subscribers", "anyone", "share-of-topic", "share-of-peers"]


class TopicEventSettings(EventSettings, frozen=True, kw_only=True):
    """The topics of events, and crashes of peers."""

    rate_of: Annotated[
        Literal["all", "topic"],
        Meta(description="events and rate_per_s are of all topics together, or of each topic"),
    ] = "all"
    event_topics: Annotated[
        Literal["uniform", "popularity"],
        Meta(description="topics of events: equally likely, or drawn by popularity"),
    ] = "uniform"
    min_subscribers: Annotated[
        int, Meta(ge=0, description="topics with fewer subscribers have no events")
    ] = 0
    crashes_per_min: Annotated[
        float,
        Meta(ge=0, le=60, description="share of the peers that crashes in a minute of events"),
    ] = 0.0
    return_after_s: Annotated[
        str, Meta(description="time after which a crashed peer returns", extra=RANGE)
    ] = "30..60"

    def __post_init__(self) -> None:
        """Raise ValueError if settings exclude each other."""
        parse_range("return_after_s", self.return_after_s)
        if self.rate_of == "topic" and self.event_topics == "popularity":
            raise ValueError(
                "event_topics: expected uniform, as rate_of = topic gives each topic its own "
                "events; found popularity"
            )
        if self.churn and self.crashes_per_min:
            raise ValueError(
                "crashes_per_min: expected churn in steps or crashes at a rate, found both"
            )


class TopicSettings(TopicEventSettings, frozen=True, kw_only=True):
    """The number of topics, the interests of peers, and the publishers."""

    topics: Annotated[int, Meta(ge=1, le=10_000_000, description="number of topics")] = 50
    topics_per_peer: Annotated[
        str, Meta(description="topics of each peer, all different", extra=RANGE)
    ] = "4"
    publishers: Annotated[
        Publishers,
        Meta(
            description="subscribers: a subscriber of the topic; anyone: any peer; share-of-topic: "
            "a share of the peers that drew the topic, and the others subscribe; share-of-peers: a "
            "share of all peers, which subscribe to nothing"
        ),
    ] = "subscribers"
    publisher_share: Annotated[
        float,
        Meta(gt=0, lt=1, description="share of publishers, for share-of-topic and share-of-peers"),
    ] = 0.1
    changes_per_s: Annotated[
        float,
        Meta(
            ge=0,
            description="interests per second, of all peers together, replaced by another topic",
        ),
    ] = 0.0

    def __post_init__(self) -> None:
        """Raise ValueError if topics_per_peer is larger than the number of topics."""
        super().__post_init__()
        if parse_whole_range("topics_per_peer", self.topics_per_peer).high > self.topics:
            raise ValueError(
                f"topics_per_peer: expected at most {self.topics}, the number of topics; found "
                f"{self.topics_per_peer}"
            )


class UniformSettings(TopicSettings, frozen=True, kw_only=True):
    """Settings of topics that are equally popular."""

    topic_sizes: Annotated[
        Literal["drawn", "equal"],
        Meta(
            description="equal: each topic has the same number of peers; requires "
            "topics_per_peer = 1"
        ),
    ] = "drawn"

    def __post_init__(self) -> None:
        """Raise ValueError if topic_sizes is equal and peers have several topics."""
        super().__post_init__()
        if self.topic_sizes == "equal" and self.topics_per_peer.strip() != "1":
            raise ValueError(
                "topic_sizes: expected drawn unless topics_per_peer is 1, found equal with "
                f"topics_per_peer = {self.topics_per_peer}"
            )


class ZipfSettings(TopicSettings, frozen=True, kw_only=True):
    """Settings of topics whose popularity falls as a power of the rank."""

    exponent: Annotated[
        float, Meta(ge=0, le=10, description="popularity of the i-th topic: i^-exponent")
    ] = 2.0


class ExponentialSettings(TopicSettings, frozen=True, kw_only=True):
    """Settings of topics whose popularity falls exponentially with the rank."""

    decay: Annotated[
        float,
        Meta(ge=0, le=100, description="popularity of the i-th topic: exp(-decay * i / topics)"),
    ] = 10.0
