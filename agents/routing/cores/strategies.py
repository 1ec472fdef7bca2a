"""Which peers become cores (section 5.1 of Tariq, Koldehofe and Rothermel, DEBS 2013).

With global knowledge, from the weights of all links (`weighted_graph`):
- `maxpath`: those that most shortest paths between other peers lead through;
- `spath`: those with the smallest sum of weights of the shortest paths to all others.

By votes, from what a peer knows of its neighbours; the most votes win:
- `cneigh`: each peer has one vote, for its neighbour of the lowest weight;
- `spotent`: each peer votes for itself with NG + NG / (sum of weights) + 1 / (worst delay);
- `rand`: each peer votes for itself with a random number, which draws cores uniformly;
- `sim`: each peer votes for itself with its mean similarity to its neighbours.

The paper gives no units for the potential of `spotent`. We take seconds: links of tens of
milliseconds then give tens in the last two terms, as many as a peer has neighbours; in
milliseconds only the number of neighbours would count. It says of `sim` only that similarity alone
decides; it votes in the manner of `spotent`, so that the number of neighbours has no say.
"""

from collections.abc import Mapping
from random import Random
from typing import NamedTuple

from agents.protocol import PeerId

BY_VOTES = ("cneigh", "spotent", "rand", "sim")
BY_PATHS = ("maxpath", "spath")
_US_PER_S = 1e6


class Link(NamedTuple):
    """What a link costs: its delay, and the dissimilarity of its ends on top."""

    delay_us: int
    dissimilarity_us: int

    @property
    def weight_us(self) -> int:
        """The weight of the link; never 0, so that more links weigh more."""
        return max(1, self.delay_us + self.dissimilarity_us)


class Vote(NamedTuple):
    """What a peer says about who should be a core."""

    candidate: PeerId
    votes: float


def vote(
    strategy: str, me: PeerId, links: Mapping[PeerId, Link], alpha_us: int, chance: Random
) -> Vote:
    """The vote of one peer with these links to its neighbours."""
    if strategy == "rand":
        return Vote(me, chance.random())
    if not links:
        return Vote(me, 0.0)
    if strategy == "cneigh":
        return Vote(min(links, key=lambda peer: (links[peer].weight_us, peer)), 1.0)
    return Vote(me, _potential(links) if strategy == "spotent" else _similarity(links, alpha_us))


def most_voted(votes: Mapping[PeerId, float], count: int) -> list[PeerId]:
    """So many candidates, most votes first, and the lowest address first among equals."""
    return sorted(votes, key=lambda peer: (-votes[peer], peer))[:count]


def _potential(links: Mapping[PeerId, Link]) -> float:
    total_s = sum(link.weight_us for link in links.values()) / _US_PER_S
    worst_s = max(1, *(link.delay_us for link in links.values())) / _US_PER_S
    return len(links) + len(links) / total_s + 1 / worst_s


def _similarity(links: Mapping[PeerId, Link], alpha_us: int) -> float:
    if alpha_us == 0:
        return 1.0
    return 1 - sum(link.dissimilarity_us for link in links.values()) / len(links) / alpha_us
