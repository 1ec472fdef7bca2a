"""The neighbours of a peer in the discovery overlay, with delays and routes, and the degree limit.

A near neighbour is chosen for its place in the underlay, and the route to it is known. A distant
neighbour keeps the overlay connected (footnote 2 of the paper that `random_walk` follows): it has
no route, and does not count towards the degree limit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, log2, sqrt

from agents.probing.prefix import Routers, is_prefix
from agents.protocol import PeerId

DEGREE_LIMITS = ("lg1", "lg2", "sq", "none")
NO_LIMIT = 1 << 30


def degree_limit(name: str, peers: int) -> int:
    """The largest number of near neighbours for a limit (a name or a number) among N peers."""
    match name:
        case "none":
            return NO_LIMIT
        case "lg1":
            return max(1, ceil(log2(peers)))
        case "lg2":
            return max(1, ceil(2 * log2(peers)))
        case "sq":
            return max(1, ceil(sqrt(peers)))
    if not name.isdecimal() or int(name) < 1:
        raise ValueError(
            f"degree_limit: expected one of {', '.join(DEGREE_LIMITS)} or a number from 1 up, "
            f"found {name!r}"
        )
    return int(name)


@dataclass(slots=True)
class Neighbour:
    """A neighbour with its delay; a near one has a route."""

    delay_us: int
    route: Routers | None
    is_distant: bool
    heard_us: int

    @property
    def is_near(self) -> bool:
        """Whether it is a near neighbour."""
        return self.route is not None


class Neighbourhood(dict[PeerId, Neighbour]):
    """The neighbours of a peer by address."""

    def near(self) -> Iterator[tuple[PeerId, Neighbour]]:
        """The near neighbours, in the order in which they were added."""
        return ((peer, neighbour) for peer, neighbour in self.items() if neighbour.is_near)

    def is_near(self, peer: PeerId) -> bool:
        """Whether a peer is a near neighbour."""
        return peer in self and self[peer].is_near

    def near_delays_us(self) -> list[int]:
        """The delays to the near neighbours."""
        return [neighbour.delay_us for _, neighbour in self.near()]

    def farthest(self) -> PeerId:
        """The near neighbour with the largest delay."""
        return max(self.near(), key=lambda item: (item[1].delay_us, item[0]))[0]

    def delays_us(self) -> Mapping[PeerId, int]:
        """The delay to each neighbour."""
        return {peer: neighbour.delay_us for peer, neighbour in self.items()}

    def nearer_on_the_way(self, route: Routers, but: tuple[PeerId, ...]) -> PeerId | None:
        """Case 1: the neighbour whose route is the longest prefix of a route."""
        found = [
            (-len(neighbour.route), neighbour.delay_us, peer)
            for peer, neighbour in self.near()
            if neighbour.route and peer not in but and is_prefix(neighbour.route, route)
        ]
        return min(found)[2] if found else None

    def farther_on_the_way(self, route: Routers, but: tuple[PeerId, ...]) -> PeerId | None:
        """Case 2: the nearest neighbour of whose route a route is a prefix."""
        found = [
            (neighbour.delay_us, peer)
            for peer, neighbour in self.near()
            if neighbour.route
            and peer not in but
            and len(neighbour.route) > len(route) > 0
            and is_prefix(route, neighbour.route)
        ]
        return min(found)[1] if found else None
