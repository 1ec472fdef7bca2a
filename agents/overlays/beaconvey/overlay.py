"""The overlay of BeaConvey (Chen, Tock, Vitenberg and Jacobsen): planned by a master, kept by all.

The peer with the lowest address is the master (`master`); if it fails, the next one is. All peers
send it their interests, and it sends each its place on the ring of a new epoch, its neighbours and
its fingers (`planning`). Peers keep each ring by messages, as in `agents.overlays.ring`.

Departures from the paper, and readings of what it leaves open:

- A ring by hashes of addresses (epoch 0) exists all the time. Over it peers agree on the master and
  join again after a partition. It carries no events and is not announced.
- Rings of two epochs exist side by side while events of the former one are finished.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from agents.announcements import (
    EpochBegun,
    EpochDrained,
    EpochEnded,
    EpochPrepared,
    Interests,
    NextHop,
    PeerLost,
    PeerRestarted,
    Place,
    PreparesEpoch,
)
from agents.overlays.beaconvey.epochs import Epochs
from agents.overlays.beaconvey.master import Letters, Master
from agents.overlays.beaconvey.messages import Belief, Commit, Plan, Retire, Status, Wants
from agents.overlays.beaconvey.planning import as_place
from agents.overlays.beaconvey.reports import Reports
from agents.overlays.beaconvey.settings import BeaConveyOverlaySettings
from agents.overlays.ring.circle import (
    MOST_RANKS,
    RANK_SPACING,
    SPARSE,
    Circle,
    hash_position,
    phases_of,
)
from agents.overlays.ring.fingers import FingerRule, PlannedFingers, RandomFingers
from agents.overlays.ring.links import RingLinks, Roles
from agents.overlays.ring.memory import Memory
from agents.overlays.ring.overlay import SLACK_S, placed_values, roles_of
from agents.overlays.ring.ring import RING_MESSAGES, Ring
from agents.protocol import (
    Announce,
    Delay,
    Effect,
    Effects,
    PeerId,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
)

_WORK = "work"
_REPORT = "report"
_REPORT_US = 200_000  # after which a new master is likely to be the last one
_QUIET_PERIODS = 3


class BeaConveyOverlay(Protocol):
    """A ring and fingers that a master plans from all interests, one epoch after another."""

    Settings: ClassVar[type[Struct]] = BeaConveyOverlaySettings
    settings: BeaConveyOverlaySettings
    messages = (*RING_MESSAGES, Belief, Wants, Status, Plan, Commit, Retire)
    is_directed: ClassVar[bool] = True
    offers = frozenset({"neighbours", "keys", "positions"})
    needs_failure_detector: ClassVar[bool] = True

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._period_us = int(self.settings.stabilise_s * 1e6)
        doubted_us = int((self.settings.detect_s + SLACK_S) * 1e6)
        self._memory = Memory(self.contacts, self.random, doubted_us)
        control = Place(self.me, hash_position(self.me))
        rule = FingerRule(phases_of(SPARSE))
        self.rings = {0: Ring(control, SPARSE, rule, self._memory, self.settings)}
        self.current = 0
        self.epochs = Epochs(int(self.settings.prepare_s * 1e6))
        self.chief = self.me  # the presumed master
        self._chief_us = 0
        self.master: Master | None = Master(self.me, self.settings, given.run_seed)
        self._seed, self._workload = given.run_seed, given.workload
        self._reports = Reports()
        self._planner = 0  # the master that sent the newest plan
        self._links = RingLinks("overlay")
        self._announced: dict[int, int] = {}  # versions of rings by epoch
        self._depends_on: object = None  # rings, the master, and whom it knows

    @property
    def ring(self) -> Ring:
        """The ring of the current epoch."""
        return self.rings[self.current]

    @property
    def newest(self) -> int:
        """The last epoch that this peer has a ring of."""
        return max(self.rings)

    def next_hop(self, key: int) -> PeerId | None:
        """The next neighbour on the route to a key of 64 bits; None if this peer is its root."""
        return self.ring.next_hop(self.ring.circle.place_key(key))

    def on_start(self, now_us: int) -> Effects:
        """Join the ring of addresses, and look for the master."""
        topics = frozenset(one.content for one in self._workload.interests_at(now_us))
        self._reports.begin(now_us, topics)
        self._chief_us = now_us
        first_us = self.random.randrange(self._period_us)
        effects = self.rings[0].start(now_us, first_us)
        contacts = [Send(peer, Belief(self.me)) for peer in self.contacts if peer != self.me]
        work = SetTimer(_WORK, first_us)
        return self._settle(now_us, [Record("agent_started"), *effects, *contacts, work])

    def on_stop(self, now_us: int) -> Effects:
        """Tell the neighbours."""
        told = [effect for _, ring in sorted(self.rings.items()) for effect in ring.leave()]
        return [*told, Record("agent_left")]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Take part in the rings, and in planning."""
        if isinstance(message, RING_MESSAGES):
            ring = self.rings.get(message.epoch)
            effects = ring.on_message(now_us, sender, message) if ring is not None else []
        else:
            effects = self._answer(now_us, sender, message)
        return self._settle(now_us, effects)

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Do the work of a period."""
        if name == _WORK:
            effects: list[Effect] = [SetTimer(_WORK, self._period_us), *self._work(now_us)]
            return self._settle(now_us, effects)
        if name == _REPORT:
            return self._settle(now_us, self._report(now_us))
        assert isinstance(name, tuple)
        ring = self.rings.get(name[1])
        return self._settle(now_us, ring.on_timer(now_us, name)) if ring is not None else []

    def on_computed(self, now_us: int, name: Hashable, result: Any) -> Effects:
        """Send out a plan."""
        assert isinstance(name, tuple)
        master = self.master
        layout = master.on_computed(now_us, name[1], result) if master is not None else None
        if master is None or layout is None:
            return []
        values = {
            "epoch": layout.epoch,
            "peers": layout.ranks,
            "computed_in_us": master.computed_in_us,
        }
        planned = Record("epoch_planned", values)
        return self._settle(now_us, [planned, *self._advance(now_us)])

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Add a neighbour whose delay is known."""
        return self._links.on_delay(delay)

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Repeat the message if the other peer still exists."""
        if isinstance(message, Wants | Status):
            self._reports.forget()
        elif self.master is not None:
            self.master.repeat(to)
        return []

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Handle failures, interests, and the state of epochs in other layers."""
        match content:
            case PeerLost(peer):
                return self._settle(now_us, self._lose(now_us, peer))
            case PeerRestarted(peer):
                return self._settle(now_us, self._restart(now_us, peer))
            case Interests(topics):
                self._reports.change_topics(topics)
            case PreparesEpoch(epoch):
                self.epochs.preparing.add(epoch)
            case EpochPrepared(epoch):
                self.epochs.prepared.add(epoch)
            case EpochDrained(epoch):
                self.epochs.drained.add(epoch)
        return []

    def _answer(self, now_us: int, sender: PeerId, message: Any) -> list[Effect]:
        match message:
            case Belief():
                return self._on_belief(now_us, sender, message.master)
            case Status() | Wants() if self.master is None:
                return [Send(sender, Belief(self.chief), reliable=True)]
            case Status():
                assert self.master is not None
                self.master.on_status(now_us, sender, message)
                return self._advance(now_us)
            case Wants():
                assert self.master is not None
                self.master.on_wants(now_us, sender, message)
                return []
            case _ if sender != self.chief:
                return []
            case Plan():
                return self._on_plan(now_us, message)
            case Commit():
                return self._begin(now_us, message.epoch)
        return self._retire(message.epoch)

    def _work(self, now_us: int) -> list[Effect]:
        """The work of a period: agree on the master, report to it, or act as the master."""
        effects: list[Effect] = []
        if (successor := self.rings[0].near.successor) is not None:
            effects.append(Send(successor.peer, Belief(self.chief)))
        if now_us - self._chief_us >= self._period_us:
            effects += self._report(now_us)
        if self.master is not None:
            effects += self._advance(now_us)
            if (compute := self.master.compute(now_us)) is not None:
                effects.append(compute)
        return effects

    def _on_belief(self, now_us: int, sender: PeerId, chief: PeerId) -> list[Effect]:
        """Consider the lowest known address the master."""
        if sender == self.chief != chief:  # it is not the master, or not yet: it has noted nothing
            self._reports.forget()
        lowest = min(chief or sender, sender)
        if lowest < self.chief and not self._memory.is_doubtful(now_us, lowest):
            return self._follow(now_us, lowest)
        return [Send(sender, Belief(self.chief))] if chief > self.chief else []

    def _follow(self, now_us: int, chief: PeerId) -> list[Effect]:
        """Change the master, and inform the peers that this one has links to."""
        self.chief, self._chief_us = chief, now_us
        self._reports.forget()
        if chief != self.me:
            self.master = None
        elif self.master is None:
            self.master = Master(self.me, self.settings, self._seed)
        view = self.rings[0].view
        links = {place.peer for place in view.fingers} - {chief}
        if view.predecessor is not None:
            links |= {view.predecessor.peer} - {chief}
        tell = [Send(peer, Belief(chief)) for peer in sorted(links)]
        report = SetTimer(_REPORT, _REPORT_US)
        return [Record("master_chosen", {"master": chief}), report, *tell]

    def _lose(self, now_us: int, peer: PeerId) -> list[Effect]:
        effects = [e for _, ring in sorted(self.rings.items()) for e in ring.lose(now_us, peer)]
        if self.master is not None:
            self.master.forget(now_us, peer)
        if peer == self.chief:
            near = self.rings[0].near
            known = [*near.predecessors, *near.successors, *self.rings[0].fingers.places]
            effects += self._follow(now_us, min([self.me, *(place.peer for place in known)]))
        return effects

    def _restart(self, now_us: int, peer: PeerId) -> list[Effect]:
        effects = [e for _, ring in sorted(self.rings.items()) for e in ring.restart(now_us, peer)]
        if self.master is not None:
            self.master.forget(now_us, peer)
        if peer == self.chief:
            self._reports.forget()
        return effects

    def _report(self, now_us: int) -> list[Effect]:
        """Report new topics and state to the master."""
        news = self._reports.news(now_us, self._status(now_us))
        return [effect for one in news for effect in self._tell(now_us, self.chief, one)]

    def _status(self, now_us: int) -> Status:
        newest = self.rings[self.newest]
        is_quiet = newest.is_quiet(now_us, _QUIET_PERIODS)
        older = [epoch for epoch in self.rings if 0 < epoch < self.current]
        current = self.ring if self.current else None
        return Status(
            0,
            self.current,
            current.me.position if current is not None else 0,
            current.circle.ranks if current is not None else 0,
            newest.epoch,
            self.epochs.is_prepared(now_us, newest.epoch, is_quiet),
            self.epochs.is_drained(now_us, older),
        )

    def _tell(self, now_us: int, to: PeerId, message: Any) -> list[Effect]:
        if to == self.me:
            return self._answer(now_us, self.me, message)
        return [Send(to, message, reliable=True)]

    def _advance(self, now_us: int) -> list[Effect]:
        """Send the messages of the master."""
        letters: Letters = self.master.advance(now_us) if self.master is not None else []
        return [effect for to, letter in letters for effect in self._tell(now_us, to, letter)]

    def _on_plan(self, now_us: int, plan: Plan) -> list[Effect]:
        """Take a place on the ring of a new epoch."""
        circle = Circle(plan.ranks * RANK_SPACING, RANK_SPACING)
        # A plan of another master that did not begin is void, whatever its number.
        last = self.newest if self._planner == self.chief else self.current
        is_new = plan.epoch > last and plan.epoch not in self.rings
        if not is_new or plan.ranks > MOST_RANKS or plan.position >= circle.modulus:
            return []
        given_up = [epoch for epoch in self.rings if epoch > self.current]
        effects = [effect for epoch in given_up for effect in self._end(epoch)]
        me = Place(self.me, plan.position)
        ring = Ring(me, circle, self._rule(circle, plan), self._memory, self.settings, plan.epoch)
        others = [as_place(one) for one in plan.successors if one.peer != self.me]
        before = [as_place(one) for one in plan.predecessors if one.peer != self.me]
        fingers = [(f.phase, as_place(f.member)) for f in plan.fingers if f.member.peer != self.me]
        alive = {place.peer for place in (*others, *before)}
        ring.seed(before, others, [f for f in fingers if f[1].peer in alive], len(others) < 16)
        self.rings[plan.epoch], self._planner = ring, self.chief
        self.epochs.note_plan(now_us, plan.epoch)
        started = ring.start(now_us, self.random.randrange(self._period_us))
        return [*effects, *started, *self._report(now_us)]

    def _rule(self, circle: Circle, plan: Plan) -> FingerRule:
        """The planned fingers, or plain ones for a peer without a plan."""
        phases = phases_of(circle, self.settings.phases)
        wanted = {one.phase: one.member.position for one in plan.fingers}
        if set(wanted) == set(range(len(phases))):
            distances = [circle.distance(plan.position, wanted[i]) for i in range(len(phases))]
            return PlannedFingers(phases, distances)
        if self.settings.fingers == "random":
            return RandomFingers(phases, circle, self.random)
        return FingerRule(phases)

    def _begin(self, now_us: int, epoch: int) -> list[Effect]:
        """Publish in an epoch from now on."""
        if epoch not in self.rings or epoch <= self.current:
            return []
        is_first = self.current == 0
        self.current = epoch
        self.epochs.begun_us = now_us
        placed = placed_values(self.ring.circle, self.ring.me.position)
        effects: list[Effect] = [
            Record("epoch_begun", {"epoch": epoch}),
            Record("placed", placed),
            *self._tell_links(),
            Announce(EpochBegun(epoch)),
        ]
        return [*effects, Announce(NextHop(self))] if is_first else effects

    def _retire(self, epoch: int) -> list[Effect]:
        """Drop rings that are no longer needed."""
        if epoch != self.current:
            return []
        return [e for old in sorted(self.rings) if 0 < old < epoch for e in self._end(old)]

    def _end(self, epoch: int) -> list[Effect]:
        del self.rings[epoch]
        self._announced.pop(epoch, None)
        self.epochs.forget(epoch)
        return [Announce(EpochEnded(epoch))]

    def _settle(self, now_us: int, effects: Sequence[Effect]) -> list[Effect]:
        """Record and announce changes, before any message that a change causes."""
        told: list[Effect] = []
        changed = False
        for epoch, ring in sorted(self.rings.items()):
            if self._announced.get(epoch) != ring.version:
                self._announced[epoch] = ring.version
                changed = True
                if epoch:
                    told.append(Announce(ring.view))
        peers = frozenset(self.master.peers) if self.master is not None else None
        depends_on = (tuple(self.rings), self.chief, peers)
        if changed or depends_on != self._depends_on:
            self._depends_on = depends_on
            told = [*self._tell_links(), *told]
        return [*told, *effects]

    def _tell_links(self) -> list[Effect]:
        roles: Roles = roles_of(self.ring) if self.current else {}
        control, planned = self.rings[0], [ring for epoch, ring in self.rings.items() if epoch]
        watched = {self.chief, *control.watched_near}.union(*(ring.watched for ring in planned))
        if self.master is not None:
            watched |= set(self.master.peers)
        return self._links.update(None, roles, watched - {self.me})
