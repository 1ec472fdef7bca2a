"""Strategies for the selection of cores (section 5.1 of Tariq, Koldehofe and Rothermel, DEBS 2013).

With global knowledge, from the weights of all links (`weighted_graph`):
- `maxpath`: peers on the largest number of shortest paths between other peers;
- `spath`: peers with the smallest sum of weights of the shortest paths to all others.

By votes, from a peer's knowledge of its neighbours; the most votes win:
- `cneigh`: each peer has one vote, for its neighbour of the lowest weight;
- `spotent`: each peer votes for itself with NG + NG / (sum of weights) + 1 / (worst delay);
- `rand`: each peer votes for itself with a random number, which draws cores uniformly;
- `sim`: each peer votes for itself with its similarity to its neighbours.

The paper gives no units for the potential of `spotent`. Here they are seconds. A link of 4 ms then
gives 250 in each of the last two terms, so that delays and weights decide, and the number of
neighbours (10 to 20) only between peers that are otherwise equal. In milliseconds the two terms
would be 0.25 each, and the number of neighbours alone would decide.

For `sim` the paper says only that similarity alone decides. `sim_score` is how the similarities to
all neighbours become one number: their mean, which does not depend on the number of neighbours, or
their sum, because a peer similar to many neighbours is near many similar peers. A neighbour is
similar only by events that both had: if a history is unknown or empty, the similarity is 0.
"""

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from agents.protocol import PeerId
from agents.routing.cores.settings import SimScore

BY_VOTES = ("cneigh", "spotent", "rand", "sim")
BY_PATHS = ("maxpath", "spath")
_US_PER_S = 1e6


class Link(NamedTuple):
    """The weight of a link: its delay, and the dissimilarity of its ends.

    `similarity` is that of its ends, 0 if the events of one of them are unknown or none.
    """

    delay_us: int
    dissimilarity_us: int
    similarity: float = 0.0

    @property
    def weight_us(self) -> int:
        """The weight of the link; never 0, so that more links have a greater weight."""
        return max(1, self.delay_us + self.dissimilarity_us)


class Vote(NamedTuple):
    """A peer's vote for a core."""

    candidate: PeerId
    votes: float


def vote(
    strategy: str, me: PeerId, links: Mapping[PeerId, Link], sim_score: SimScore, chance: Random
) -> Vote:
    """The vote of one peer with these links to its neighbours."""
    if strategy == "rand":
        return Vote(me, chance.random())
    if not links:
        return Vote(me, 0.0)
    if strategy == "cneigh":
        return Vote(min(links, key=lambda peer: (links[peer].weight_us, peer)), 1.0)
    return Vote(me, _potential(links) if strategy == "spotent" else _similarity(links, sim_score))


def most_voted(votes: Mapping[PeerId, float], count: int) -> list[PeerId]:
    """The candidates with the most votes; of equal ones, the lowest addresses."""
    return sorted(votes, key=lambda peer: (-votes[peer], peer))[:count]


def _potential(links: Mapping[PeerId, Link]) -> float:
    total_s = sum(link.weight_us for link in links.values()) / _US_PER_S
    worst_s = max(1, *(link.delay_us for link in links.values())) / _US_PER_S
    return len(links) + len(links) / total_s + 1 / worst_s


def _similarity(links: Mapping[PeerId, Link], score: SimScore) -> float:
    total = sum(link.similarity for link in links.values())
    return total / len(links) if score == "mean" else total
