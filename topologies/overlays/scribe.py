"""Scribe (Castro et al., JSAC 2002) and iScribe, as Chen et al. define both for BeaConvey.

A topic has a rendezvous point. Scribe's tree of a topic is the union of the routes from its
subscribers to the point, reversed; iScribe's is the union of the routes from the point to the
subscribers. Both are trees, as the next hop depends only on the node and on where the route goes. A
publication goes up to the point, and then down the whole tree. Nodes deliver on the way down only.

If links are missing, a route that does not reach its target is not part of a tree, and a
publication that does not reach its rendezvous point ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.dissemination import Counts, OfflinePubsub, PubsubSettings
from topologies.overlays.interests import Interests
from topologies.overlays.key_routes import KeyRoutes, Targets, walk
from topologies.overlays.kinds import ROUTES, key_routes
from topologies.overlays.overlay import Overlay
from topologies.overlays.publications import NOBODY

# Largest table of topics by nodes of topics that are computed together.
_CELLS_AT_ONCE = 8_000_000
_UNREACHED = -1


class ScribeSettings(PubsubSettings, frozen=True, kw_only=True):
    """Settings of Scribe."""

    root: Annotated[
        Literal["routed", "cached"],
        Meta(description="publications are routed to the rendezvous point, or sent to it directly"),
    ] = "routed"


class Scribe(OfflinePubsub):
    """A tree for each topic, made of the routes from subscribers to its rendezvous point."""

    Settings = ScribeSettings
    is_downward: ClassVar[bool] = False

    @classmethod
    def disseminate(
        cls, overlay: Overlay, publications: Numbers, settings: ScribeSettings
    ) -> Counts:
        """The counts of publications, given as rows (publisher, topic)."""
        forest = Forest(overlay, cls.is_downward)
        total = Counts(publications=len(publications))
        published = publications[publications[:, 0] != NOBODY]
        for topics in _batches(np.unique(published[:, 1]), overlay.nodes):
            some = published[np.isin(published[:, 1], topics)]
            total += _count(forest.trees(topics), some, settings.root == "cached")
        return total


class InverseScribe(Scribe):
    """A tree for each topic, made of the routes from its rendezvous point to subscribers."""

    is_downward = True

    @classmethod
    def disseminate(
        cls, overlay: Overlay, publications: Numbers, settings: ScribeSettings
    ) -> Counts:
        """The counts of publications; the overlay has to route by position."""
        if overlay.kind in ROUTES:
            raise TopologyError(
                f"iscribe: expected an overlay that routes by position, found {overlay.kind}"
            )
        return super().disseminate(overlay, publications, settings)


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The trees of some topics, with the values that are needed to count publications on them.

    `links` and `relays` are the number of links and of nodes without a subscription below the
    root, a tree each; `rows` the subscriptions and `depth` their depth, UNREACHED without one;
    `wants` whether a node subscribes to a topic, topic by topic.
    """

    routes: KeyRoutes
    interests: Interests
    topics: Numbers
    targets: Targets
    rows: Numbers
    depth: Numbers
    links: Numbers
    relays: Numbers
    wants: NDArray[np.bool_]

    def is_stranger(self, tree: Numbers, node: Numbers) -> NDArray[np.bool_]:
        """Whether nodes have no subscription to the topics of these trees."""
        return np.asarray(~self.wants[tree * self.interests.nodes + node])

    def tree_of_rows(self) -> Numbers:
        """The tree of each subscription, counted from 0."""
        return np.searchsorted(self.topics, self.interests.topic[self.rows])


class Forest:
    """Makes the trees of topics on an overlay."""

    def __init__(self, overlay: Overlay, is_downward: bool) -> None:
        self._overlay = overlay
        self._routes = key_routes(overlay)
        self._rendezvous = self._routes.rendezvous()
        self._is_downward = is_downward

    def trees(self, topics: Numbers) -> Trees:
        """The trees of some topics, in ascending order."""
        interests = self._overlay.interests
        rows = interests.rows_of(topics)
        tree = np.repeat(np.arange(len(topics)), interests.sizes[topics])
        targets = self._rendezvous.take(topics)
        cells = len(topics) * interests.nodes
        wants = np.zeros(cells, dtype=bool)
        wants[tree * interests.nodes + interests.node[rows]] = True
        depth, is_inside = self._walk_tree(tree, interests.node[rows], targets, cells)
        is_inside[np.arange(len(topics)) * interests.nodes + targets.root] = False
        shape = (len(topics), interests.nodes)
        links = is_inside.reshape(shape).sum(axis=1)
        relays = (is_inside & ~wants).reshape(shape).sum(axis=1)
        return Trees(self._routes, interests, topics, targets, rows, depth, links, relays, wants)

    def _walk_tree(
        self, tree: Numbers, node: Numbers, targets: Targets, cells: int
    ) -> tuple[Numbers, NDArray[np.bool_]]:
        """The depth of each subscriber, and whether each node is in each tree."""
        is_inside, nodes = np.zeros(cells, dtype=bool), self._overlay.nodes
        starts, ends = self._ends(tree, node, targets)

        def visit(routes: Numbers, at: Numbers) -> None:
            is_inside[tree[routes] * nodes + at] = True

        walks = walk(self._routes, starts, ends, visit)
        arrived = walks.has_arrived
        if not arrived.all():
            depth = np.full(len(tree), _UNREACHED)
            depth[arrived], is_inside = self._walk_tree(
                tree[arrived], node[arrived], targets, cells
            )
            return depth, is_inside
        is_inside[tree * nodes + node] = True
        return walks.hops, is_inside

    def _ends(self, tree: Numbers, node: Numbers, targets: Targets) -> tuple[Numbers, Targets]:
        """The starts and the targets of the routes of a tree."""
        if self._is_downward:
            return targets.root[tree], self._routes.node_targets(node)
        return node, targets.take(tree)


def _batches(topics: Numbers, nodes: int) -> Iterator[Numbers]:
    size = max(1, _CELLS_AT_ONCE // nodes)
    for start in range(0, len(topics), size):
        yield topics[start : start + size]


def _count(trees: Trees, publications: Numbers, is_cached: bool) -> Counts:
    """The counts of publications on these trees, without the number of publications."""
    tree = np.searchsorted(trees.topics, publications[:, 1])
    hops, strangers, has_arrived = _go_up(trees, tree, publications[:, 0], is_cached)
    # A tree reaches each of its nodes once, so there are no second deliveries.
    down = np.where(has_arrived, trees.links[tree], 0)
    strangers += np.where(has_arrived, trees.relays[tree], 0)
    deliveries, wanted, length, longest = _deliveries(trees, tree, publications)
    deliveries = np.where(has_arrived, deliveries, 0)
    return Counts(
        messages=int((hops + down).sum()),
        pure_forwarding=int(strangers.sum()),
        deliveries=int(deliveries.sum()),
        missed=int((wanted - deliveries).sum()),
        hops=int((deliveries * hops + np.where(has_arrived, length, 0)).sum()),
        longest=int(np.where(deliveries > 0, hops + longest, 0).max(initial=0)),
    )


def _go_up(
    trees: Trees, tree: Numbers, publisher: Numbers, is_cached: bool
) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Hops to the rendezvous point, receptions by non-subscribers, and whether it was reached."""
    targets = trees.targets.take(tree)
    if is_cached:
        hops = (publisher != targets.root).astype(np.int64)
        is_stranger = trees.is_stranger(tree, targets.root)
        return hops, hops * is_stranger, np.ones(len(hops), dtype=bool)
    strangers = np.zeros(len(tree), dtype=np.int64)

    def visit(routes: Numbers, at: Numbers) -> None:
        strangers[routes] += trees.is_stranger(tree[routes], at)

    walks = walk(trees.routes, publisher, targets, visit)
    return walks.hops, strangers, walks.has_arrived


def _deliveries(
    trees: Trees, tree: Numbers, publications: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """For each publication, without its publisher: subscribers that its tree reaches and all
    subscribers, the sum of the depths of those reached, and the largest of them."""
    count, total, largest, second = _depths(trees)
    row = trees.interests.find_rows(publications[:, 1], publications[:, 0])
    own = np.full(len(trees.interests) + 1, _UNREACHED)  # the last element is for row -1
    own[trees.rows] = trees.depth
    own_depth = own[row]
    is_own = own_depth != _UNREACHED
    wanted = trees.interests.sizes[publications[:, 1]] - (row >= 0)
    longest = np.where(own_depth == largest[tree], second[tree], largest[tree])
    length = total[tree] - np.where(is_own, own_depth, 0)
    return count[tree] - is_own, wanted, length, longest


def _depths(trees: Trees) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Of each tree: subscribers reached, the sum of their depths, the largest, the next largest."""
    is_reached = trees.depth != _UNREACHED
    tree, depth = trees.tree_of_rows()[is_reached], trees.depth[is_reached]
    number = len(trees.topics)
    count = np.bincount(tree, minlength=number)
    total = np.bincount(tree, depth, minlength=number).astype(np.int64)
    order = np.lexsort((depth, tree))
    last = np.cumsum(count) - 1
    ranked = np.concatenate((depth[order], [_UNREACHED]))
    largest = np.where(count > 0, ranked[np.where(count > 0, last, -1)], _UNREACHED)
    second = np.where(count > 1, ranked[np.where(count > 1, last - 1, -1)], _UNREACHED)
    return count, total, largest, second
