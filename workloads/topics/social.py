"""Topics of a social graph: a user is a peer and a topic, and friends or followers subscribe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from workloads.chance import make_generator
from workloads.topics.interests import Wanted
from workloads.topics.kinds import topic_workload
from workloads.topics.publications import Audience, draw_publications
from workloads.topics.settings import TopicEventSettings
from workloads.topics.social_graph import EDGE_LIST, read_graph, sample_users, wanted_among
from workloads.workload import Workload, WorkloadKind, lasting_interests

Links = Literal["friends", "follows"]
SocialPublishers = Literal["subscribers", "owner"]


class SocialSettings(TopicEventSettings, frozen=True, kw_only=True):
    """Settings of topics that are users of a social graph."""

    file: Annotated[
        str, Meta(description="the graph, an edge list: a line 'a b' for each link")
    ] = ""
    links: Annotated[
        Links,
        Meta(
            description="friends: both users of a link subscribe to each other; follows: the first "
            "user subscribes to the second"
        ),
    ] = "friends"
    publishers: Annotated[
        SocialPublishers,
        Meta(description="subscribers: a subscriber of the topic; owner: its user"),
    ] = "subscribers"
    sample_starts: Annotated[
        int, Meta(ge=1, description="random users from which the breadth-first search starts")
    ] = 3

    def __post_init__(self) -> None:
        """Raise ValueError if there is no file."""
        super().__post_init__()
        if not self.file:
            raise ValueError(f"file: expected {EDGE_LIST}; found none")


class TopicsSocial(WorkloadKind):
    """Users of a social graph as topics, sampled to the number of peers."""

    Settings = SocialSettings
    data_files: ClassVar[Mapping[str, str]] = {"file": EDGE_LIST}

    @classmethod
    def draw(cls, settings: SocialSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts; the settings have the path of the file."""
        wanted = draw_social_interests(
            Path(settings.file), settings.links, len(hosts), seed, settings.sample_starts
        )
        return make_social_workload(wanted, settings, settings.publishers, seed, hosts)


def make_social_workload(
    wanted: Wanted,
    settings: TopicEventSettings,
    publishers: SocialPublishers,
    seed: int,
    hosts: Sequence[str],
) -> Workload:
    """The workload of users, one for each host."""
    peers = len(hosts)
    held = lasting_interests(wanted.peer, wanted.topic)
    publishing = held
    if publishers == "owner":
        publishing = lasting_interests(np.arange(peers), np.arange(peers))
    weights = np.ones(peers)
    if settings.event_topics == "popularity":
        weights = np.bincount(wanted.topic, minlength=peers).astype(np.float64)
    audience = Audience(held, publishing, peers, peers)
    events = draw_publications(audience, weights, settings, make_generator(seed, "events"))
    return topic_workload(held, events, settings, seed, hosts)


def draw_social_interests(
    path: Path, links: Links, nodes: int, seed: int | str, starts: int = 3
) -> Wanted:
    """Interests of a sample of the graph in a file: the same in runs and offline."""
    graph = read_graph(path, is_mutual=links == "friends")
    users = sample_users(graph, nodes, starts, make_generator(seed, "users"))
    return wanted_among(graph, users)
