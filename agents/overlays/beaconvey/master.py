"""The master of BeaConvey's overlay: it knows all interests and plans one epoch after another.

The paper has a master that computes the overlay from time to time. This one collects interests by
messages, has the plan computed, and sends each peer its part. When all peers have prepared for the
new epoch, it begins (`Commit`); when no peer holds an event of earlier epochs, these end
(`Retire`). A peer that starts between two plans is placed beside the peer with most common topics.

All state of a master can be collected again: after its failure, the next master receives the state
of all peers, completes an epoch that began for some of them, and plans a new one otherwise. The
number of an epoch has bits of its master's address, so that masters of separated networks do not
use the same.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from agents.overlays.beaconvey.messages import Commit, Plan, Retire, Status, Wants
from agents.overlays.beaconvey.planning import Layout, compute_plan, lay_out
from agents.overlays.beaconvey.settings import BeaConveyOverlaySettings
from agents.overlays.ring.circle import hash_position
from agents.protocol import Compute, PeerId

_MASTER_BITS = 10
_MOST_PIECES = 4_096
_MOST_EPOCH = (1 << 32) - 1
_REPEAT_US = 3_000_000

Letters = list[tuple[PeerId, Plan | Commit | Retire]]


@dataclass
class Known:
    """The master's knowledge of a peer; `topics` are None until all pieces have arrived."""

    status: Status | None = None
    topics: frozenset[int] | None = None
    version: int = -1  # of the topics
    parts: dict[int, tuple[int, ...]] = field(default_factory=dict)
    parts_version: int = -1
    told_us: dict[object, int] = field(default_factory=dict)  # when it was told what

    @property
    def current(self) -> int:
        """The epoch that the peer publishes in."""
        return self.status.current if self.status is not None else 0

    def has_ring(self, epoch: int) -> bool:
        """Whether the peer has a ring of an epoch."""
        return self.status is not None and epoch in (self.status.current, self.status.newest)

    def is_settled(self, epoch: int) -> bool:
        """Whether the peer has prepared for an epoch."""
        return self.status is not None and (
            self.status.current == epoch or (self.status.newest == epoch and self.status.is_settled)
        )


class Master:
    """Plans epochs for the peers that report to it."""

    def __init__(self, me: PeerId, settings: BeaConveyOverlaySettings, seed: int) -> None:
        self._me, self._settings, self._seed = me, settings, seed
        self._known: dict[PeerId, Known] = {}
        self._changed_us = self._planned_us = 0
        self._is_changed = False  # since the last plan
        self._computing = 0  # the epoch
        self._asked_us = self.computed_in_us = 0
        self._computed_for: list[PeerId] = []
        self._current: Layout | None = None  # of the committed epoch
        self._next: Layout | None = None  # of the epoch that is being prepared
        self._committed = 0

    @property
    def peers(self) -> Collection[PeerId]:
        """All peers that reported."""
        return self._known.keys()

    def on_status(self, now_us: int, peer: PeerId, status: Status) -> None:
        """Record the state of a peer."""
        known = self._known.get(peer)
        if known is None:
            known = self._known[peer] = Known()
            self._change(now_us)
        if known.status is None or status.version > known.status.version:
            known.status = status

    def on_wants(self, now_us: int, peer: PeerId, wants: Wants) -> None:
        """Record a piece of a peer's topics."""
        if not wants.piece < wants.pieces <= _MOST_PIECES:
            return
        if peer not in self._known:
            self._known[peer] = Known()
            self._change(now_us)
        known = self._known[peer]
        if wants.version < max(known.version, known.parts_version):
            return  # a late repetition
        if wants.version != known.parts_version:
            known.parts, known.parts_version = {}, wants.version
        known.parts[wants.piece] = wants.topics
        if len(known.parts) >= wants.pieces and wants.version != known.version:
            topics = frozenset(topic for part in known.parts.values() for topic in part)
            known.version, known.parts = wants.version, {}
            known.parts_version = -1
            if topics != known.topics:
                known.topics = topics
                self._change(now_us)

    def forget(self, now_us: int, peer: PeerId) -> None:
        """Remove a peer; it is added again if it reports."""
        if self._known.pop(peer, None) is not None:
            self._change(now_us)

    def repeat(self, peer: PeerId) -> None:
        """Send a peer again what it may have missed."""
        if peer in self._known:
            self._known[peer].told_us.clear()

    def advance(self, now_us: int) -> Letters:
        """The messages to send now."""
        self._committed = max([self._committed, *(one.current for one in self._known.values())])
        if self._next is not None and self._next.epoch <= self._committed:
            self._next = None  # another master's epoch has begun
        letters = self._place_others(now_us)
        letters += self._prepare(now_us)
        letters += self._commit(now_us)
        return [*letters, *self._retire(now_us)]

    def compute(self, now_us: int) -> Compute | None:
        """A new plan, if it is time for one."""
        if not self._is_time(now_us):
            return None
        counter = max([self._committed, *self._newest()]) >> _MASTER_BITS
        epoch = (counter + 1) << _MASTER_BITS | hash_position(self._me) >> (64 - _MASTER_BITS)
        if epoch > _MOST_EPOCH:
            return None
        self._current_layout(now_us)  # needed for peers that start before the epoch
        self._computing, self._computed_for = epoch, sorted(self._known)
        self._is_changed, self._asked_us = False, now_us
        wanted = [sorted(self._known[peer].topics or ()) for peer in self._computed_for]
        settings = self._settings
        return Compute(
            ("plan", epoch),
            compute_plan,
            (wanted, settings.overlay, settings.fingers, settings.phases, self._seed + counter),
            int(settings.compute_s * 1e6),
        )

    def on_computed(
        self, now_us: int, epoch: int, result: tuple[list[int], list[list[int]]]
    ) -> Layout | None:
        """Use a computed plan, unless it is outdated."""
        if epoch != self._computing:
            return None
        self._computing, self._planned_us = 0, now_us
        self.computed_in_us = now_us - self._asked_us
        self._next = lay_out(epoch, self._computed_for, *result)
        return self._next

    def _change(self, now_us: int) -> None:
        self._changed_us, self._is_changed = now_us, True

    def _newest(self) -> list[int]:
        return [one.status.newest for one in self._known.values() if one.status is not None]

    def _is_quiet(self, now_us: int) -> bool:
        return now_us - self._changed_us >= self._settings.collect_s * 1e6

    def _is_time(self, now_us: int) -> bool:
        """Whether all states are known and quiet, and the last plan is old and in full use."""
        if self._computing or len(self._known) < 2 or not self._is_quiet(now_us):
            return False
        if any(one.topics is None or one.status is None for one in self._known.values()):
            return False
        if self._next is not None:
            return False
        if not self._committed:
            return True
        replan_us = self._settings.replan_s * 1e6
        is_old = replan_us > 0 and now_us - self._planned_us >= replan_us
        return self._is_changed and is_old and self._is_in_use(drained=True)

    def _is_in_use(self, drained: bool) -> bool:
        """Whether all peers publish in the committed epoch, and have no events of earlier ones."""
        statuses = [one.status for one in self._known.values()]
        return all(
            one is not None and one.current == self._committed and (one.is_drained or not drained)
            for one in statuses
        )

    def _prepare(self, now_us: int) -> Letters:
        """Send the parts of a new plan, once a peer publishes in the current epoch.

        A peer that started after the plan was computed gets a place beside another one. So the
        others know its position and its topics when the epoch begins.
        """
        layout = self._next
        if layout is None:
            return []
        letters: Letters = []
        for peer, one in sorted(self._known.items()):
            is_waiting = self._current is not None and one.current != self._committed
            if one.topics is None or one.has_ring(layout.epoch) or is_waiting:
                continue
            if self._may_tell(now_us, peer, ("plan", layout.epoch)):
                letters += self._give_place(layout, peer)
        return letters

    def _place_others(self, now_us: int) -> Letters:
        """Give a place in the current epoch to peers that have none."""
        lost = [
            peer
            for peer, one in sorted(self._known.items())
            if one.topics is not None and not one.has_ring(self._committed)
        ]
        if not self._committed or not lost:
            return []
        layout = self._current_layout(now_us)
        if layout is None:
            return []
        letters: Letters = []
        for peer in lost:
            if self._may_tell(now_us, peer, ("plan", layout.epoch)):
                letters += self._give_place(layout, peer)
        return letters

    def _give_place(self, layout: Layout, peer: PeerId) -> Letters:
        """The plan for a peer, which is placed first if it is not part of the layout."""
        position = self._best_place(layout, peer)
        if position is None:
            return []
        layout.position[peer] = position
        return [(peer, layout.plan_for(peer, self._known))]

    def _best_place(self, layout: Layout, peer: PeerId) -> int | None:
        """The place beside the peer with most common topics; a peer may keep its place."""
        if peer in layout.position:
            return layout.position[peer]
        mine = self._known[peer].topics or frozenset()
        there = [one for one in sorted(layout.position) if one in self._known]
        if not there:
            return None
        best = max(there, key=lambda one: len(mine & (self._known[one].topics or frozenset())))
        return layout.place_beside(best)

    def _current_layout(self, now_us: int) -> Layout | None:
        """The layout of the current epoch; one made by another master is known from its peers."""
        if self._current is not None and self._current.epoch == self._committed:
            return self._current
        self._current = None
        if not self._is_quiet(now_us):
            return None
        statuses = {
            peer: one.status
            for peer, one in self._known.items()
            if one.status is not None and one.status.current == self._committed
        }
        ranks = next(iter(statuses.values())).ranks if statuses else 0
        if not ranks:
            return None
        position = {peer: status.position for peer, status in statuses.items()}
        self._current = Layout(self._committed, ranks, position, {})
        return self._current

    def _commit(self, now_us: int) -> Letters:
        """Begin an epoch when all planned peers have prepared, and later for each further peer."""
        layout = self._next
        if layout is not None:
            planned = [self._known[peer] for peer in layout.fingers if peer in self._known]
            if planned and all(one.is_settled(layout.epoch) for one in planned):
                self._committed = layout.epoch
                self._current, self._next = layout, None
        if not self._committed:
            return []
        return [
            (peer, Commit(self._committed))
            for peer, one in sorted(self._known.items())
            if one.current != self._committed
            and one.has_ring(self._committed)
            and self._may_tell(now_us, peer, ("commit", self._committed))
        ]

    def _retire(self, now_us: int) -> Letters:
        """End earlier epochs that no peer needs."""
        if not self._committed or not self._is_in_use(drained=True):
            return []
        return [
            (peer, Retire(self._committed))
            for peer in sorted(self._known)
            if ("retire", self._committed) not in self._known[peer].told_us
            and self._may_tell(now_us, peer, ("retire", self._committed))
        ]

    def _may_tell(self, now_us: int, peer: PeerId, what: object) -> bool:
        """Whether to repeat messages to a peer, which ignores them if it follows another master."""
        told_us = self._known[peer].told_us
        if now_us - told_us.get(what, -_REPEAT_US) < _REPEAT_US:
            return False
        told_us[what] = now_us
        return True
