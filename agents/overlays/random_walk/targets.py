"""Rules by which a peer that a random walk visits becomes a target, that is, infers the route to
the origin of the walk and places it (section 4.2 of Tariq, Koldehofe and Rothermel, DEBS 2013, and
the baselines of its section 6.1).

The arguments of each rule are the delay from this peer to the origin, the delay of the walk's path
over the overlay without the last miles of peers on the path, the delays to the near neighbours, and
MLink's tolerance.
"""

from collections.abc import Callable, Sequence
from typing import Literal

Heuristic = Literal["dworst", "dbest", "mlink", "every", "donly", "tarrand", "nearest", "farthest"]
Rule = Callable[[int, int, Sequence[int], float], bool]


def dworst(origin_us: int, path_us: int, near_us: Sequence[int], tolerance: float) -> bool:
    """The origin is nearer than the farthest neighbour."""
    return not near_us or origin_us < max(near_us)


def dbest(origin_us: int, path_us: int, near_us: Sequence[int], tolerance: float) -> bool:
    """The origin is nearer than the nearest neighbour."""
    return not near_us or origin_us < min(near_us)


def mlink(origin_us: int, path_us: int, near_us: Sequence[int], tolerance: float) -> bool:
    """The path over the overlay is longer than the underlay route, so it misses underlay links.

    Measured delays are inexact: a path counts as longer if it exceeds the delay by `tolerance`.
    """
    return origin_us < path_us * (1 - tolerance)


def every(origin_us: int, path_us: int, near_us: Sequence[int], tolerance: float) -> bool:
    """A baseline that is not in the paper: every visited peer is a target, until k_L are found."""
    return True


# DOnly places peers by delay alone. Of the two rules by delay it uses the one that holds more
# often, because it should find as many targets as the other heuristics.
RULES: dict[str, Rule] = {
    "dworst": dworst, "dbest": dbest, "mlink": mlink, "every": every, "donly": dworst,
}  # fmt: skip

# Baselines whose targets are chosen before the run, with knowledge of the whole network.
GIVEN = ("tarrand", "nearest", "farthest")
