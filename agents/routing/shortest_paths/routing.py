"""OPT, the baseline of Tariq, Koldehofe and Rothermel (DEBS 2013, section 6): a separate routing
tree for the events of each publisher, made of the shortest paths from it over the overlay.

Every peer learns all links (`link_state`) and computes the same trees from them (`trees`). The
version of a publisher's tree is the publisher's address, all versions are of one family, and none
is dropped: when the overlay changes, peers announce other links in the same versions, each when it
learns of the change. Until all peers know it, a link may exist at one end only, or there may be a
cycle; the layer above tolerates both. The tree of a peer that is gone becomes that of another peer,
for the events that it published.

This baseline does not scale, as the paper says: each of n peers has n trees, and the layer above
sends the subscriptions of all peers along each. A change of one link causes a message on every link
and n³ operations at every peer: about a millisecond for 64 peers, some seconds for 1,024.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from agents.protocol import (
    Announce,
    Effect,
    Effects,
    Neighbours,
    PeerId,
    Protocol,
    Send,
    SetTimer,
    Surroundings,
)
from agents.routing.cores.messages import Farewell
from agents.routing.shortest_paths.link_state import (
    MESSAGES,
    Edge,
    LinkHello,
    LinkState,
    LinkStates,
    LinkSummary,
    make_state,
)
from agents.routing.shortest_paths.trees import links_in_trees
from agents.routing.tree import CurrentTree, Hold, Tree, tell_links

_FAMILY = 1
_SMALL_CHANGE = 0.1  # of a delay; smaller changes are not announced
_DIFFERENT_HELLOS = 2  # consecutive different digests before a summary is sent


@dataclass(slots=True)
class _Neighbour:
    """The other end of an overlay link; it is up once it has sent a hello."""

    delay_us: int
    heard_us: int = 0
    is_up: bool = False
    different: int = 0  # consecutive hellos with a different digest


class ShortestPathRouting(Protocol):
    """OPT, a baseline: a tree of shortest paths from every publisher."""

    class Settings(Struct, frozen=True, kw_only=True):
        """Times of announcements, and of neighbours that are considered dead."""

        period_us: Annotated[
            int, Meta(ge=10_000, le=10**9, description="time between two hellos")
        ] = 2_000_000
        missed_hellos: Annotated[
            int,
            Meta(
                ge=2,
                le=1_000,
                description="missed hellos after which a neighbour is considered dead",
            ),
        ] = 5
        first_trees_s: Annotated[
            float, Meta(ge=0, description="time of the first announcement of links")
        ] = 20.0

    messages = (*MESSAGES, Farewell)
    offers = frozenset({"trees"})
    needs = "mutual neighbours"
    settings: Settings

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self.known = LinkStates()
        self._neighbours: dict[PeerId, _Neighbour] = {}
        self._links: dict[PeerId, tuple[PeerId, ...]] = {}  # by version, as announced
        self._built_us: dict[PeerId, int] = {}
        self._made_of: tuple[dict[Edge, int], frozenset[PeerId]] = {}, frozenset()
        self._former = -1  # the highest number before a restart
        self._holds = {"tell": Hold(), "trees": Hold()}
        self._period_us = self.settings.period_us
        self._patience_us = self._period_us * self.settings.missed_hellos
        self._first_us = int(self.settings.first_trees_s * 1e6)

    # Handlers

    def on_start(self, now_us: int) -> Effects:
        """Announce the tree of this peer, which has no links yet."""
        wait_us = max(0, self._first_us - now_us)
        timers = [SetTimer("tick", self.random.randrange(self._period_us))]
        return [
            *timers, SetTimer("first", wait_us), *self._begin_tree(now_us, self.me),
            Announce(CurrentTree(self.me)),
        ]  # fmt: skip

    def on_stop(self, now_us: int) -> Effects:
        """Tell the neighbours that this peer leaves."""
        return [Send(peer, Farewell()) for peer in self._up()]

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Set the overlay's links."""
        if not isinstance(content, Neighbours):
            return []
        before, self._neighbours = self._neighbours, {}
        for peer, delay_us in content.delays_us.items():
            at = self._neighbours[peer] = before.get(peer, _Neighbour(delay_us))
            at.delay_us = delay_us
        added = sorted(self._neighbours.keys() - before.keys())
        return [*(Send(peer, self._hello()) for peer in added), *self._tell_soon(now_us)]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle a neighbour's message; a neighbour that the overlay has not announced yet sends
        hellos.
        """
        at = self._neighbours.get(sender)
        if at is None:
            return []
        at.heard_us = now_us
        match message:
            case LinkHello(digest):
                return self._on_hello(now_us, sender, at, digest)
            case LinkState():
                return self._on_state(now_us, sender, message)
            case LinkSummary():
                newer = self.known.newer_than(message)
                return [Send(sender, state, reliable=True) for state in newer]
            case Farewell():
                return self._on_down(now_us, [sender])
        return []

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Continue what waited for a timer."""
        match name:
            case "tick":
                return self._tick(now_us)
            case "first":
                return self._tell_soon(now_us)
            case "tell":
                self._holds["tell"].end(now_us)
                return self._tell(now_us)
            case "trees":
                self._holds["trees"].end(now_us)
                return self._make_trees(now_us)
        return []

    # Neighbours

    def _tick(self, now_us: int) -> Effects:
        """Once in a period: check the neighbours, and send hellos."""
        silent = [
            peer
            for peer in self._up()
            if now_us - self._neighbours[peer].heard_us > self._patience_us
        ]
        hellos = [Send(peer, self._hello()) for peer in self._neighbours]
        return [SetTimer("tick", self._period_us), *self._on_down(now_us, silent), *hellos]

    def _on_hello(self, now_us: int, sender: PeerId, at: _Neighbour, digest: int) -> Effects:
        is_new = not at.is_up
        at.is_up = True
        at.different = 0 if digest == self.known.digest else at.different + 1
        effects: list[Effect] = []
        if is_new:
            effects += [Send(sender, self._hello()), *self._tell_soon(now_us)]
        if at.different and (is_new or at.different >= _DIFFERENT_HELLOS):
            at.different = 0
            effects += [Send(sender, summary) for summary in self.known.summaries()]
        return effects

    def _on_down(self, now_us: int, peers: list[PeerId]) -> Effects:
        for peer in peers:
            self._neighbours[peer].is_up = False
        return self._tell_soon(now_us) if peers else []

    def _up(self) -> list[PeerId]:
        return sorted(peer for peer, at in self._neighbours.items() if at.is_up)

    def _hello(self) -> LinkHello:
        return LinkHello(self.known.digest)

    # Links of all peers

    def _tell(self, now_us: int) -> Effects:
        """State the own links, if they differ from the last statement."""
        delays_us = {peer: self._neighbours[peer].delay_us for peer in self._up()}
        before = self.known.states.get(self.me)
        latest = max(self.known.sequence_of(self.me), self._former)
        state = make_state(self.me, max(latest + 1, now_us // 1_000) & 0xFFFFFFFF, delays_us)
        is_told = before is not None and before.sequence > self._former
        if before is not None and is_told and not _is_worth_telling(before, state):
            return []
        return self._keep_and_flood(now_us, self.me, state)

    def _on_state(self, now_us: int, sender: PeerId, state: LinkState) -> Effects:
        known = self.known.sequence_of(state.origin)
        if state.sequence < known:
            return [Send(sender, self.known.states[state.origin], reliable=True)]
        if state.origin != self.me or state.sequence == known:
            return self._keep_and_flood(now_us, sender, state)
        self._former = max(self._former, state.sequence)
        return self._tell_soon(now_us)

    def _keep_and_flood(self, now_us: int, sender: PeerId, state: LinkState) -> Effects:
        if not self.known.take(state):
            return []
        floods = [Send(peer, state, reliable=True) for peer in self._up() if peer != sender]
        begun = self._begin_tree(now_us, state.origin)
        return [*floods, *begun, *self._hold(now_us, "trees")]

    def _tell_soon(self, now_us: int) -> Effects:
        return self._hold(now_us, "tell") if now_us >= self._first_us else []

    def _hold(self, now_us: int, what: str) -> Effects:
        hold = self._holds[what]
        return [] if hold.is_set else [SetTimer(what, hold.set(now_us))]

    # Trees

    def _begin_tree(self, now_us: int, root: PeerId) -> Effects:
        if root in self._links:
            return []
        self._links[root], self._built_us[root] = (), now_us
        return [Announce(Tree(root, now_us, (), family=_FAMILY, publisher=root))]

    def _make_trees(self, now_us: int) -> Effects:
        """Compute all trees, and announce those in which this peer has other links now."""
        made_of = self.known.edges(), frozenset(self.known.states)
        if made_of == self._made_of:
            return []
        self._made_of = made_of
        edges, roots = made_of
        effects: list[Effect] = []
        for root, links in links_in_trees(self.me, roots, edges).items():
            effects += self._tell_links(root, links)
        return effects

    def _tell_links(self, root: PeerId, links: tuple[PeerId, ...]) -> Effects:
        before = self._links[root]
        if links == before:
            return []
        self._links[root] = links
        tree = Tree(root, self._built_us[root], links, family=_FAMILY, publisher=root)
        return tell_links(tree, before)


def _is_worth_telling(before: LinkState, after: LinkState) -> bool:
    """Whether links were added or removed, or a delay has changed noticeably."""
    told_us = {link.peer: link.delay_us for link in before.links}
    if told_us.keys() != {link.peer for link in after.links}:
        return True
    return any(
        abs(link.delay_us - told_us[link.peer]) > _SMALL_CHANGE * told_us[link.peer]
        for link in after.links
    )
