"""The path of events up to the rendezvous point of their topic, which is the root of its key.

The publisher keeps its events for a while even when they are done. A rendezvous point that has just
replaced a failed one may have no children yet, so that an event is done at once; if it fails in
turn before children join, the event is lost. Therefore the publisher has each event confirmed once
by the present rendezvous point some time later, and publishes it again if it is missing there. In
the same way, a peer that is no longer the rendezvous point passes its events to the next one.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from msgspec.structs import replace

from agents.announcements import Router
from agents.protocol import Effect, Effects, PeerId, Record, Send
from agents.pubsub.custody import Custody, Part
from agents.pubsub.scribe.messages import (
    IDS,
    AtRoot,
    Confirm,
    TopicEvent,
    Upward,
    read_event,
    write_event,
)
from agents.pubsub.scribe.settings import RendezvousSettings
from agents.pubsub.scribe.topic_tree import NEVER_US, TopicTree
from topologies.overlays import topic_keys

_CONFIRM_AFTER = 0.25  # share of the time for which events are kept
_CONFIRM_AGAIN_US = 5_000_000
_ASK_AGAIN_US = 2_000_000
_MOST_HOPS = 255  # hops of a question to a rendezvous point

topic_key = lru_cache(maxsize=1 << 16)(topic_keys.topic_key)


class Owner(Protocol):
    """The methods of the protocol that owns a `Rendezvous`."""

    def tree_of(self, topic: int) -> TopicTree:
        """The state of a topic, created if there is none."""

    def note_copy(self, now_us: int, event: TopicEvent, sender: PeerId) -> Effects:
        """Record a copy of an event."""

    def handle(self, now_us: int, part: Part, event: TopicEvent, sender: PeerId | None) -> Effects:
        """Handle an event as its rendezvous point."""

    def note_change(self, now_us: int) -> None:
        """The cached rendezvous points have changed."""


@dataclass(slots=True)
class _Kept:
    """An event for which this peer is responsible, and the time of its confirmation."""

    event: TopicEvent
    due_us: int


class Rendezvous:
    """Sends events to rendezvous points, and ensures that they are kept there."""

    def __init__(
        self, me: PeerId, settings: RendezvousSettings, custody: Custody, owner: Owner
    ) -> None:
        self.router: Router | None = None
        self.is_alone = False  # the overlay has lost all peers, or has not found any
        self._me = me
        self._owner = owner
        self._custody = custody
        self._is_cached = settings.root == "cached"
        self._keep_us = int(settings.keep_s * 1e6)
        self._kept: defaultdict[int, dict[int, _Kept]] = defaultdict(dict)  # by topic and event
        self._undone: set[int] = set()  # own events
        self._root_of: dict[int, PeerId] = {}
        self._asked_us: dict[int, int] = {}
        self._askers: defaultdict[int, set[PeerId]] = defaultdict(set)  # they may cache this peer

    @property
    def can_route(self) -> bool:
        """Whether the overlay routes to keys."""
        return self.router is not None and not self.is_alone

    @property
    def roots(self) -> Iterable[PeerId]:
        """The rendezvous points whose addresses are cached."""
        return self._root_of.values()

    def next_hop(self, topic: int) -> PeerId | None:
        """The next peer on the route to a topic's rendezvous point; None if it is this peer."""
        assert self.router is not None
        return self.router.next_hop(topic_key(topic))

    def is_root(self, topic: int) -> bool:
        """Whether this peer is a topic's rendezvous point."""
        return self.can_route and self.next_hop(topic) is None

    def publish(self, now_us: int, event: TopicEvent) -> Effects:
        """Send an event of this peer to its rendezvous point."""
        due_us = now_us + int(_CONFIRM_AFTER * self._keep_us)
        self._kept[event.topic][event.event_id] = _Kept(event, due_us)
        self._undone.add(event.event_id)
        return self._send(now_us, event)

    def on_upward(self, now_us: int, sender: PeerId, message: Upward) -> Effects:
        """Forward an event, or handle it as its rendezvous point."""
        event = read_event(now_us, message)
        is_root = self.is_root(event.topic)
        key = (event.event_id, event.topic) if is_root else event.event_id
        part = self._custody.take(now_us, sender, message.token, key, is_relay=not is_root)
        effects: list[Effect] = [*self._owner.note_copy(now_us, event, sender)]
        if is_root:
            effects += self._owner.handle(now_us, part, event, sender)
        elif part.is_new:
            onward = write_event(Upward, now_us, event)
            is_stuck = part.is_loop or not self.can_route
            pass_on = self._custody.hold if is_stuck else self._pass_on
            effects += pass_on(now_us, part, onward)
        return [*effects, *self._custody.settle(now_us, part)]

    def on_returned(
        self, now_us: int, part: Part, message: Upward, receiver: PeerId | None
    ) -> Effects:
        """Send an event again."""
        if receiver is not None and self._root_of.get(message.topic) == receiver:
            del self._root_of[message.topic]
            self._owner.note_change(now_us)
        return self._pass_on(now_us, part, message)

    def on_done(self, now_us: int, event_id: int) -> Effects:
        """Record that an event of this peer has reached all subscribers."""
        if event_id not in self._undone:
            return ()
        self._undone.remove(event_id)
        return [Record("event_done", {"event_id": event_id})]

    def forget(self, peer: PeerId) -> None:
        """Remove a failed peer from the cached rendezvous points, and from those that cache."""
        for topic in [topic for topic, root in self._root_of.items() if root == peer]:
            del self._root_of[topic]
        for askers in self._askers.values():
            askers.discard(peer)

    def prepare(self, now_us: int, topic: int) -> Effects:
        """Request the address of a rendezvous point in advance, if addresses are cached."""
        if not self._is_cached or topic in self._root_of:
            return ()
        to = self.next_hop(topic)
        return self._find_root(now_us, topic, to) if to is not None else ()

    def redirect(self, now_us: int) -> Effects:
        """Have the present rendezvous points answer the peers that cached this one."""
        if not self.can_route:
            return ()
        effects: list[Effect] = []
        for topic in list(self._askers):
            to = self.next_hop(topic)
            if to is not None:
                askers = sorted(self._askers.pop(topic))
                effects += [Send(to, Confirm(topic, peer, 0, ()), reliable=True) for peer in askers]
        return effects

    def hand_over(self, now_us: int, events: Iterable[TopicEvent]) -> None:
        """Have events confirmed by the present rendezvous point."""
        for event in events:
            self._kept[event.topic][event.event_id] = _Kept(event, now_us)

    def ask(self, now_us: int) -> Effects:
        """Have all due events confirmed, and remove old ones."""
        effects: list[Effect] = []
        for topic, kept in list(self._kept.items()):
            oldest_us = now_us - self._keep_us
            for event_id in [e for e, one in kept.items() if one.event.published_us < oldest_us]:
                if event_id not in self._undone:
                    del kept[event_id]
            due = [one for one in kept.values() if one.due_us <= now_us]
            if due and self.can_route:
                effects += self._confirm(now_us, topic, due)
            if not kept:
                del self._kept[topic]
        return effects

    def on_confirm(self, now_us: int, sender: PeerId, message: Confirm) -> Effects:
        """Forward a question, or answer it as the rendezvous point."""
        if not self.can_route:
            return ()  # the question is repeated
        to = self.next_hop(message.topic)
        if to is not None:
            if message.hops == _MOST_HOPS:
                return ()
            return [Send(to, replace(message, hops=message.hops + 1), reliable=True)]
        if message.origin == self._me:
            return ()
        if self._is_cached:
            self._askers[message.topic].add(message.origin)
        tree = self._owner.tree_of(message.topic)
        present = tuple(event for event in message.events if event in tree.events)
        missing = tuple(tree.pull(now_us, message.events))
        return [Send(message.origin, AtRoot(message.topic, present, missing), reliable=True)]

    def on_at_root(self, now_us: int, sender: PeerId, message: AtRoot) -> Effects:
        """Record the rendezvous point, and send it the events that it lacks."""
        topic = message.topic
        self._asked_us.pop(topic, None)
        effects: list[Effect] = []
        if self._is_cached and not self.is_root(topic):
            if self._root_of.get(topic) != sender:
                self._root_of[topic] = sender
                self._owner.note_change(now_us)
            effects += self._custody.retry(now_us)
        kept = self._kept.get(topic, {})
        for event_id in message.present:
            if event_id in kept:
                kept[event_id].due_us = NEVER_US
        for event_id in message.missing:
            effects += self._supply(now_us, topic, event_id)
        return effects

    def _supply(self, now_us: int, topic: int, event_id: int) -> Effects:
        """Publish an event again that the rendezvous point lacks, if this peer has it."""
        kept = self._kept.get(topic, {}).get(event_id)
        if kept is not None:
            kept.due_us = now_us + _CONFIRM_AGAIN_US
        event = kept.event if kept else self._owner.tree_of(topic).events.get(event_id)
        if event is None or self._custody.is_relaying(event_id):
            return ()
        return self._send(now_us, event)

    def _send(self, now_us: int, event: TopicEvent) -> Effects:
        """Begin to send an event."""
        effects: list[Effect] = []
        if self.is_root(event.topic):
            key = (event.event_id, event.topic)
            part = self._custody.begin(now_us, key, is_relay=False)
            effects += self._owner.handle(now_us, part, event, None)
        else:
            part = self._custody.begin(now_us, event.event_id, is_relay=True)
            effects += self._pass_on(now_us, part, write_event(Upward, now_us, event))
        return [*effects, *self._custody.settle(now_us, part)]

    def _pass_on(self, now_us: int, part: Part, message: Upward) -> Effects:
        """Send an event to the next peer; the rendezvous point itself begins with its own part."""
        if not self.can_route:
            return self._custody.hold(now_us, part, message)
        to = self.next_hop(message.topic)
        if to is None:
            return self._delegate(now_us, part, message)
        if self._is_cached and part.is_own:
            root = self._root_of.get(message.topic)
            if root is None:
                held = self._custody.hold(now_us, part, message)
                return [*held, *self._find_root(now_us, message.topic, to)]
            to = root
        return self._custody.send(now_us, part, to, message)

    def _delegate(self, now_us: int, part: Part, message: Upward) -> Effects:
        event = read_event(now_us, message)._replace(hops=message.hops)
        handled = self._custody.delegate(now_us, part, (event.event_id, event.topic))
        effects = self._owner.handle(now_us, handled, event, None)
        return [*effects, *self._custody.settle(now_us, handled)]

    def _find_root(self, now_us: int, topic: int, to: PeerId) -> Effects:
        """Ask for the address of a rendezvous point, unless that was done very recently."""
        if now_us - self._asked_us.get(topic, -_ASK_AGAIN_US) < _ASK_AGAIN_US:
            return ()
        self._asked_us[topic] = now_us
        return [Send(to, Confirm(topic, self._me, 0, ()), reliable=True)]

    def _confirm(self, now_us: int, topic: int, due: list[_Kept]) -> Effects:
        to = self.next_hop(topic)
        if to is None:
            return self._hold_here(now_us, topic, due)
        for one in due:
            one.due_us = now_us + _CONFIRM_AGAIN_US
        ids = [one.event.event_id for one in due]
        pieces = [tuple(ids[start : start + IDS]) for start in range(0, len(ids), IDS)]
        return [Send(to, Confirm(topic, self._me, 0, piece), reliable=True) for piece in pieces]

    def _hold_here(self, now_us: int, topic: int, due: list[_Kept]) -> Effects:
        """Handle events as their rendezvous point that arrived while another peer was."""
        effects: list[Effect] = []
        tree = self._owner.tree_of(topic)
        for one in due:
            one.due_us = NEVER_US
            if one.event.event_id not in tree.events:
                effects += self._send(now_us, one.event)
        return effects
