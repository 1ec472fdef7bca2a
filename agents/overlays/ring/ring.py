"""One ring, of one epoch, as a peer sees it (Stoica et al., "Chord", SIGCOMM 2001).

A peer looks up its own position through a contact, and so finds its successor; both inform each
other, and a peer that comes between two peers is asked by them whether it is alive. Neighbours
exchange their lists in every period, and at once after a change. Fingers are looked up, too: all of
them while anything changes, one after another later.

We depart from Chord in these points:

- A peer without contacts is a separate ring, so joining and repairing a partition are the same:
  every peer looks up its own position through a remembered peer now and then.
- A peer enters the first place of a list only after it has sent a message itself. So tables do not
  change back and forth because of failures that others have not noticed yet.
- Lookups are recursive and may use all peers that are known; routes to keys use fingers alone.
"""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from agents.announcements import Place, RingView
from agents.overlays.ring.circle import Circle
from agents.overlays.ring.fingers import FingerRule, Fingers
from agents.overlays.ring.memory import Memory
from agents.overlays.ring.messages import Found, Leaving, Lookup, Member, Stabilise, Surrounding
from agents.overlays.ring.neighbourhood import Neighbourhood
from agents.overlays.ring.settings import RingUpkeep
from agents.protocol import Effect, PeerId, Send, SetTimer

_MOST_BEFORE = 4
_WATCHED_BEFORE = 2
_WATCHED = 4  # successors that are watched, because each may become the first one
_MOST_HOPS = 255
_PUSH_DELAY_US = 50_000
_RESTLESS_PERIODS = 5  # periods in which all fingers are looked up after a change
_CYCLE = 8  # periods in which all fingers are looked up once if nothing changes
# Periods without changes, after which every peer has looked for this one.
SETTLED_PERIODS = _CYCLE + 2
_OWN = 255  # the target of a lookup: the finger of a phase, or this peer's own place

RING_MESSAGES = (Stabilise, Lookup, Found, Leaving)


class Ring:
    """The neighbours and fingers of a peer, kept by messages."""

    def __init__(
        self,
        me: Place,
        circle: Circle,
        rule: FingerRule,
        memory: Memory,
        settings: RingUpkeep,
        epoch: int = 0,
    ) -> None:
        self.me = me
        self.circle = circle
        self.epoch = epoch
        self.near = Neighbourhood(me, circle, _MOST_BEFORE, settings.successors)
        self.fingers = Fingers(me, circle, rule)
        self._memory = memory
        self._period_us = int(settings.stabilise_s * 1e6)
        self._check_us = int(settings.check_s * 1e6)
        self._token = 0
        self._awaited: dict[int, int] = {}  # the last token of each target
        self._told: dict[PeerId, object] = {}
        self._asked: set[PeerId] = set()  # peers asked in this period
        self._is_push_due = False
        self._changed_us = self._checked_us = 0
        self.version = 0  # of the tables
        self._seen: object = None
        # The last message of each neighbour, and the version of the tables after it.
        self._heard: dict[PeerId, tuple[int, Surrounding]] = {}
        self._next_phase = 0
        self._watched: tuple[frozenset[PeerId], frozenset[PeerId]] = (frozenset(), frozenset())
        self._watched_at: object = None  # versions of the tables

    @property
    def view(self) -> RingView:
        """The view of the ring for the layers above."""
        return RingView(
            self.me.position,
            self.circle.modulus,
            self.near.predecessor,
            tuple(self.near.successors),
            tuple(sorted(self._links(), key=self.near.after)),
            self.epoch,
            self.circle.spacing,
        )

    @property
    def watched(self) -> frozenset[PeerId]:
        """The peers whose failures this ring must know."""
        return self._watch_lists()[1]

    @property
    def watched_near(self) -> frozenset[PeerId]:
        """The watched neighbours; a failed finger is replaced when it is looked up again."""
        return self._watch_lists()[0]

    def _watch_lists(self) -> tuple[frozenset[PeerId], frozenset[PeerId]]:
        versions = (self.near.version, self.fingers.version)
        if versions != self._watched_at:
            near = (*self.near.predecessors[:_WATCHED_BEFORE], *self.near.successors[:_WATCHED])
            peers = frozenset(place.peer for place in near)
            fingers = frozenset(place.peer for place in self.fingers.places)
            self._watched_at, self._watched = versions, (peers, peers | fingers)
        return self._watched

    def next_hop(self, position: int) -> PeerId | None:
        """The farthest finger that does not pass a position, else its root; None for this peer."""
        if self.near.owns(position) or self.near.successor is None:
            return None
        limit = self.circle.distance(self.me.position, position)
        before = [place for place in self._links() if self.near.after(place) <= limit]
        return max(before, key=self.near.after, default=self.near.successor).peer

    def start(self, now_us: int, first_tick_us: int) -> list[Effect]:
        """Join through all known peers."""
        self._changed_us = self._checked_us = now_us
        effects: list[Effect] = [SetTimer(self._timer("tick"), first_tick_us)]
        return [*effects, *self._check(self._memory.all())]

    def seed(
        self,
        predecessors: Sequence[Place],
        successors: Sequence[Place],
        fingers: Iterable[tuple[int, Place]],
        is_closed: bool,
    ) -> None:
        """Begin with planned tables."""
        self.near.seed(predecessors, successors, is_closed)
        for index, place in fingers:
            if index in self._far_phases():
                self.fingers.settle(index, place)

    def is_quiet(self, now_us: int, periods: int) -> bool:
        """Whether the tables have not changed for some periods."""
        return now_us - self._changed_us >= periods * self._period_us

    def leave(self) -> list[Effect]:
        """Send the neighbours on both sides the other ones."""
        ends = {place.peer for place in self._ends()}
        return [Send(peer, Leaving(self.epoch, self._surrounding())) for peer in sorted(ends)]

    def on_timer(self, now_us: int, name: Hashable) -> list[Effect]:
        """Do the work of a period, or send a change to the neighbours."""
        if name == self._timer("push"):
            self._is_push_due = False
            effects = self._push()
        else:
            effects = [SetTimer(self._timer("tick"), self._period_us), *self._work(now_us)]
        return self._settle(now_us, effects)

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> list[Effect]:
        """Take part in the ring."""
        if type(message) is Lookup:
            return self._on_lookup(now_us, message)
        place = Place(sender, message.own.position)
        if self.near.after(place) == 0 or place.position >= self.circle.modulus:
            return []  # no two peers have the same position
        if type(message) is Leaving:
            return self._on_leaving(now_us, message, sender)
        effects = self._get_to_know(now_us, place, message.own)
        if type(message) is Found:
            effects += self._on_found(message.token, place)
        elif message.is_question:
            effects.append(self._tell(sender, is_question=False))
        return self._settle(now_us, effects)

    def lose(self, now_us: int, peer: PeerId) -> list[Effect]:
        """Remove a peer that is dead or unreachable."""
        self._memory.lose(now_us, peer)
        return self._settle(now_us, self._drop(peer))

    def restart(self, now_us: int, peer: PeerId) -> list[Effect]:
        """Ask a restarted peer to return to its place."""
        effects = self._drop(peer)
        self._asked.discard(peer)
        return self._settle(now_us, [*effects, *self._ask([peer])])

    def seek(self, now_us: int, phases: Iterable[int]) -> list[Effect]:
        """Look for the fingers of phases where the rule has changed."""
        far = self._far_phases()
        return self._settle(now_us, self._refresh(index for index in phases if index in far))

    def _on_lookup(self, now_us: int, lookup: Lookup) -> list[Effect]:
        """Answer as the root, or forward the lookup."""
        position = lookup.position
        if position >= self.circle.modulus or lookup.epoch != self.epoch:
            return []
        if lookup.origin == self.me.peer:
            return self._settle(now_us, self._on_found(lookup.token, None))
        successor = self.near.successor
        if lookup.is_last or successor is None or self.near.owns(position):
            return [Send(lookup.origin, Found(self.epoch, lookup.token, self._surrounding()))]
        return self._pass_on(lookup, successor)

    def _pass_on(self, lookup: Lookup, successor: Place) -> list[Effect]:
        if lookup.hops >= _MOST_HOPS:
            return []
        limit = self.circle.distance(self.me.position, lookup.position)
        known = (*self.near.predecessors, *self.near.successors, *self.fingers.places)
        before = [place for place in known if self.near.after(place) < limit]
        to = max(before, key=self.near.after, default=successor)
        moved = Lookup(
            self.epoch, lookup.position, lookup.origin, lookup.token, not before, lookup.hops + 1
        )
        return [Send(to.peer, moved)]

    def _on_found(self, token: int, root: Place | None) -> list[Effect]:
        """Handle the answer to a lookup; None stands for this peer as the root."""
        what = token & 0xFF
        if self._awaited.get(what) != token:
            return []
        del self._awaited[what]
        if what == _OWN or what not in self._far_phases():
            return []
        return self._look_up(what) if self.fingers.settle(what, root) else []

    def _on_leaving(self, now_us: int, message: Leaving, sender: PeerId) -> list[Effect]:
        """Close the gap at once, by asking the peers that the leaving peer named."""
        effects = self.lose(now_us, sender)
        named = (*_places(message.own.predecessors), *_places(message.own.successors))
        return self._settle(now_us, [*effects, *self._meet(now_us, named)])

    def _get_to_know(self, now_us: int, place: Place, own: Surrounding) -> list[Effect]:
        """Handle the message of a peer about itself and its neighbours."""
        if self._heard.get(place.peer) == (self.version, own):
            return []
        before = self._believed(now_us, own.predecessors)
        after = self._believed(now_us, own.successors)
        self._memory.hear(place.peer)
        self.near.take(place, before, after)
        strangers = self.near.strangers((*before, *after))
        if strangers:  # the question may be lost, so a repeated message must count again
            self._heard.pop(place.peer, None)
        else:
            self._note_heard(now_us, place, own)
        return self._ask(one.peer for one in strangers)

    def _note_heard(self, now_us: int, place: Place, own: Surrounding) -> None:
        """Store the message of a neighbour, which is usually the same as before."""
        is_neighbour = place in self._ends()
        if is_neighbour and not self._memory.has_doubts(now_us) and not self._is_changed:
            self._heard[place.peer] = self.version, own
        else:
            self._heard.pop(place.peer, None)

    @property
    def _is_changed(self) -> bool:
        return self.version != self.near.version + self.fingers.version

    def _meet(self, now_us: int, places: Iterable[Place]) -> list[Effect]:
        """Ask peers that others name and that would be neighbours whether they are alive."""
        believed = [one for one in places if not self._memory.is_doubtful(now_us, one.peer)]
        return self._ask(place.peer for place in self.near.strangers(believed))

    def _believed(self, now_us: int, members: Sequence[Member]) -> list[Place]:
        return [
            place
            for place in _places(members)
            if place.position < self.circle.modulus
            and not self._memory.is_doubtful(now_us, place.peer)
        ]

    def _drop(self, peer: PeerId) -> list[Effect]:
        """Remove a peer from all tables, and look for replacements."""
        first = self.near.successor
        self.near.lose(peer, self.fingers.places)
        self._told.pop(peer, None)
        effects = self._refresh(self.fingers.lose(peer))
        if self.near.successor is not None and self.near.successor != first:
            effects += self._ask([self.near.successor.peer])
        return effects

    def _work(self, now_us: int) -> list[Effect]:
        """The work of a period: exchange lists with the successor, check own place and fingers."""
        self._asked.clear()
        successor = self.near.successor
        effects = self._ask([successor.peer]) if successor is not None else []
        is_restless = now_us - self._changed_us < _RESTLESS_PERIODS * self._period_us
        if is_restless or successor is None or now_us - self._checked_us >= self._check_us:
            self._checked_us = now_us
            effects += self._check(self._memory.all() if successor is None else self._memory.draw())
        return [*effects, *self._refresh(self._due_phases(is_restless))]

    def _due_phases(self, is_restless: bool) -> list[int]:
        """The phases to look up in this period, including those of lost lookups."""
        phases = self._far_phases()
        if is_restless or not phases:
            return phases
        due = self._awaited.keys() & phases
        for _ in range(-(-len(phases) // _CYCLE)):
            self._next_phase = (self._next_phase + 1) % len(phases)
            due.add(phases[self._next_phase])
        return sorted(due)

    def _check(self, ways: Iterable[PeerId]) -> list[Effect]:
        """Look up the successor of the own position through some peers."""
        behind = (self.me.position + 1) % self.circle.modulus
        token = self._new_token(_OWN)
        lookup = Lookup(self.epoch, behind, self.me.peer, token, False, 0)
        return [Send(peer, lookup) for peer in ways if peer != self.me.peer]

    def _refresh(self, phases: Iterable[int]) -> list[Effect]:
        """Look for the fingers of some phases again."""
        effects: list[Effect] = []
        for index in phases:
            self.fingers.begin(index)
            effects += self._look_up(index)
        return effects

    def _look_up(self, index: int) -> list[Effect]:
        """Find the finger of a phase: locally if all candidates are known, else by a lookup."""
        is_more = True
        while is_more:
            position = self.fingers.position(index)
            is_known, root = self.near.find_root(position)
            if not is_known:
                token = self._new_token(index)
                start = Lookup(self.epoch, position, self.me.peer, token, False, 0)
                successor = self.near.successor
                return [] if successor is None else self._pass_on(start, successor)
            is_more = self.fingers.settle(index, root)
        return []

    def _far_phases(self) -> list[int]:
        return self.fingers.phases_beyond(self.near.successor)

    def _new_token(self, what: int) -> int:
        self._token = (self._token + 1) & 0xFFFFFF
        token = self._awaited[what] = self._token << 8 | what
        return token

    def _ask(self, peers: Iterable[PeerId]) -> list[Effect]:
        """Send peers the own lists, and ask for theirs; each once in a period."""
        new = [peer for peer in peers if peer not in self._asked and peer != self.me.peer]
        self._asked.update(new)
        return [self._tell(peer, is_question=True) for peer in new]

    def _tell(self, peer: PeerId, is_question: bool) -> Send:
        self._told[peer] = self._news_for(peer)
        return Send(peer, Stabilise(self.epoch, is_question, self._surrounding()))

    def _push(self) -> list[Effect]:
        """Send both neighbours the changes that concern them."""
        ends = {place.peer for place in self._ends()}
        due = [peer for peer in sorted(ends) if self._told.get(peer) != self._news_for(peer)]
        return [self._tell(peer, is_question=False) for peer in due]

    def _news_for(self, peer: PeerId) -> object:
        """The list that a neighbour uses: successors for a predecessor, otherwise predecessors."""
        near = self.near
        is_before = near.predecessor is not None and near.predecessor.peer == peer
        is_after = near.successor is not None and near.successor.peer == peer
        return (
            tuple(near.successors) if is_before else (),
            tuple(near.predecessors) if is_after else (),
            near.predecessor,
        )

    def _ends(self) -> list[Place]:
        return [*self.near.predecessors[:1], *self.near.successors[:1]]

    def _surrounding(self) -> Surrounding:
        return Surrounding(
            self.me.position, _members(self.near.predecessors), _members(self.near.successors)
        )

    def _links(self) -> list[Place]:
        """The peers that messages are routed to."""
        return list(dict.fromkeys((*self.near.successors[:1], *self.fingers.places)))

    def _settle(self, now_us: int, effects: list[Effect]) -> list[Effect]:
        """Handle a change: update fingers that follow from the lists, and notify the neighbours."""
        near = (self.near.version, self.near.is_closed)
        if near != self._seen:
            self._seen = near
            self._resolve(self._far_phases())
        if self._is_changed:
            self.version, self._changed_us = self.near.version + self.fingers.version, now_us
            ends = {place.peer for place in self._ends()}
            self._told = {peer: self._told.get(peer) for peer in sorted(ends)}
            self._heard = {peer: one for peer, one in self._heard.items() if peer in ends}
            if not self._is_push_due:
                self._is_push_due = True
                effects.append(SetTimer(self._timer("push"), _PUSH_DELAY_US))
        return effects

    def _resolve(self, phases: Sequence[int]) -> None:
        """Set the fingers whose positions have a neighbour as their root."""
        self.fingers.keep(phases)
        for index in phases:
            self.fingers.begin(index)
            is_more = True
            while is_more:
                is_known, root = self.near.find_root(self.fingers.position(index))
                is_more = is_known and self.fingers.settle(index, root)

    def _timer(self, what: str) -> Hashable:
        return what, self.epoch


def _places(members: Iterable[Member]) -> list[Place]:
    return [Place(member.peer, member.position) for member in members]


def _members(places: Iterable[Place]) -> tuple[Member, ...]:
    return tuple(Member(place.peer, place.position) for place in places)
