"""Whether a peer that a random walk visits becomes a target: it will infer the route to the walk's
origin and find it a place (section 4.2 of Tariq, Koldehofe and Rothermel, DEBS 2013, and the
baselines of its section 6.1).

Each rule gets the delay from here to the origin, the delay of the walk's path through the overlay
without the last miles of peers on the way, the delays of the near neighbours, and MLink's
tolerance.
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
    """The overlay's path is longer than the underlay's, so it misses some underlay links.

    Measured delays are never exact: a path counts as longer from `tolerance` of its delay on.
    """
    return origin_us < path_us * (1 - tolerance)


def every(origin_us: int, path_us: int, near_us: Sequence[int], tolerance: float) -> bool:
    """A baseline that is not the paper's: every visited peer is a target, until all are spent."""
    return True


# DOnly places peers by delay alone; of the rules that ask for delay alone it takes the one that
# says yes more often, as it is to find as many targets as the others.
RULES: dict[str, Rule] = {
    "dworst": dworst, "dbest": dbest, "mlink": mlink, "every": every, "donly": dworst,
}  # fmt: skip

# Baselines whose targets are chosen beforehand, by somebody who knows the whole network.
GIVEN = ("tarrand", "nearest", "farthest")
