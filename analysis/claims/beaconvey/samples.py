"""The instances of BeaConvey's evaluation: social graphs and drawn interests, with their results.

The paper's samples of Facebook and Twitter are not public. Facebook's ego networks (4,039 users,
SNAP) and Twitter's (23,370 users, KONECT) are at hand; synthetic graphs have the mean number of
links that the paper's whole graphs have. All of these differ from the paper's samples.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from analysis.claims.beaconvey.systems import ALL_SYSTEMS, RULE_SYSTEMS, Plain, compare_systems
from topologies.overlays.interests import Interests, make_interests
from topologies.overlays.ring import Fingers, Phases
from workloads.topics.interests import Wanted, draw_interests
from workloads.topics.popularity import Popularity, Shape
from workloads.topics.social import Links, draw_social_interests
from workloads.topics.synthetic_social import draw_synthetic_interests

_TOPICS_PER_NODE = 20


class Network(NamedTuple):
    """A social network: who subscribes, and the mean number of topics of the paper's graph."""

    links: Links
    mean_topics: float


# 28.3 million friendships of 3 million users, 1.47 billion follows of 41.7 million users.
NETWORKS = {"facebook": Network("friends", 18.9), "twitter": Network("follows", 35.3)}


class Sample(NamedTuple):
    """Users of a network, from its graph at hand or from a synthetic one."""

    nodes: int
    is_synthetic: bool = False


SAMPLES = {
    "1K": Sample(1_000),
    "4K": Sample(4_039),
    "10K": Sample(10_000),
    "synthetic 1K": Sample(1_000, is_synthetic=True),
    "synthetic 10K": Sample(10_000, is_synthetic=True),
}


def measure_social(
    seed: int,
    network: str,
    sample: str,
    graph: str,
    publications: int,
    fingers: Fingers,
    phases: Phases,
) -> dict[str, Any]:
    """All systems on a sample of a network; without the file `graph`, on a synthetic one."""
    chosen = SAMPLES[sample]
    is_synthetic = chosen.is_synthetic or not graph
    wanted = _draw(NETWORKS[network], chosen.nodes, "" if is_synthetic else graph, seed)
    interests = make_interests(chosen.nodes, chosen.nodes, np.column_stack(wanted))
    found = compare_systems(interests, publications, seed, Plain(fingers, phases), ALL_SYSTEMS)
    return {**found, "is_stand_in": int(is_synthetic and not chosen.is_synthetic)}


def measure_drawn(
    seed: int,
    popularity: Shape,
    nodes: int,
    topics: int,
    publications: int,
    fingers: Fingers,
    phases: Phases,
) -> dict[str, Any]:
    """All systems on drawn interests."""
    interests = _draw_interests(seed, popularity, nodes, topics)
    return compare_systems(interests, publications, seed, Plain(fingers, phases), ALL_SYSTEMS)


def measure_rules(
    seed: int, nodes: int, topics: int, publications: int, fingers: Fingers, phases: Phases
) -> dict[str, Any]:
    """BeaConvey's rules on the overlay `sl`, on topics that are equally popular."""
    interests = _draw_interests(seed, "uniform", nodes, topics)
    return compare_systems(interests, publications, seed, Plain(fingers, phases), RULE_SYSTEMS)


def _draw(network: Network, nodes: int, graph: str, seed: int) -> Wanted:
    if not graph:
        return draw_synthetic_interests(network.links, nodes, seed, network.mean_topics)
    return draw_social_interests(Path(graph), network.links, nodes, seed)


def _draw_interests(seed: int, popularity: Shape, nodes: int, topics: int) -> Interests:
    wanted = draw_interests(nodes, topics, _TOPICS_PER_NODE, Popularity(popularity), seed)
    return make_interests(nodes, topics, np.column_stack(wanted))
