"""One peer's place in the tree of a landmark, and the three cases of placing.

Follows section 4.1.1 of the paper that `landmark` follows; the cases are those of TAG (Kwon and
Fahmy, "Topology-aware overlay networks for group communication", NOSSDAV 2002).

On every link of a tree the parent's route is a prefix of the child's; the root's route is empty.
Both ends check this, so there is no cycle among peers with different routes. Peers with the same
route, on one router, are twins. The first twin is case 1 for the others: they become its children,
side by side, and have no children. Twins therefore do not form a chain, on which each would pay for
the last miles of all before it. The common route grows with every step of a descent, so it ends. A
twin below a twin below a twin is a chain or a cycle, and the last one joins again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agents.overlays.landmark.messages import Adopted
from agents.probing.prefix import Routers, is_prefix
from agents.protocol import PeerId

_ADOPTED_BYTES = 1_000  # of adopted children, in one message


@dataclass(slots=True)
class Tree:
    """Parent and children of a peer in one tree, with their routes from the root."""

    root: PeerId
    attempt: int  # attempts to join, counted from an arbitrary number
    is_root: bool = False
    route: Routers = ()  # empty if unknown
    parent: PeerId | None = None
    parent_length: int = 0  # of the route of the parent
    children: dict[PeerId, Routers] = field(default_factory=dict)
    failures: int = 0  # consecutive failed attempts
    has_lost_root: bool = False  # the root was the parent, and is silent

    @property
    def has_route(self) -> bool:
        """Whether this peer can have children."""
        return self.is_root or bool(self.route)

    @property
    def is_under_twin(self) -> bool:
        """Whether the parent has the same route."""
        return self.parent is not None and self.parent_length == len(self.route)

    def is_better(self, parent: PeerId, route: Routers) -> bool:
        """Whether a peer is on the route to this one, and nearer than the parent."""
        is_fitting = is_prefix(route, self.route) and parent not in self.children
        return is_fitting and self.parent is not None and len(route) > self.parent_length

    def nearer(self, route: Routers) -> PeerId | None:
        """Case 1: the child on the route to a peer, the one with the longest route."""
        found = [
            (-len(passed), child)
            for child, passed in self.children.items()
            if len(passed) > len(self.route) and is_prefix(passed, route)
        ]
        return min(found)[1] if found else None

    def farther(self, route: Routers) -> list[PeerId]:
        """Case 2: the children on whose routes a peer is; none in case 3.

        A twin does not get the children: their place here is as good.
        """
        if route == self.route:
            return []
        return [
            child
            for child, beyond in self.children.items()
            if len(beyond) > len(route) and is_prefix(route, beyond)
        ]

    def attach(self, parent: PeerId, route: Routers, parent_length: int) -> None:
        """Take a place; children that do not belong below it are removed, and notice that."""
        if route != self.route:
            self.route = route
            self.children = {c: r for c, r in self.children.items() if is_prefix(route, r)}
        self.children.pop(parent, None)
        self.parent, self.failures, self.has_lost_root = parent, 0, False
        self.parent_length = parent_length


def parcels(
    children: Sequence[PeerId], routes: dict[PeerId, Routers], known: int
) -> Iterator[tuple[Adopted, ...]]:
    """Children with the rest of their routes, in one or more parts that fit into a message."""
    parcel: list[Adopted] = []
    size = 0
    for child in children:
        rest = routes[child][known:]
        size += 6 + 4 * len(rest)
        if size > _ADOPTED_BYTES:
            yield tuple(parcel)
            parcel, size = [], 6 + 4 * len(rest)
        parcel.append(Adopted(child, rest))
    yield tuple(parcel)
