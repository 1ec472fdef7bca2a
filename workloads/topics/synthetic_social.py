"""Synthetic social graphs: followers by a power law, and communities.

The model is that of benchmark graphs for communities (Lancichinetti, Fortunato, Radicchi, 2008):
sizes of communities and degrees follow power laws, and a share of each user's links stays in its
community. The users that a user follows are drawn by popularity, which follows a power law, too.
These graphs replace samples of real ones: they have their density, skew and clustering only.
"""

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from workloads.chance import make_generator
from workloads.topics.interests import Wanted
from workloads.topics.settings import TopicEventSettings
from workloads.topics.social import Links, SocialPublishers, make_social_workload
from workloads.topics.social_graph import SocialGraph, wanted_among
from workloads.workload import Numbers, Workload, WorkloadKind

Reals = NDArray[np.float64]

MEAN_LINKS = 20.0
_INSIDE = 0.8  # share of a user's links that stay in its community
_LINKS_EXPONENT, _POPULARITY_EXPONENT, _COMMUNITY_EXPONENT = 3.0, 2.5, 2.0
_COMMUNITY_SIZES = 20, 200


class SyntheticSettings(TopicEventSettings, frozen=True, kw_only=True):
    """Settings of topics that are users of a synthetic social graph."""

    links: Annotated[
        Links,
        Meta(
            description="friends: both users of a link subscribe to each other; follows: the first "
            "user subscribes to the second"
        ),
    ] = "friends"
    mean_links: Annotated[
        float, Meta(ge=2, le=1000, description="approximate mean number of topics of a peer")
    ] = MEAN_LINKS
    publishers: Annotated[
        SocialPublishers,
        Meta(description="subscribers: a subscriber of the topic; owner: its user"),
    ] = "subscribers"


class TopicsSyntheticSocial(WorkloadKind):
    """Users of a synthetic social graph as topics, one for each peer."""

    Settings = SyntheticSettings

    @classmethod
    def draw(cls, settings: SyntheticSettings, seed: int, hosts: Sequence[str]) -> Workload:
        """The workload of some hosts."""
        wanted = draw_synthetic_interests(settings.links, len(hosts), seed, settings.mean_links)
        return make_social_workload(wanted, settings, settings.publishers, seed, hosts)


def draw_synthetic_interests(
    links: Links, nodes: int, seed: int | str, mean_links: float = MEAN_LINKS
) -> Wanted:
    """Interests of the users of a synthetic graph: the same in runs and offline."""
    chance = make_generator(seed, "synthetic users")
    # A link between friends counts for both.
    graph = grow_graph(nodes, mean_links / (2 if links == "friends" else 1), chance)
    if links == "friends":
        graph = _both_ways(graph)
    return wanted_among(graph, np.arange(nodes))


def grow_graph(users: int, mean_links: float, chance: np.random.Generator) -> SocialGraph:
    """A directed graph in which a user follows about `mean_links` others on average."""
    popularity = _power_law(users, 1.0, _POPULARITY_EXPONENT, 3 * users**0.5, chance)
    count = np.rint(_power_law(users, mean_links / 2, _LINKS_EXPONENT, users / 4, chance))
    first = _communities(users, chance)
    community = np.searchsorted(first, np.arange(users), side="right") - 1
    everybody = np.cumsum(popularity)
    followed = []
    for user, wanted in enumerate(np.minimum(count, users - 1).astype(int).tolist()):
        start, end = first[community[user]], first[community[user] + 1]
        near = min(round(_INSIDE * wanted), end - start - 1)
        chosen = _draw_near(popularity, user, start, end, near, chance)
        while len(chosen) < wanted:
            far = int(np.searchsorted(everybody, chance.random() * everybody[-1], side="right"))
            chosen.update({far} - {user})
        followed.append(np.array(sorted(chosen), dtype=np.int64))
    source = np.repeat(np.arange(users), [len(some) for some in followed])
    # Communities are ranges of users; shuffled, so that numbers do not reveal them.
    name = chance.permutation(users)
    return SocialGraph(users, name[source], name[np.concatenate(followed)])


def _draw_near(
    popularity: Reals,
    user: int,
    start: int,
    end: int,
    count: int,
    chance: np.random.Generator,
) -> set[int]:
    """Others of a community, drawn by popularity and without replacement."""
    arrival = chance.standard_exponential(end - start) / popularity[start:end]
    arrival[user - start] = np.inf
    return set((start + np.argsort(arrival)[:count]).tolist())


def _communities(users: int, chance: np.random.Generator) -> Numbers:
    """The first user of each community, and the number of users at the end."""
    low, high = _COMMUNITY_SIZES
    sizes = _power_law(users // low + 1, low, _COMMUNITY_EXPONENT, high, chance)
    ends = np.cumsum(sizes.astype(np.int64))
    return np.concatenate(([0], ends[ends < users], [users]))


def _power_law(
    count: int, least: float, exponent: float, most: float, chance: np.random.Generator
) -> Reals:
    """Numbers from `least` whose density falls as a power; `most` replaces larger ones."""
    return np.minimum(least * (1 - chance.random(count)) ** (-1 / (exponent - 1)), most)


def _both_ways(graph: SocialGraph) -> SocialGraph:
    links = np.stack((graph.source, graph.target), axis=1)
    both = np.unique(np.concatenate((links, links[:, ::-1])), axis=0)
    return SocialGraph(graph.users, both[:, 0], both[:, 1])
