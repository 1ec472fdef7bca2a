"""All versions of the routing tree at one peer: creation, switch and removal (sections 5.2 and 5.3
of Tariq, Koldehofe and Rothermel, DEBS 2013).

`core_tree` decides what a peer needs; this module exchanges messages with neighbours about it.

- CORE_SPT is sent a moment after a change, to the neighbours that it concerns; the moment grows
  while changes continue. It is not acknowledged: each hello has the number of the last one, and a
  neighbour that missed it requests it. A new peer learns cores and paths in the same way.
- JOIN_CORE is sent when the path has not changed for a while, or at once if the parent is gone. In
  the paper a peer joins with every improvement; the content layer would then move subscriptions
  unnecessarily. Hellos contain the parent, so that no link stays one-sided.
- Section 5.3 repairs a tree locally: a new peer joins by lines 1 to 6 of algorithm 2, and a peer
  whose parent is gone uses the best of its offers. With `repair = "local"` no other peer moves
  once it has known the version for `settle_s`. With `repair = "optimal"` every peer always
  uses the path of the least weight, which keeps the tree as good as a new one with these cores.
- Version v + 1 is built while v is in use. The switch is announced in the hellos of the leader; v
  is kept for a while, but not repaired, and then dropped.

With `core_paths = "apsp"` (figure 6c of the paper) cores are joined by the shortest paths between
all pairs of them. This is not a tree, but the union of one tree for each core: the version with
that core as root core. Such a family of versions is built for one list of cores, and a peer
publishes on the version of its relay. Its events go to the relay, from there on the shortest path
to each other core, and on to the peers. A family is identified by the highest of its versions.
"""

from functools import partial
from random import Random

from agents.protocol import Announce, Effect, Effects, PeerId, Record, Send, SetTimer
from agents.routing.cores.core_tree import CoreTree, family_members
from agents.routing.cores.link_weights import LinkWeights
from agents.routing.cores.messages import (
    BACKBONE_CHILD,
    CHILD,
    NOT_LINKED,
    CoreList,
    CoreRequest,
    CoreSpt,
    Interest,
    JoinCore,
    LeaveCore,
    TreeHello,
    VersionState,
)
from agents.routing.cores.settings import RoutingSettings
from agents.routing.cores.spanning_tree import SpanningTree
from agents.routing.cores.told_trees import ToldTrees
from agents.routing.tree import CurrentTree, Hold, Tree

_CHILD_HOLD_US = 50_000
_JOIN_HOLD_US = 500_000
_HELD_PERIODS = 2  # after the root path was lost
_SPREAD = 0.2  # of a period: while a version is new, all peers have offers to forward at once
_MOST_EARLY = 256  # offers that arrived before the list of cores


class TreeVersions:
    """The versions that this peer knows, and the one in use."""

    def __init__(
        self,
        tree: SpanningTree,
        weights: LinkWeights,
        settings: RoutingSettings,
        is_rooted: bool,
        chance: Random,
    ) -> None:
        self.trees: dict[int, CoreTree] = {}
        self.current = 0  # the family in use
        self._first = 0  # the lowest version in it
        self._published = 0  # the version to publish on
        self._has_families = settings.core_paths == "apsp"
        self._lists: dict[int, CoreList] = {}
        self._me = tree.me
        self._tree = tree
        self._weights = weights
        self._period_us = settings.period_us
        self._settle_us = int(settings.settle_s * 1e6)
        self._grace_us = int(settings.grace_s * 1e6)
        self._is_rooted = is_rooted
        self._is_local = settings.repair == "local"
        self._random = chance
        self._early: dict[tuple[PeerId, int], CoreSpt] = {}
        self._assigned: dict[int, PeerId] = {}
        self._told_trees = ToldTrees()
        self._told: set[tuple[PeerId, int]] = set()  # to which neighbours each core list was sent
        self._holds: dict[int, Hold] = {}  # of CORE_SPT

    @property
    def newest(self) -> int:
        """The newest family that has cores, or 0."""
        return max(self.trees, default=0)

    def family_of(self, version: int) -> int:
        """The family of a version; an unknown version is its own family."""
        tree = self.trees.get(version)
        return version if tree is None else tree.family

    def is_headless(self, now_us: int, patience_us: int) -> bool:
        """Whether no live core of the newest version is known."""
        tree = self.trees.get(self.newest)
        return tree is not None and tree.is_headless(now_us, patience_us)

    def is_due(self, now_us: int) -> bool:
        """Whether the leader should switch to the newest version."""
        newest = self.newest
        return newest > self.current and now_us - self.trees[newest].known_us >= self._settle_us

    # The life cycle of a version

    def install(self, now_us: int, cores: CoreList, sender: PeerId | None) -> Effects:
        """Begin a version, and forward its cores; a known or former version changes nothing."""
        family = cores.version
        if sender is not None:
            self._told.add((sender, family))
        most = min(0xFE, family >> 16) if self._has_families else 0xFE
        is_sound = 0 < len(cores.cores) <= most
        if family in self.trees or family <= self.current or not is_sound:
            return []
        self._lists[family] = cores
        effects: list[Effect] = []
        for child in self._tree.children():
            effects += self._pass_on(child, family)
        for peer in self._tree.up():
            effects += self.tell_interest(family, peer)
        for version, ranked in family_members(cores, self._has_families):
            effects += self._begin(now_us, version, family, ranked)
        return effects

    def _begin(
        self, now_us: int, version: int, family: int, cores: tuple[PeerId, ...]
    ) -> list[Effect]:
        tree = CoreTree(self._me, version, cores, now_us, self._is_rooted)
        tree.family, tree.assigned = family, self._assigned.pop(version, None)
        self.trees[version] = tree
        for peer, _ in [key for key in self._early if key[1] == version]:
            tree.take_offer(peer, self._early.pop((peer, version)))
        told = Announce(Tree(version, now_us, (), family=family))
        return [told, *self._flush_soon(now_us, tree)]

    def tell_interest(self, family: int, peer: PeerId) -> Effects:
        """Send a neighbour this peer's interests, once for each family and link."""
        if self._weights.are_delays_only or (peer, -family) in self._told:
            return []
        self._told.add((peer, -family))
        return [Send(peer, Interest(family, self._weights.own(family)), reliable=True)]

    def switch(self, family: int) -> Effects:
        """Use a family from now on, and drop the versions before it after a while."""
        self.current = family
        self._first = min(v for v, tree in self.trees.items() if tree.family == family)
        ends = [SetTimer(("drop", old), self._grace_us) for old in self.trees if old < self._first]
        self._weights.drop(before=family)
        return [*self._publish(), *ends]

    def _publish(self) -> Effects:
        """Announce the version to publish on, if it has changed."""
        relay = self.trees[self.current].relay
        own = [
            version
            for version, tree in self.trees.items()
            if tree.family == self.current and relay is not None and tree.cores[0] == relay.core
        ]
        version = own[0] if own and self._has_families else self.current
        if version == self._published:
            return []
        self._published = version
        return [Announce(CurrentTree(version))]

    def drop(self, version: int) -> Effects:
        """Remove a version that was used before."""
        tree = self.trees.pop(version, None)
        if tree is None:
            return []
        self._told_trees.drop(version)
        for by_version in (self._holds, self._assigned, self._lists):
            by_version.pop(version, None)
        self._told = {(peer, of) for peer, of in self._told if abs(of) != version}
        tell = Announce(Tree(version, tree.known_us, (), is_dropped=True, family=tree.family))
        return [Record("tree_dropped", {"version": version}), tell]

    def assign(self, now_us: int, version: int, parent: PeerId) -> Effects:
        """Prefer a parent that the leader chose."""
        tree = self.trees.get(version)
        if tree is None:
            self._assigned[version] = parent
            return []
        tree.assigned = parent
        return self._flush_soon(now_us, tree)

    # Messages of neighbours

    def states_for(self, peer: PeerId) -> tuple[VersionState, ...]:
        """The versions in a hello to a neighbour."""
        return tuple(tree.state_for(peer) for tree in self.trees.values())

    def on_hello(self, now_us: int, sender: PeerId, hello: TreeHello) -> Effects:
        """Compare versions with a neighbour, and repair differences."""
        states = {state.version: state for state in hello.states}
        effects: list[Effect] = []
        for version, tree in list(self.trees.items()):
            if version in states:
                effects += self._compare(now_us, sender, tree, states[version])
            elif now_us - tree.known_us > self._period_us:
                effects += self._help(now_us, sender, tree)
        return [*effects, *self._follow_switch(now_us, hello.current)]

    def on_core_spt(self, now_us: int, sender: PeerId, offer: CoreSpt) -> Effects:
        """Keep an offer; one that arrived before its version is kept until then."""
        tree = self.trees.get(offer.version)
        if tree is not None:
            return self._flush_soon(now_us, tree) if tree.take_offer(sender, offer) else []
        known = self._early.get((sender, offer.version))
        is_new = known is None or known.number < offer.number
        if offer.version > self.current and is_new and len(self._early) < _MOST_EARLY:
            self._early[sender, offer.version] = offer
        return []

    def on_join(self, now_us: int, sender: PeerId, join: JoinCore) -> Effects:
        """Add a child."""
        tree = self.trees.get(join.version)
        if tree is None:
            return []
        tree.set_child(sender, BACKBONE_CHILD if join.is_backbone else CHILD)
        return self._after_child(now_us, tree)

    def on_leave(self, now_us: int, sender: PeerId, version: int) -> Effects:
        """Remove a child."""
        tree = self.trees.get(version)
        if tree is None:
            return []
        tree.set_child(sender, NOT_LINKED)
        return self._after_child(now_us, tree)

    def on_request(self, sender: PeerId, version: int) -> Effects:
        """Send the last offer once more."""
        tree = self.trees.get(version)
        offer = tree.last_offer(sender) if tree is not None else None
        return [Send(sender, offer)] if offer is not None else []

    def on_up(self, now_us: int, peer: PeerId) -> Effects:
        """A neighbour is up: send it what it may not know."""
        effects: list[Effect] = []
        for tree in self._living():
            effects += [*self.tell_interest(tree.family, peer), *self._flush_soon(now_us, tree)]
        return effects

    def on_down(self, now_us: int, peer: PeerId) -> Effects:
        """A neighbour is gone: repair without it."""
        self._told = {(told, of) for told, of in self._told if told != peer}
        self._early = {key: offer for key, offer in self._early.items() if key[0] != peer}
        effects: list[Effect] = []
        for tree in list(self.trees.values()):
            effects += self._lose(now_us, tree, peer)
        return effects

    def on_weight(self, now_us: int, family: int) -> Effects:
        """The weight of a link has changed."""
        trees = [tree for tree in self.trees.values() if tree.family == family]
        return [effect for tree in trees for effect in self._flush_soon(now_us, tree)]

    def forget_told(self, peer: PeerId, version: int) -> None:
        """A core list was not acknowledged, so it may be sent again."""
        self._told.discard((peer, version))

    def on_tick(self, now_us: int, patience_us: int) -> Effects:
        """Check that root cores are alive."""
        effects: list[Effect] = []
        for tree in self._living():
            if tree.on_tick(now_us, patience_us):
                effects += self._flush_soon(now_us, tree)
        return effects

    def on_timer(self, now_us: int, what: str, version: int) -> Effects:
        """Send offers, join, or drop a version."""
        tree = self.trees.get(version)
        if tree is None:
            return []
        if what == "flush":
            return self._flush(now_us, tree)
        if what == "hold":
            return self._flush_soon(now_us, tree)
        if what == "join":
            return self._join(now_us, tree) if version >= self._first else []
        return self.drop(version)

    # Implementation

    def _living(self) -> list[CoreTree]:
        """The versions that are in use or next; earlier ones are not repaired."""
        return [tree for version, tree in self.trees.items() if version >= self._first]

    def _pass_on(self, peer: PeerId, family: int) -> Effects:
        if (peer, family) in self._told:
            return []
        self._told.add((peer, family))
        return [Send(peer, self._lists[family], reliable=True)]

    def _help(self, now_us: int, peer: PeerId, tree: CoreTree) -> Effects:
        """A neighbour does not know a version: it is new, was left out, or has dropped it."""
        effects = [*self._lose(now_us, tree, peer)]
        if tree.version < self._first:
            return effects
        if tree.version == tree.family:
            self._told -= {(peer, tree.family), (peer, -tree.family)}
            effects += [*self._pass_on(peer, tree.family), *self.tell_interest(tree.family, peer)]
        return [*effects, *self._flush_soon(now_us, tree)]

    def _compare(
        self, now_us: int, peer: PeerId, tree: CoreTree, state: VersionState
    ) -> list[Effect]:
        effects: list[Effect] = []
        if tree.version >= self._first:
            if tree.hear(now_us, state.rank, state.beat):
                effects += self._flush_soon(now_us, tree)
            known = tree.offers.get(peer)
            if state.number > (known.number if known is not None else 0):
                effects.append(Send(peer, CoreRequest(tree.version)))
        if tree.set_child(peer, state.link):
            effects += self._after_child(now_us, tree)
        return effects

    def _follow_switch(self, now_us: int, family: int) -> Effects:
        """Switch to the family that others use, once this peer has its place there."""
        tree = self.trees.get(family)
        if tree is None or family <= self.current:
            return []
        is_ready = bool(tree.links) or self._is_settled(now_us, tree)
        return self.switch(family) if is_ready else []

    def _lose(self, now_us: int, tree: CoreTree, peer: PeerId) -> Effects:
        if not tree.lose(peer):
            return []
        return [*self._told_trees.links(tree), *self._flush_soon(now_us, tree)]

    def _flush_soon(self, now_us: int, tree: CoreTree) -> Effects:
        hold = self._holds.setdefault(tree.version, Hold())
        if hold.is_set or tree.version < self._first:
            return []
        wait_us = hold.set(now_us)
        if not self._is_settled(now_us, tree):
            wait_us += self._random.randrange(int(_SPREAD * self._period_us))
        return [SetTimer(("flush", tree.version), wait_us)]

    def _is_settled(self, now_us: int, tree: CoreTree) -> bool:
        return now_us - tree.known_us > self._settle_us

    def _flush(self, now_us: int, tree: CoreTree) -> Effects:
        """Choose parents again, and inform the peers that are concerned."""
        if tree.version < self._first:
            self._holds[tree.version].end(now_us, has_done=False)
            return []
        had_parent = tree.parent is not None
        is_settled = self._is_settled(now_us, tree)
        hold_us = _HELD_PERIODS * self._period_us if is_settled else 0
        is_kept = self._is_local and is_settled
        tree.choose(now_us, partial(self._weight_us, tree.family), hold_us, is_kept)
        offers = [Send(to, offer) for to, offer in tree.offers_to_send(now_us, self._tree.up())]
        self._holds[tree.version].end(now_us, has_done=bool(offers))
        effects: list[Effect] = [*offers]
        if tree.is_holding(now_us):
            effects.append(SetTimer(("hold", tree.version), hold_us))
        effects += self._seek_parent(now_us, tree, is_urgent=not had_parent and is_settled)
        return [*effects, *(self._publish() if tree.version == self.current else [])]

    def _weight_us(self, family: int, peer: PeerId) -> int:
        return self._weights.link(family, peer).weight_us

    def _seek_parent(self, now_us: int, tree: CoreTree, is_urgent: bool) -> Effects:
        """Join the parent that this peer should have, now or once it has stayed the same."""
        parent = tree.next_parent
        if parent == tree.parent and tree.joined_as in (tree.role, NOT_LINKED):
            return []
        if is_urgent or parent == tree.parent:
            return self._join(now_us, tree)
        return [SetTimer(("join", tree.version), _JOIN_HOLD_US)]

    def _join(self, now_us: int, tree: CoreTree) -> Effects:
        parent, before = tree.next_parent, tree.parent
        if parent == before and tree.joined_as in (tree.role, NOT_LINKED):
            return []
        effects: list[Effect] = []
        if before is not None and before != parent:
            effects.append(Send(before, LeaveCore(tree.version), reliable=True))
        tree.parent = parent
        tree.joined_as = tree.role if parent is not None else NOT_LINKED
        if parent is not None:
            join = JoinCore(tree.version, tree.joined_as == BACKBONE_CHILD)
            effects.append(Send(parent, join, reliable=True))
        return [*effects, *self._told_trees.relay(tree), *self._told_trees.links(tree)]

    def _after_child(self, now_us: int, tree: CoreTree) -> Effects:
        """Another child may add this peer to the backbone, or remove it."""
        if tree.version < self._first:
            return self._told_trees.links(tree)
        if tree.next_parent == tree.parent:
            return [*self._seek_parent(now_us, tree, is_urgent=True), *self._told_trees.links(tree)]
        return [SetTimer(("join", tree.version), _CHILD_HOLD_US), *self._told_trees.links(tree)]
