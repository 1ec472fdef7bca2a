"""Event routing with cores (section 5 of Tariq, Koldehofe and Rothermel, "Efficient content-based
routing with network topology inference", DEBS 2013), on the neighbours that an overlay announces.

1. `spanning_tree`: a spanning tree T_C, whose root is the leader.
2. `selection`, `strategies`: the leader starts a selection, neighbours exchange interests, votes or
   links are gathered up T_C, and the leader sends the list of cores down T_C.
3. `tree_versions`, `core_tree`: every peer finds its relay, and the relays are joined in a tree.

The leader begins the first selection after the overlay had time to settle, and later ones at a
fixed interval or when the layer above requests one. It also begins one if the former leader had not
finished, or if no core is left. Only a peer that has been leader for a while starts a selection,
and the switch to a version waits until it had time to be built.
"""

from collections.abc import Hashable, Mapping
from typing import Any, ClassVar

from agents.protocol import (
    Effect,
    Effects,
    Neighbours,
    PeerId,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
)
from agents.routing.cores.link_weights import LinkWeights
from agents.routing.cores.messages import (
    MESSAGES,
    CoreList,
    CoreRequest,
    CoreSpt,
    Farewell,
    JoinCore,
    LeaveCore,
    RecalculationRequest,
    SelectionCall,
    TreeHello,
)
from agents.routing.cores.selection import Selection
from agents.routing.cores.settings import MST, CoreSettings, RoutingSettings, SpanningTreeSettings
from agents.routing.cores.spanning_tree import SpanningTree, Stir
from agents.routing.cores.tree_versions import TreeVersions
from agents.routing.similarity import EventWindow, RecentEvents
from agents.routing.tree import Recalculate

# News of the leader is delayed by up to this share of a period, because better news may follow,
# and because the hellos of all peers at the same time would collide on the links.
_SOON = 0.25


class CoreRouting(Protocol):
    """One tree over core peers, which are selected by delay and common interests."""

    Settings: ClassVar[type[RoutingSettings]] = CoreSettings
    settings: RoutingSettings
    messages = MESSAGES
    offers = frozenset({"trees"})
    needs = "mutual neighbours"

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self.tree = SpanningTree(self.me)
        self.weights = LinkWeights(self.tree, self.settings.psi, self.settings.alpha_us)
        is_rooted = self.settings.strategy == MST
        self.versions = TreeVersions(self.tree, self.weights, self.settings, is_rooted, self.random)
        self.selection = Selection(
            self.tree, self.weights, self.versions, self.settings, self.random
        )
        self._period_us = self.settings.period_us
        self._patience_us = self._period_us * self.settings.missed_hellos
        self._said_hello_us = 0
        self._is_waiting = self._is_soon = self._is_known_leader = False

    # Handlers

    def on_start(self, now_us: int) -> Effects:
        """Start the period timer."""
        self.tree.leader_since_us = now_us
        return [SetTimer("tick", self.random.randrange(self._period_us))]

    def on_stop(self, now_us: int) -> Effects:
        """Tell the neighbours that this peer leaves."""
        return [Send(peer, Farewell()) for peer in self.tree.up()]

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Handle neighbours and interests, or a request for a new tree."""
        match content:
            case Neighbours(delays_us):
                return self._set_neighbours(now_us, delays_us)
            case EventWindow() | RecentEvents():
                self.weights.history = content
            case Recalculate(version):
                return self.selection.tire(self.versions.family_of(version))
        return []

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle a neighbour's message; a neighbour that the overlay has not announced yet sends
        hellos.
        """
        if sender not in self.tree.neighbours:
            return []
        self.tree.neighbours[sender].heard_us = now_us
        match message:
            case TreeHello():
                return self._on_hello(now_us, sender, message)
            case CoreSpt():
                return self.versions.on_core_spt(now_us, sender, message)
            case JoinCore():
                return self.versions.on_join(now_us, sender, message)
            case LeaveCore(version):
                return self.versions.on_leave(now_us, sender, version)
            case CoreRequest(version):
                return self.versions.on_request(sender, version)
            case Farewell():
                return self._on_down(now_us, sender)
        return self.selection.on_message(now_us, sender, message)

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Continue what waited for a timer."""
        match name:
            case "tick":
                return self._tick(now_us)
            case "soon":
                self._is_soon = False
                return self._say_hello(now_us)
            case "late":
                self._is_waiting = False
                return self._say_hello(now_us) if self.tree.catch_up(now_us) else []
            case ("tell" | "interest" | "report" as what, int(version)):
                return self.selection.on_timer(now_us, what, version)
            case (str(what), int(version)):
                return self.versions.on_timer(now_us, what, version)
        return []

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Treat a peer that does not acknowledge as gone; hellos repair the rest."""
        match message:
            case CoreList(version):
                self.versions.forget_told(to, version)
            case SelectionCall():
                return self.selection.on_down(now_us, to)
            case RecalculationRequest():
                self.selection.forget_told(to)
        return []

    # Leader and spanning tree

    def _tick(self, now_us: int) -> Effects:
        """Once in a period: check the neighbours, and act as leader if this peer is the leader."""
        effects: list[Effect] = [SetTimer("tick", self._period_us)]
        for peer in self.tree.silent(now_us, self._patience_us):
            effects += self._on_down(now_us, peer)
        is_stirred = self.tree.expire(now_us, self._patience_us)
        effects += self.versions.on_tick(now_us, self._patience_us)
        effects += self.selection.pass_wish_on()
        if self.tree.is_leader:
            effects += self._lead(now_us)
        elif is_stirred or now_us - self._said_hello_us >= 3 * self._period_us // 2:
            effects += self._say_hello(now_us)
        return effects

    def _lead(self, now_us: int) -> Effects:
        self.tree.lead(now_us)
        is_settled = now_us - self.tree.leader_since_us >= self._patience_us
        effects: list[Effect] = []
        if is_settled and not self._is_known_leader and self.tree.up():
            self._is_known_leader = True
            effects.append(Record("leader_elected", {"leader": self.me}))
        if is_settled and self.versions.is_due(now_us):
            effects += self.versions.switch(self.versions.newest)
        effects += self._say_hello(now_us)
        if is_settled and self.selection.is_due(now_us, self._patience_us):
            effects += self.selection.call(now_us)
        return effects

    def _say_hello(self, now_us: int) -> Effects:
        self._said_hello_us = now_us
        return [Send(peer, self._hello_to(peer)) for peer in self.tree.neighbours]

    def _hello_to(self, peer: PeerId) -> TreeHello:
        tree = self.tree
        return TreeHello(
            tree.leader, tree.pulse.sequence, tree.hops, tree.parent or 0,
            min(tree.neighbours[peer].delay_us, 0xFFFFFFFF), self.versions.current,
            self.versions.states_for(peer),
        )  # fmt: skip

    def _on_hello(self, now_us: int, sender: PeerId, hello: TreeHello) -> Effects:
        is_new = not self.tree.is_up(sender)
        was_leader = self.tree.is_leader
        stir = self.tree.on_hello(now_us, sender, hello)
        if was_leader and not self.tree.is_leader:
            self._is_known_leader = False
        effects: list[Effect] = []
        if is_new:
            effects += [Send(sender, self._hello_to(sender)), *self.versions.on_up(now_us, sender)]
        # A leader that has lost its state must not use a number again.
        self.selection.hear_of(max(hello.current, *(s.version for s in hello.states), 0))
        current = self.versions.current
        effects += self.versions.on_hello(now_us, sender, hello)
        if self.versions.current != current and stir is Stir.NONE:
            stir = Stir.SOON
        return [*effects, *self._stir(stir)]

    def _stir(self, stir: Stir) -> Effects:
        if stir is Stir.SOON and not self._is_soon:
            self._is_soon = True
            return [SetTimer("soon", self.random.randrange(int(_SOON * self._period_us)))]
        if stir is Stir.WAIT and not self._is_waiting:
            self._is_waiting = True
            return [SetTimer("late", self._period_us // 2)]
        return []

    def _set_neighbours(self, now_us: int, delays_us: Mapping[PeerId, int]) -> Effects:
        effects: list[Effect] = []
        added, removed = self.tree.set_neighbours(delays_us)
        for peer in removed:
            effects += self._on_down(now_us, peer)
            self.tree.remove(peer)
        return [*effects, *(Send(peer, self._hello_to(peer)) for peer in added)]

    def _on_down(self, now_us: int, peer: PeerId) -> Effects:
        self.tree.lose(peer)
        return [*self.versions.on_down(now_us, peer), *self.selection.on_down(now_us, peer)]


class SpanningTreeRouting(CoreRouting):
    """A baseline: the minimum-delay spanning tree; interests do not count.

    The leader computes it. `cores` is the number of peers that may become root, one after the
    other, and does not change the tree. Later changes are handled as with cores.
    """

    Settings = SpanningTreeSettings
