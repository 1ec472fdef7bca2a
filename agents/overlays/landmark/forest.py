"""A peer's part in all landmark trees: how it joins, lets others join, and moves.

Section 4.1.1 of the paper that `landmark` follows. The way into a tree is

    joiner --Join--> root --Connect--> ... --Connect--> parent --Accept--> joiner
                                               adopted children <--NewParent-- joiner
                             parent <--Disconnect-- adopted children

A parent writes a child down before it tells it, and a joiner fetches the children it adopts
itself. So if it has vanished meanwhile they stay where they are, and the parent will miss its
heartbeats. An attempt that comes to nothing, for whatever reason, is repeated after a while, with
the route that was told at the first time. Heartbeats say how each end sees a link, and an end
that sees it otherwise says so: thus what lost messages and crossing moves leave behind is mended.
"""

from collections import defaultdict
from collections.abc import Collection
from random import Random

from msgspec.structs import replace

from agents.overlays.landmark.messages import (
    Accept,
    Connect,
    Disconnect,
    Heartbeat,
    Join,
    NewParent,
)
from agents.overlays.landmark.tree import Tree, parcels
from agents.probing.prefix import Routers, is_prefix
from agents.probing.route import Route
from agents.protocol import CancelTimer, Effect, PeerId, ProbeRoute, Record, Send, SetTimer

_MOST_HOPS = 60  # of a descent; a route has half as many routers
_MOST_DOUBLINGS = 3  # of the wait between attempts
_DOUBLINGS_TO_INFER = 2  # with which it begins as long as the route is not known


class Forest:
    """The trees that a peer is in."""

    def __init__(self, me: PeerId, random: Random, join_timeout_us: int) -> None:
        self.trees: dict[PeerId, Tree] = {}
        self.is_changed = False  # the neighbours may be others now
        self._me = me
        self._random = random
        self._join_timeout_us = join_timeout_us
        self._told_routes: dict[PeerId, Routers] = {}  # by the roots
        self._found_routes: dict[PeerId, Routers] = {}  # inferred from here
        self._awaited: dict[PeerId, int] = {}  # attempts of peers whose route is being inferred

    def follow(self, landmarks: Collection[PeerId]) -> list[Effect]:
        """Join the trees of new landmarks, and forget those of dead ones."""
        effects: list[Effect] = []
        for root in [root for root in self.trees if root not in landmarks]:
            del self.trees[root]
            self.is_changed = True
            effects.append(CancelTimer(("join", root)))
        for root in landmarks:
            if root not in self.trees:
                effects += self._plant(root)
        return effects

    def _plant(self, root: PeerId) -> list[Effect]:
        tree = self.trees[root] = Tree(root, self._random.getrandbits(31), root == self._me)
        if tree.is_root:
            return []
        tree.route = self._told_routes.get(root, ())
        return self._join(tree)

    def _join(self, tree: Tree) -> list[Effect]:
        """Ask the root for a place, with all children there are."""
        tree.parent = None
        tree.attempt += 1
        self.is_changed = True
        # Inference takes its time where all join at once, and more where routers are silent.
        doublings = tree.failures if tree.route else tree.failures + _DOUBLINGS_TO_INFER
        wait_us = self._join_timeout_us << min(doublings, _MOST_DOUBLINGS)
        ask = Send(tree.root, Join(tree.attempt, tree.route), reliable=True)
        return [ask, SetTimer(("join", tree.root), wait_us)]

    def try_again(self, root: PeerId) -> list[Effect]:
        """Go on after an attempt that took too long."""
        tree = self.trees.get(root)
        if tree is None or tree.parent is not None:
            return []
        tree.failures += 1
        return self._join(tree)

    def on_join(self, sender: PeerId, message: Join) -> list[Effect]:
        """The root: infer the route to a peer, unless it is known, and look for its place."""
        tree = self.trees.get(self._me)
        if tree is None:
            return []
        route = self._found_routes.get(sender, message.route)
        if route:
            self._found_routes[sender] = route
            return self._place(tree, Connect(self._me, sender, message.attempt, route, 0))
        is_under_way = sender in self._awaited
        self._awaited[sender] = message.attempt
        return [] if is_under_way else [ProbeRoute(sender)]

    def on_route(self, route: Route) -> list[Effect]:
        """The root: place the peer whose route was asked for; one out of reach may ask again."""
        attempt = self._awaited.pop(route.target, None)
        tree = self.trees.get(self._me)
        if attempt is None or tree is None or not route.is_reached:
            return []
        routers = tuple(router or 0 for router in route.routers)
        self._found_routes[route.target] = routers
        return self._place(tree, Connect(self._me, route.target, attempt, routers, 0))

    def on_connect(self, sender: PeerId, message: Connect) -> list[Effect]:
        """Go on with a descent; a peer that cannot lets it end, and the joiner tries again."""
        tree = self.trees.get(message.landmark)
        if tree is None or message.joiner == self._me or message.hops > _MOST_HOPS:
            return []
        if message.joiner == tree.parent:  # it is about to move, and must not move below itself
            is_mistaken = sender != tree.parent
            return [_disconnect(tree, sender, from_child=True)] if is_mistaken else []
        if not tree.has_route or not is_prefix(tree.route, message.route):
            return []
        return self._place(tree, message)

    def _place(self, tree: Tree, joining: Connect) -> list[Effect]:
        """The three cases: forward the request, or take the peer as a child, or both."""
        joiner, route = joining.joiner, joining.route
        self.is_changed |= tree.children.pop(joiner, None) is not None  # if it was one before
        child = tree.nearer(route)
        if child is not None:
            return [Send(child, replace(joining, hops=joining.hops + 1), reliable=True)]
        adopted = tree.farther(route)
        tree.children[joiner] = route
        self.is_changed = True
        length = len(tree.route)
        return [
            Send(joiner, Accept(tree.root, joining.attempt, route, length, parcel), reliable=True)
            for parcel in parcels(adopted, tree.children, len(route))
        ]

    def on_accept(self, sender: PeerId, message: Accept) -> list[Effect]:
        """Take the place that was found, unless there is another by now."""
        tree = self.trees.get(message.landmark)
        if tree is None:
            return []
        is_second = tree.parent == sender and message.route == tree.route
        if not is_second and (tree.parent is not None or tree.attempt != message.attempt):
            is_other = tree.parent != sender
            return [_disconnect(tree, sender, from_child=True)] if is_other else []
        effects = [] if is_second else self._settle(tree, sender, message)
        return effects + self._adopt(tree, sender, message)

    def _settle(self, tree: Tree, parent: PeerId, accept: Accept) -> list[Effect]:
        self._told_routes[tree.root] = accept.route
        tree.attach(parent, accept.route, accept.parent_length)
        self.is_changed = True
        return [CancelTimer(("join", tree.root)), _parent_chosen(tree)]

    def _adopt(self, tree: Tree, old_parent: PeerId, accept: Accept) -> list[Effect]:
        effects: list[Effect] = []
        for adopted in accept.adopted:
            if adopted.peer not in (self._me, tree.parent):
                tree.children[adopted.peer] = tree.route + adopted.rest
                self.is_changed = True
                new_parent = NewParent(tree.root, old_parent, tree.route)
                effects.append(Send(adopted.peer, new_parent, reliable=True))
        return effects

    def on_new_parent(self, sender: PeerId, message: NewParent) -> list[Effect]:
        """Move below a peer that lies on the way here."""
        tree = self.trees.get(message.landmark)
        if tree is None or tree.parent == sender:
            return []
        is_replaced = tree.parent == message.old_parent and is_prefix(message.route, tree.route)
        if tree.parent is None or not (is_replaced or tree.is_better(sender, message.route)):
            return [_disconnect(tree, sender, from_child=True)]
        leave = _disconnect(tree, tree.parent, from_child=True)
        tree.attach(sender, tree.route, len(message.route))
        self.is_changed = True
        return [leave, _parent_chosen(tree)]

    def on_disconnect(self, sender: PeerId, message: Disconnect) -> list[Effect]:
        """Let a child go, or look for another parent."""
        tree = self.trees.get(message.landmark)
        if tree is None:
            return []
        if message.from_child:
            self.is_changed |= tree.children.pop(sender, None) is not None
            return []
        return self._join(tree) if tree.parent == sender else []

    def leave(self) -> list[Effect]:
        """Tell all parents and children; the children will ask the roots for other parents."""
        effects: list[Effect] = []
        for tree in self.trees.values():
            if tree.parent is not None:
                effects.append(_disconnect(tree, tree.parent, from_child=True))
            if not tree.is_root:
                effects += [_disconnect(tree, child, from_child=False) for child in tree.children]
        return effects

    def hear(self, peer: PeerId) -> None:
        """Note that a peer lives, which may be a root that was not heard any more."""
        tree = self.trees.get(peer)
        if tree is not None:
            tree.has_lost_root = False

    def lose(self, peer: PeerId) -> list[Effect]:
        """Go on without a neighbour that is not heard any more."""
        effects: list[Effect] = []
        for tree in self.trees.values():
            self.is_changed |= tree.children.pop(peer, None) is not None
            if tree.parent == peer:
                tree.has_lost_root = peer == tree.root
                effects += self._join(tree)
        return effects

    def neighbours(self) -> set[PeerId]:
        """The parents and children in all trees."""
        found = {tree.parent for tree in self.trees.values() if tree.parent is not None}
        return found.union(*(tree.children for tree in self.trees.values()))

    def heartbeats(self) -> dict[PeerId, Heartbeat]:
        """How this peer sees each of its neighbours."""
        child_of: defaultdict[PeerId, list[PeerId]] = defaultdict(list)
        parent_of: defaultdict[PeerId, list[PeerId]] = defaultdict(list)
        under_twin: defaultdict[PeerId, list[PeerId]] = defaultdict(list)
        for root, tree in self.trees.items():
            if tree.parent is not None:
                child_of[tree.parent].append(root)
            is_under_twin = tree.is_under_twin
            for child in tree.children:
                (under_twin if is_under_twin else parent_of)[child].append(root)
        return {
            peer: Heartbeat(
                False, tuple(child_of[peer]), tuple(parent_of[peer]), tuple(under_twin[peer])
            )
            for peer in sorted(child_of.keys() | parent_of.keys() | under_twin.keys())
        }

    def on_heartbeat(self, sender: PeerId, message: Heartbeat) -> list[Effect]:
        """Contradict where a neighbour sees things otherwise, and end a chain of twins."""
        effects: list[Effect] = []
        for root in message.child_of:
            tree = self.trees.get(root)
            if tree is not None and sender not in tree.children:
                effects.append(_disconnect(tree, sender, from_child=False))
        for root in (*message.parent_of, *message.parent_under_twin_of):
            tree = self.trees.get(root)
            is_other = tree is not None and tree.parent not in (None, sender)
            if tree is not None and (is_other or tree.is_root):
                effects.append(_disconnect(tree, sender, from_child=True))
        for root in message.parent_under_twin_of:
            tree = self.trees.get(root)
            if tree is not None and tree.parent == sender and tree.is_under_twin:
                effects += [_disconnect(tree, sender, from_child=True), *self._join(tree)]
        return effects


def _disconnect(tree: Tree, peer: PeerId, *, from_child: bool) -> Send:
    return Send(peer, Disconnect(tree.root, from_child), reliable=True)


def _parent_chosen(tree: Tree) -> Record:
    return Record("parent_chosen", {"landmark": tree.root, "parent": tree.parent or 0})
