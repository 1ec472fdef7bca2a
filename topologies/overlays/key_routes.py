"""Routes to keys: roots of keys, next hops towards them, and walks along many routes at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from topologies.overlays.arrays import Numbers
from topologies.overlays.overlay import Keys, Overlay

NOWHERE = -1


class Targets(NamedTuple):
    """Targets of routes: keys, and the nodes that are their roots."""

    root: Numbers
    key: Keys

    def take(self, which: NDArray[np.bool_] | Numbers) -> "Targets":
        """A selection of the targets."""
        return Targets(self.root[which], self.key[which])


class KeyRoutes(ABC):
    """The routes of an overlay to keys; the next hop depends on the node and the key alone."""

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay

    @abstractmethod
    def keys_of(self, nodes: Numbers) -> Keys:
        """The keys of routes to these nodes."""

    @abstractmethod
    def topic_targets(self) -> Targets:
        """The key and the root of each topic where rendezvous points follow from keys."""

    @abstractmethod
    def next_hops(self, at: Numbers, targets: Targets) -> Numbers:
        """The next node of each route that is not at its root; NOWHERE if there is none."""

    def node_targets(self, nodes: Numbers) -> Targets:
        """Nodes as targets."""
        return Targets(nodes, self.keys_of(nodes))

    def rendezvous(self) -> Targets:
        """The rendezvous point of each topic: that of the overlay, or by the topics' keys."""
        given = self.overlay.rendezvous
        return self.topic_targets() if given is None else self.node_targets(given)


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """The hops made on each route, and whether it arrived."""

    hops: Numbers
    has_arrived: NDArray[np.bool_]


def walk(
    routes: KeyRoutes,
    starts: Numbers,
    targets: Targets,
    visit: Callable[[Numbers, Numbers], None] = lambda _routes, _nodes: None,
) -> Walks:
    """Walk all routes at once; `visit` gets the routes and the nodes that they reach, hop by hop.

    A route ends at its root, at a node without a next hop, and after as many hops as there are
    nodes (tables that contradict each other may send it around).
    """
    hops, has_arrived = np.zeros(len(starts), dtype=np.int64), starts == targets.root
    moving, at = np.flatnonzero(~has_arrived), starts[~has_arrived]
    towards = targets.take(moving)
    for _ in range(routes.overlay.nodes):
        at = routes.next_hops(at, towards)
        moving, at, towards = _keep(at != NOWHERE, moving, at, towards)
        if not len(moving):
            break
        hops[moving] += 1
        visit(moving, at)
        is_there = at == towards.root
        has_arrived[moving[is_there]] = True
        moving, at, towards = _keep(~is_there, moving, at, towards)
    return Walks(hops, has_arrived)


def _keep(
    which: NDArray[np.bool_], moving: Numbers, at: Numbers, towards: Targets
) -> tuple[Numbers, Numbers, Targets]:
    if which.all():
        return moving, at, towards
    return moving[which], at[which], towards.take(which)
