"""The selection of cores over T_C (section 5.1 of Tariq, Koldehofe and Rothermel, DEBS 2013).

The leader sends a call down T_C. Each peer sends its interests to its neighbours, so that both ends
of a link know its weight. Then it votes, or reports its links, as the strategy requires. Votes are
added up on their way to the leader, with a constant number of candidates at each level. Links are
forwarded in as many messages as needed. The leader decides, and sends the list of cores down T_C.

The paper gathers all shortest paths with the algorithm of Kanchi and Vineyard, in N messages of
size N^2. A datagram holds 1,472 bytes, so here links are gathered, and the leader computes the
paths.

`mst` is a baseline without cores: the leader computes the minimum-delay spanning tree of all links,
and sends each peer its parent.

The leader numbers versions. The low half of the number contains the low half of its address, so
that two leaders of a partition create different versions; the higher one wins.
"""

from random import Random
from typing import Any

from agents.protocol import Effect, Effects, PeerId, Record, Send, SetTimer
from agents.routing.cores.link_weights import LinkWeights
from agents.routing.cores.messages import (
    Ballot,
    CoreList,
    Interest,
    LinkReport,
    ParentList,
    RecalculationRequest,
    SelectionCall,
)
from agents.routing.cores.settings import MST, RoutingSettings
from agents.routing.cores.spanning_tree import SpanningTree
from agents.routing.cores.strategies import BY_VOTES, most_voted, vote
from agents.routing.cores.tree_versions import TreeVersions
from agents.routing.cores.votes import SelectionRound, split_links

_INTEREST_WAIT_US = 3_000_000  # for those of the last neighbour to tell them
_LEVEL_MS = 1_000  # what a child has less time than its parent
_LEVELS = 20
_HIGHEST_VERSION = _HEAVIEST_US = 0xFFFF_FFFF
_KEPT_FOR_EACH_CORE = 4  # candidates at each level of T_C


class Selection:
    """The part of one peer in selections."""

    def __init__(
        self,
        tree: SpanningTree,
        weights: LinkWeights,
        versions: TreeVersions,
        settings: RoutingSettings,
        chance: Random,
    ) -> None:
        self._me = tree.me
        self._tree = tree
        self._weights = weights
        self._versions = versions
        self._random = chance
        self._strategy = settings.strategy
        self._sim_score = settings.sim_score
        self._cores = settings.cores
        # All peers are called at once. If all sent their interests at once, the messages would
        # collide on the links.
        self._spread_us = settings.period_us // 2
        self._first_us = int(settings.first_selection_s * 1e6)
        self._recalculate_us = int(settings.recalculate_s * 1e6)
        self._numbers = self._cores if settings.core_paths == "apsp" else 1  # of a family
        self._round: SelectionRound | None = None
        self._called = 0  # the newest version for which a selection is known to have begun
        self._tired_of = 0  # the newest version that a peer wants to replace
        self._told_wish: PeerId | None = None  # the parent to which that was sent

    def is_due(self, now_us: int, patience_us: int) -> bool:
        """Whether the leader should begin a selection.

        It should if no selection was finished, or not the last one because its leader failed; if
        the last one is old; if no core is left; or if a peer requested it.
        """
        newest = self._versions.newest
        is_running = self._round is not None and not self._round.is_reported
        if is_running or now_us < self._first_us or not self._tree.up():
            return False
        if newest == 0 or self._called > newest or self._tired_of == newest:
            return True
        age_us = now_us - self._versions.trees[newest].known_us
        is_old = 0 < self._recalculate_us <= age_us
        return is_old or self._versions.is_headless(now_us, patience_us)

    def call(self, now_us: int) -> Effects:
        """Begin a selection as the leader."""
        number = (max(self._called, self._versions.newest) >> 16) + self._numbers
        version = number << 16 | self._me & 0xFFFF
        if version > _HIGHEST_VERSION:
            return []
        return self._take_part(now_us, version, None, _LEVELS * _LEVEL_MS)

    def hear_of(self, version: int) -> None:
        """Record the number of a version, so that it is not used again."""
        self._called = max(self._called, version)

    def tire(self, version: int) -> Effects:
        """Request the replacement of a version, from the leader or as the leader."""
        if version > self._tired_of:
            self._tired_of, self._told_wish = version, None
        return self.pass_wish_on()

    def pass_wish_on(self) -> Effects:
        """Send an open request to the parent, unless this parent has it already."""
        parent = self._tree.parent
        is_open = 0 < self._versions.newest <= self._tired_of
        if not is_open or self._tree.is_leader or parent in (None, self._told_wish):
            return []
        self._told_wish = parent
        return [Send(parent, RecalculationRequest(self._tired_of), reliable=True)]

    def forget_told(self, parent: PeerId) -> None:
        """A parent does not have the request, or not any more."""
        if self._told_wish == parent:
            self._told_wish = None

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle a message of a selection."""
        match message:
            case SelectionCall(version, wait_ms):
                return self._on_call(now_us, sender, version, wait_ms)
            case Interest():
                return self._on_interest(now_us, sender, message)
            case Ballot() | LinkReport():
                return self._on_report(now_us, sender, message)
            case CoreList():
                return self._on_core_list(now_us, sender, message)
            case ParentList():
                return self._on_parent_list(now_us, message)
            case RecalculationRequest(version):
                return self.tire(version)
        return []

    def on_down(self, now_us: int, peer: PeerId) -> Effects:
        """Stop waiting for a neighbour that is gone; if it returns, it has no request."""
        self.forget_told(peer)
        if self._round is None or self._round.is_reported:
            return []
        self._round.lose(peer)
        return self._go_on(now_us)

    def on_timer(self, now_us: int, what: str, version: int) -> Effects:
        """Send own interests, or stop waiting for interests or reports."""
        if what == "tell":
            up = self._tree.up()
            return [told for peer in up for told in self._versions.tell_interest(version, peer)]
        gathering = self._round
        if gathering is None or gathering.version != version or gathering.is_reported:
            return []
        gathering.without_interest.clear()
        return self._go_on(now_us) if what == "interest" else self._report(now_us, gathering)

    # A round

    def _on_call(self, now_us: int, sender: PeerId, version: int, wait_ms: int) -> Effects:
        gathering = self._round
        is_running = gathering is not None and gathering.version == version
        if is_running and gathering is not None and gathering.caller != sender:
            # Another peer has called this one before, and gets its report.
            return self._send_up(SelectionRound(version, sender, ()), sender)
        if is_running or version <= max(self._versions.newest, self._called_before()):
            return []
        return self._take_part(now_us, version, sender, wait_ms)

    def _called_before(self) -> int:
        return self._round.version if self._round is not None else 0

    def _take_part(
        self, now_us: int, version: int, caller: PeerId | None, wait_ms: int
    ) -> list[Effect]:
        """Call the children, and send neighbours this peer's interests."""
        children = [child for child in self._tree.children() if child != caller]
        self._round = SelectionRound(version, caller, children)
        self.hear_of(version)
        wait_ms = max(_LEVEL_MS, min(wait_ms, _LEVELS * _LEVEL_MS))
        call = SelectionCall(version, max(_LEVEL_MS, wait_ms - _LEVEL_MS))
        effects: list[Effect] = [Send(child, call, reliable=True) for child in children]
        effects.append(SetTimer(("report", version), wait_ms * 1_000))
        effects += self._tell_interests(self._round)
        return [*effects, *self._go_on(now_us)]

    def _tell_interests(self, gathering: SelectionRound) -> Effects:
        if self._weights.are_delays_only:
            return []
        version = gathering.version
        gathering.without_interest = {*self._tree.up()} - self._weights.known(version)
        return [
            SetTimer(("tell", version), self._random.randrange(self._spread_us)),
            SetTimer(("interest", version), self._spread_us + _INTEREST_WAIT_US),
        ]

    def _on_interest(self, now_us: int, sender: PeerId, interest: Interest) -> Effects:
        version = interest.version
        if version < self._versions.current:
            return []
        self._weights.on_interest(version, sender, interest.window)
        effects = self._versions.on_weight(now_us, version)
        if self._round is None or self._round.version != version or self._round.is_reported:
            return effects
        self._round.without_interest.discard(sender)
        return [*effects, *self._go_on(now_us)]

    def _on_report(self, now_us: int, sender: PeerId, message: Ballot | LinkReport) -> Effects:
        gathering = self._round
        if gathering is None or gathering.is_reported or message.version != gathering.version:
            return []
        if isinstance(message, Ballot):
            gathering.on_ballot(sender, message)
        else:
            gathering.on_links(sender, message)
        return self._go_on(now_us)

    def _go_on(self, now_us: int) -> Effects:
        """Vote if possible, and report if nothing more is awaited."""
        gathering = self._round
        assert gathering is not None
        if not gathering.without_interest:
            self._vote(gathering)
        return self._report(now_us, gathering) if gathering.is_complete else []

    def _vote(self, gathering: SelectionRound) -> None:
        """Add this peer's own vote or links."""
        if gathering.is_voted:
            return
        links = {p: self._weights.link(gathering.version, p) for p in self._tree.up()}
        if self._strategy in BY_VOTES:
            own = vote(self._strategy, self._me, links, self._sim_score, self._random)
            gathering.add_vote(own)
        else:
            weights_us = {p: min(link.weight_us, _HEAVIEST_US) for p, link in links.items()}
            gathering.add_links(split_links(self._me, weights_us))

    def _report(self, now_us: int, gathering: SelectionRound) -> Effects:
        """Send what was gathered to the caller; at the leader, decide."""
        self._vote(gathering)
        gathering.is_reported = True
        if gathering.caller is None:
            return self._decide(now_us, gathering)
        return self._send_up(gathering, gathering.caller)

    def _send_up(self, gathering: SelectionRound, caller: PeerId) -> Effects:
        if self._strategy in BY_VOTES:
            ballot = gathering.ballot(_KEPT_FOR_EACH_CORE * self._cores)
            return [Send(caller, ballot, reliable=True)]
        return [Send(caller, report, reliable=True) for report in gathering.reports()]

    # The result

    def _decide(self, now_us: int, gathering: SelectionRound) -> Effects:
        """Choose the cores from what was gathered, and announce them."""
        cores, parents = self._choose(gathering)
        effects: list[Effect] = [_selected(gathering.version, cores)]
        effects += self._on_core_list(now_us, None, CoreList(gathering.version, tuple(cores)))
        return [*effects, *self._spread_parents(now_us, gathering, parents)]

    def _choose(self, gathering: SelectionRound) -> tuple[list[PeerId], dict[PeerId, PeerId]]:
        """The cores; for a tree chosen by the leader, also the parent of each peer."""
        if self._strategy in BY_VOTES:
            return most_voted(gathering.votes, self._cores), {}
        # Only a leader needs it, and its import is large.
        from agents.routing.cores.weighted_graph import WeightedGraph

        graph = WeightedGraph(gathering.links)
        if self._strategy != MST:
            return graph.select(self._strategy, self._cores), {}
        followers = [peer for peer in graph.peers if peer != self._me][: self._cores - 1]
        return [self._me, *followers], graph.spanning_parents(self._me)

    def _on_core_list(self, now_us: int, sender: PeerId | None, cores: CoreList) -> Effects:
        self.hear_of(cores.version)
        return self._versions.install(now_us, cores, sender)

    def _on_parent_list(self, now_us: int, told: ParentList) -> Effects:
        if self._round is None or self._round.version != told.version:
            return []
        parents = dict(zip(told.peers, told.parents, strict=False))
        return self._spread_parents(now_us, self._round, parents)

    def _spread_parents(
        self, now_us: int, gathering: SelectionRound, parents: dict[PeerId, PeerId]
    ) -> Effects:
        """Take this peer's own parent, and forward the others down the tree."""
        effects: list[Effect] = [
            Send(child, part, reliable=True) for child, part in gathering.parent_lists(parents)
        ]
        own = parents.get(self._me)
        if own is not None:
            effects += self._versions.assign(now_us, gathering.version, own)
        return effects


def _selected(version: int, cores: list[PeerId]) -> Record:
    named = " ".join(map(str, cores))
    return Record("cores_selected", {"version": version, "cores": named, "root": cores[0]})
