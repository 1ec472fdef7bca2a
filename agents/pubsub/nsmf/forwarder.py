"""NSMF (Chen and Tock, Middleware Industry 2015) and BeaConvey's routing (Chen et al.) on a ring.

An event is sent to a range of positions, at first the whole ring from its publisher on. The first
peer of a range, the one that owns the position where it begins, divides it (`division`) and sends
each part on, over the fingers that are nearest before it, from its knowledge in `tables`.

If the first peer of a range has failed, its successor owns the position and takes over. It
handles the rest of the range from itself on. `agents.pubsub.custody` sends parts again. A peer
that has not read a table of the whole ring yet holds the parts that it must divide. A peer with a
new successor sends ranges to it, whether or not it knows subscribers there. A peer owns the
positions before its own only if its predecessor reads its table: the predecessor of one that has
just joined may be any peer. Until then it holds parts that begin there.

An event finishes in the epoch that it was published in, on the ring of that epoch. Where a ring is
planned again, its tables are read before the overlay begins the epoch.
"""

from collections.abc import Hashable
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from agents.announcements import (
    EpochBegun,
    EpochDrained,
    EpochEnded,
    EpochPrepared,
    Interests,
    PeerLost,
    PeerRestarted,
    PreparesEpoch,
    Publish,
    Ready,
    RingView,
)
from agents.protocol import (
    Announce,
    CancelTimer,
    Deliver,
    Effect,
    Effects,
    PeerId,
    Protocol,
    Record,
    SetTimer,
    Surroundings,
)
from agents.pubsub.custody import Custody, Part
from agents.pubsub.nsmf.division import Rule, divide
from agents.pubsub.nsmf.messages import Follow, InterestPiece, Lapsed, RangeEvent, TablePiece
from agents.pubsub.nsmf.tables import Tables
from agents.pubsub.table_count import TableCount

_MOST_HOPS = 255  # largest value of the header
_MOST_HOPS_IN_BODY = 65_535
_REMEMBERED = 5  # multiple of `keep_s` for which events are recognised
_QUIET_US = 3_000_000  # time without changes before a peer is ready


class NsmfSettings(Struct, frozen=True, kw_only=True):
    """Settings of NSMF."""

    keep_s: Annotated[
        float, Meta(gt=0, description="how long completed parts of events are remembered")
    ] = 60.0


class BeaConveySettings(NsmfSettings, frozen=True, kw_only=True):
    """Settings of BeaConvey's routing."""

    rule: Annotated[
        Rule,
        Meta(
            description="pivots in the far half of a range: po, never; pal, always; pie, if a "
            "finger is there"
        ),
    ] = "pie"


class Nsmf(Protocol):
    """Nearest subscribers and matched fingers."""

    Settings: ClassVar[type[Struct]] = NsmfSettings
    messages = (RangeEvent, Follow, TablePiece, InterestPiece, Lapsed, *Custody.messages)
    guarantee: ClassVar[Literal["exactly-once", "none"]] = "exactly-once"
    settle_s: ClassVar[float] = 10.0  # a new subscriber becomes known from peer to peer
    needs = "positions"

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._is_alone = given.peers == 1
        self._topics: frozenset[int] = frozenset()
        self._rings: dict[int, Tables] = {}
        self._current: Tables | None = None
        self._has_begun = False
        self._custody = Custody(self, self.settings.keep_s)
        self._keep_us = int(self.settings.keep_s * 1e6) * _REMEMBERED
        self._seen_us: dict[int, int] = {}  # times of first arrivals of events, the oldest first
        self._delivered: set[int] = set()
        self._early: list[Publish] = []  # published before this peer had a place on a ring
        self._version = -1
        self._counted = (-1, -1)  # epoch and version of the tables
        self._table_count = TableCount()
        self._is_ready = False
        self._unprepared: set[int] = set()
        self._undrained: set[int] = set()

    @property
    def rule(self) -> Rule:
        """The rule by which ranges are divided."""
        return "po"

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Handle changes of the ring and of interests, and publish."""
        effects: list[Effect] = []
        if isinstance(content, Interests):
            self._topics = content.contents
            for tables in self._rings.values():
                effects += tables.change_topics(now_us, self._topics)
        elif isinstance(content, RingView):
            effects += self._change_view(now_us, content)
        elif isinstance(content, Publish):
            return self._publish(now_us, content)
        elif isinstance(content, PeerLost | PeerRestarted):
            for tables in self._rings.values():
                if isinstance(content, PeerLost):
                    tables.lose(content.peer)
                else:
                    effects += tables.restart(now_us, content.peer)
            effects += self._custody.on_announcement(now_us, content)
        elif isinstance(content, EpochBegun):
            self._current = self._rings.get(content.epoch, self._current)
            self._has_begun = True
            effects += self._publish_early(now_us)
            if content.epoch not in self._unprepared:
                effects += self._end_quiet()
            self._undrained = {epoch for epoch in self._rings if epoch < content.epoch}
        elif isinstance(content, EpochEnded):
            effects += self._end_epoch(content.epoch)
        return [*effects, *self._follow_tables(now_us), *self._drain()]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Forward events, and update tables."""
        if isinstance(message, RangeEvent):
            return self._on_event(now_us, sender, message)
        if isinstance(message, Custody.messages):
            effects = self._custody.on_message(now_us, sender, message)
            return [*effects, *self._drain()]
        tables = self._rings.get(message.epoch)
        if tables is None:
            return ()
        return [*tables.on_message(now_us, sender, message), *self._follow_tables(now_us)]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Do the work of a timer."""
        if self._custody.is_own_timer(name):
            return [*self._custody.on_timer(now_us, name), *self._drain()]
        if name == "quiet":
            return self._end_quiet()
        assert isinstance(name, tuple)
        _, epoch, what = name
        effects = self._rings[epoch].on_timer(now_us, what)
        return [*effects, *self._count_table()] if what == "tick" else effects

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Send an event that was never acknowledged to another peer."""
        return self._custody.on_give_up(now_us, to, message)

    def on_part_returned(
        self, now_us: int, part: Part, message: RangeEvent, receiver: PeerId | None
    ) -> Effects:
        """Send a part again, to the peer that is responsible now."""
        del receiver
        return self._carry(now_us, part, message, self.me)

    def on_part_done(self, now_us: int, part: Part) -> Effects:
        """Record that a published event has reached all subscribers."""
        assert isinstance(part.key, tuple)
        return [Record("event_done", {"event_id": part.key[0]})]

    def _change_view(self, now_us: int, view: RingView) -> Effects:
        tables = self._rings.get(view.epoch)
        if tables is not None:
            return tables.change_view(now_us, view)
        tables = Tables(now_us, self.me, view, self._topics)
        self._rings[view.epoch] = tables
        self._unprepared.add(view.epoch)
        effects: list[Effect] = [Announce(PreparesEpoch(view.epoch)), *tables.start(now_us)]
        if not view.epoch:  # other rings may be given up before they are used
            self._current = tables
            effects += self._publish_early(now_us)
        return effects

    def _publish_early(self, now_us: int) -> list[Effect]:
        """Publish what waited for a ring."""
        early, self._early = self._early, []
        return [effect for publish in early for effect in self._publish(now_us, publish)]

    def _end_epoch(self, epoch: int) -> Effects:
        """Remove the ring of an epoch."""
        self._unprepared.discard(epoch)
        self._undrained.discard(epoch)
        tables = self._rings.pop(epoch, None)
        if tables is None:
            return ()
        if self._current is tables:
            self._current = max(self._rings.values(), key=lambda one: one.epoch, default=None)
        return [CancelTimer(name) for name in tables.timers]

    def _drain(self) -> Effects:
        """Announce the former epochs of which this peer holds no event."""
        if not self._undrained:
            return ()
        held = self._custody.open_messages()
        drained = sorted(self._undrained - {event.epoch for event in held})
        self._undrained -= {*drained}
        return [Announce(EpochDrained(epoch)) for epoch in drained]

    def _publish(self, now_us: int, publish: Publish) -> Effects:
        """Send an event to the whole ring."""
        tables = self._current
        if tables is None:
            self._early.append(publish)
            return ()
        self._remember(now_us, publish.event_id)
        self._delivered.add(publish.event_id)  # the application has delivered it
        whole = tables.view.modulus - 1
        key = (publish.event_id, tables.epoch, whole)
        part = self._custody.begin(now_us, key, is_relay=False)
        event = RangeEvent(
            publish.event_id, 0, 0, tables.epoch, publish.content, tables.view.position, whole, 0,
            publish.payload,
        )  # fmt: skip
        effects = self._carry(now_us, part, event, self.me) if part.is_new else ()
        return [*effects, *self._custody.settle(now_us, part)]

    def _on_event(self, now_us: int, sender: PeerId, event: RangeEvent) -> Effects:
        hops = min(event.hops + 1, _MOST_HOPS_IN_BODY)
        event = replace(event, hops=hops, hop_count=min(hops, _MOST_HOPS))
        what = "event_repeated" if event.event_id in self._seen_us else "event_received"
        self._remember(now_us, event.event_id)
        copy = {"event_id": event.event_id, "from": sender, "hop_count": hops}
        effects: list[Effect] = [Record(what, copy)]
        tables = self._rings.get(event.epoch)
        if tables is None or event.low >= tables.view.modulus:
            return effects
        owns = tables.owns(event.low)
        left = event.rest - tables.distance(event.low, tables.view.position) if owns else event.rest
        key = (event.event_id, event.epoch, left) if owns else (*_key_of(event), event.low)
        part = self._custody.take(now_us, sender, event.token, key, is_relay=not owns)
        if part.is_loop:
            effects += self._custody.hold(now_us, part, event)
        elif part.is_new:
            effects += self._carry(now_us, part, event, sender)
        return [*effects, *self._custody.settle(now_us, part)]

    def _carry(self, now_us: int, part: Part, event: RangeEvent, sender: PeerId) -> Effects:
        """Divide a range, or forward it."""
        tables = self._rings.get(event.epoch)
        if tables is None:
            return ()
        if tables.owns(event.low):
            return self._handle(now_us, part, event, sender, tables)
        to = tables.next_hop(event.low)
        if to is None:
            return self._custody.hold(now_us, part, event)
        return self._custody.send(now_us, part, to, event)

    def _handle(
        self, now_us: int, part: Part, event: RangeEvent, sender: PeerId, tables: Tables
    ) -> Effects:
        """Deliver an event here if the range has this peer in it, and divide the rest."""
        gap = tables.distance(event.low, tables.view.position)
        if gap > event.rest:
            is_over = self._is_alone or tables.is_placed
            return () if is_over else self._custody.hold(now_us, part, event)
        effects = self._deliver(event, sender)
        knows_ring = tables.was_covered and not tables.is_isolated
        knows_place = tables.is_placed or not gap
        if not (self._is_alone or (knows_ring and knows_place)):
            return [*effects, *self._custody.hold(now_us, part, event)]
        span = event.rest - gap + 1
        view, topic = tables.view, event.topic
        parts = divide(
            self.rule, span, tables.nearest(topic), tables.fingers, tables.matched(topic),
            -view.position % view.spacing, view.spacing,
        )  # fmt: skip
        pieces = [
            replace(event, low=(view.position + start) % view.modulus, rest=end - start - 1)
            for start, end in parts
        ]
        others = [piece for piece in pieces if not tables.owns(piece.low)]
        if len(others) < len(pieces) and not tables.is_placed:
            return [*effects, *self._custody.hold(now_us, part, event)]
        for piece in others:
            to = tables.next_hop(piece.low)
            assert to is not None
            effects += self._custody.send(now_us, part, to, piece)
        return effects

    def _deliver(self, event: RangeEvent, sender: PeerId) -> list[Effect]:
        if event.topic not in self._topics or event.event_id in self._delivered:
            return []
        self._delivered.add(event.event_id)
        return [Deliver(event.event_id, sender, event.hops)]

    def _remember(self, now_us: int, event_id: int) -> None:
        """Record an event, and remove those that are too old to be repeated."""
        self._seen_us.setdefault(event_id, now_us)
        oldest_us = now_us - self._keep_us
        while self._seen_us[first := next(iter(self._seen_us))] < oldest_us:
            del self._seen_us[first]
            self._delivered.discard(first)

    def _follow_tables(self, now_us: int) -> Effects:
        """After a change: retry held messages, and wait until nothing changes any more."""
        version = sum(tables.version for tables in self._rings.values())
        if version == self._version:
            return ()
        self._version = version
        effects = self._custody.retry(now_us)
        if self._is_ready and not self._unprepared:
            return effects
        if self._is_alone or any(tables.is_settled for tables in self._awaited()):
            return [*effects, SetTimer("quiet", _QUIET_US)]
        return [*effects, CancelTimer("quiet")]

    def _count_table(self) -> Effects:
        """Record the size of the current tables after a change."""
        tables = self._current
        if tables is None or self._counted == (tables.epoch, tables.version):
            return ()
        self._counted = (tables.epoch, tables.version)
        return self._table_count.record(tables.entries())

    def _awaited(self) -> list[Tables]:
        """The rings whose tables this peer must complete."""
        epochs = self._unprepared if self._is_ready else self._rings.keys()
        return [self._rings[epoch] for epoch in epochs]

    def _end_quiet(self) -> Effects:
        """After a time without changes: announce what is complete."""
        effects: list[Effect] = []
        for epoch in sorted(self._unprepared):
            if self._is_alone or self._rings[epoch].is_settled:
                self._unprepared.discard(epoch)
                effects.append(Announce(EpochPrepared(epoch)))
        if not self._is_ready and (self._is_alone or self._can_serve):
            self._is_ready = True
            effects.append(Announce(Ready()))
        return effects

    @property
    def _can_serve(self) -> bool:
        """Whether the current tables are complete; those of a planned epoch only once it began."""
        tables = self._current
        if tables is None or (tables.epoch and not self._has_begun):
            return False
        return tables.is_settled


class BeaConvey(Nsmf):
    """NSMF with pivots that the setting `rule` selects."""

    Settings = BeaConveySettings

    @property
    def rule(self) -> Rule:
        """The rule by which ranges are divided."""
        rule: Rule = self.settings.rule
        return rule


def _key_of(event: RangeEvent) -> tuple[int, int, int]:
    return event.event_id, event.epoch, event.rest
