"""Content-based publish/subscribe over any tree (Tariq, Koldehofe and Rothermel, "Efficient
content-based routing with network topology inference", DEBS 2013, sections 2 and 6).

Subscriptions are announced along the tree: each link gets those from beyond the other links
(`cover_table`). Events are forwarded over links with a matching subscription only.

Every subscriber that stays up gets every matching event once, whatever happens to the tree. A peer
with an event must send it to every neighbour whose subscriptions match. It sends the event at once
over the tree of its publication. In all other cases (a subscription that is added at a link, a tree
that is built while events are sent) it offers the recent events that the neighbour is not known to
have. Offers are forwarded like events, many in a datagram, until they reach a peer that has the
event or wants it; a peer that wants it asks back along the same path. Events lost with a failed
peer therefore come from the peers before it, with very few false positives. The paper needs none of
this: in its simulation peers leave between events.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from msgspec.structs import replace

from agents.announcements import Publish, Ready, Subscribe, Unsubscribe
from agents.protocol import (
    Announce,
    Deliver,
    Effect,
    Effects,
    PeerId,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
)
from agents.pubsub.content.box_index import BoxIndex
from agents.pubsub.content.cover_table import LOCAL
from agents.pubsub.content.event_buffer import EventBuffer, HeldEvent, SeenEvents
from agents.pubsub.content.event_offers import EventOffers, ask
from agents.pubsub.content.messages import (
    MAX_HOPS,
    MESSAGES,
    Event,
    Offer,
    StateWanted,
    SubscriptionUpdate,
    Wanted,
    point_of,
)
from agents.pubsub.content.paced_events import PacedEvents
from agents.pubsub.content.settings import ContentSettings
from agents.pubsub.content.subscription_tree import ContentTree
from agents.pubsub.content.subscription_trees import ContentTrees
from agents.routing.similarity import RecentEvents
from agents.routing.tree import NO_TREE, CurrentTree, Recalculate, Tree
from workloads.content.subscription import Subscription

_BUFFERED_EVENTS = 8_192
_SEEN_EVENTS = 65_536
_ASKERS = 3  # publishers that request a new tree


class Content(Protocol):
    """Forwards events over trees to peers with matching subscriptions."""

    Settings = ContentSettings
    messages = MESSAGES
    guarantee = "exactly-once"
    matching = "boxes"
    needs = "trees"
    settings: ContentSettings

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._events = given.workload.events
        boxes = given.shared.setdefault("boxes", BoxIndex())
        first_event_us = given.workload.first_event_us
        self._trees = ContentTrees(first_event_us, boxes, self.settings.merging)
        self._current = NO_TREE
        self._is_ready = False
        self._buffer = EventBuffer(_us(self.settings.replay_window_s), _BUFFERED_EVENTS)
        self._seen = SeenEvents(_SEEN_EVENTS)
        self._paced = PacedEvents(self.settings.pace_events)
        slack_us = _us(self.settings.handover_slack_s)
        self._offers = EventOffers(self._trees, self._buffer, self._paced, slack_us)
        self._set_timers: set[str] = set()
        self._history = RecentEvents(self.settings.psi)
        self._noted = 0

    def on_start(self, now_us: int) -> Effects:
        """Announce this peer's history to the routing layer from the beginning."""
        return [Announce(self._history)]

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Follow the tree, and the requests of the application."""
        if isinstance(content, Tree):
            return [*self._follow(now_us, content), *self._tell_ready()]
        if isinstance(content, CurrentTree):
            self._current = content.version
            return self._tell_ready()
        if isinstance(content, Publish):
            return self._publish(now_us, content)
        if isinstance(content, Subscribe):
            return self._subscribe(now_us, Subscription(content.content))
        if isinstance(content, Unsubscribe):
            return self._unsubscribe(Subscription(content.content))
        return ()

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle an event, an update, or an offer."""
        if isinstance(message, Event):
            return self._take_event(now_us, sender, message)
        if isinstance(message, SubscriptionUpdate):
            return self._take_update(now_us, sender, message)
        if isinstance(message, Offer):
            return self._take_offer(now_us, sender, message)
        if isinstance(message, Wanted):
            return [*self._offers.fulfil(sender, message), *self._send_next()]
        return self._restate(now_us, sender, message)

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Continue what was delayed."""
        self._set_timers.discard(str(name))
        if name == "update":
            return [s for version in self._trees.announced() for s in version.updates()]
        if name == "offer":
            return self._offers.offer_owed(now_us)
        if name == "hand over":
            return self._offers.offer_late()
        if name == "pass on":
            return self._offers.offer_onward()
        if name == "send next":
            return self._send_next()
        return self._ask(now_us)

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Try again while the tree has the link; otherwise the next link causes a new attempt."""
        if isinstance(message, SubscriptionUpdate):
            return self._begin_again(now_us, to, message)
        if isinstance(message, StateWanted):
            return ()  # is requested again
        if isinstance(message, Wanted):
            return self._offers.ask_again(to, message)
        events = message.events if isinstance(message, Offer) else (message.event_id,)
        still_held = list(filter(None, map(self._buffer.get, events)))
        if still_held and self._trees.is_linked(to):
            return [Send(to, message, reliable=True)]
        for held in still_held:
            held.forget_peer(to)
        return ()

    # Publishing

    def _publish(self, now_us: int, publish: Publish) -> Effects:
        event_id, payload = publish.event_id, publish.payload
        event = Event(event_id, 0, self._current, now_us, publish.content, payload)
        effects: list[Effect] = []
        if self._seen.is_new(event_id, now_us):
            self._history.note(event_id)
            effects += self._tell_history()
            effects += self._forward(self._buffer.add(now_us, event, []))
        return [*effects, *self._ask_for_tree(event_id)]

    def _ask_for_tree(self, event_id: int) -> Effects:
        """Request a new tree when it is due; the next few publishers do, too, in case one has
        failed.
        """
        every, most = self.settings.recalculate_every_events, self.settings.recalculations
        is_time = 0 < every <= event_id and event_id % every < _ASKERS
        is_time = is_time and (most == 0 or event_id // every <= most)
        return [Announce(Recalculate(self._current))] if is_time else ()

    # Events

    def _take_event(self, now_us: int, sender: PeerId, event: Event) -> Effects:
        if not self._exists(event.event_id):
            return ()
        hop_count = min(event.hop_count + 1, MAX_HOPS)
        copy = {"event_id": event.event_id, "from": sender, "hop_count": hop_count}
        held = self._buffer.get(event.event_id)
        if not self._seen.is_new(event.event_id, event.published_us):
            if held is not None:
                held.note_known(sender)
            return [Record("event_repeated", copy)]
        is_match = self._wants(event)
        known = {"is_match": is_match, "published_us": event.published_us}
        effects: list[Effect] = [Record("event_received", copy | known)]
        if is_match:
            self._history.note(event.event_id)
            effects += [Deliver(event.event_id, sender, hop_count), *self._tell_history()]
        else:
            self._history.hear_of(event.event_id)
        onward = replace(event, hop_count=hop_count)
        if held is None:
            return [*effects, *self._forward(self._buffer.add(now_us, onward, [sender]))]
        return [*effects, *self._hand_out(sender, held, onward)]

    def _exists(self, event_id: int) -> bool:
        return 1 <= event_id <= self._events

    def _wants(self, event: Event) -> bool:
        return self._trees.wants(point_of(event.point), event.published_us)

    def _tell_history(self) -> Effects:
        self._noted += 1
        is_due = self._noted % self.settings.history_every_events == 0
        return [Announce(self._history)] if is_due else ()

    def _forward(self, held: HeldEvent) -> Effects:
        """Send an event over its own tree, and keep it for newer ones."""
        event = held.event
        sends: list[Effect] = []
        version = self._trees.get(event.version)
        if version is not None:
            for peer in sorted(version.wanting(event)):
                if peer != LOCAL and peer not in held.known:
                    held.known.append(peer)
                    sends.append(Send(peer, event, reliable=True))
        return [*sends, *self._put_off([held])]

    def _hand_out(self, sender: PeerId, held: HeldEvent, event: Event) -> Effects:
        """Send an event that was offered before to the peers that asked, and offer it to the
        others.
        """
        held.event, held.is_here = event, True
        held.note_known(sender)
        wanters = [peer for peer in held.wanters if peer != sender]
        for peer in wanters:
            held.note_known(peer)
        held.wanters, held.offerers, held.asked = [], [], []
        sends = [Send(peer, event, reliable=True) for peer in wanters]
        return [*sends, *self._pass_on(event.version, sender, [held]), *self._put_off([held])]

    # Offers

    def _owe(self, version: ContentTree, peers: Iterable[PeerId]) -> Effects:
        is_due = self._offers.owe(version, peers)
        return self._wake("offer", self.settings.replay_delay_s) if is_due else ()

    def _put_off(self, events: Iterable[HeldEvent]) -> Effects:
        is_due = self._offers.put_off(events)
        return self._wake("hand over", self.settings.handover_delay_s) if is_due else ()

    def _pass_on(self, version: int, sender: PeerId, events: list[HeldEvent]) -> Effects:
        is_due = self._offers.pass_on(version, sender, events)
        return self._wake("pass on", self.settings.pace_delay_s) if is_due else ()

    def _send_next(self) -> Effects:
        """Send some of the requested events, unless that was done a moment ago."""
        if "send next" in self._set_timers:
            return ()
        batch = self._paced.next_batch()
        return [*batch, *self._wake("send next", self.settings.pace_delay_s)] if batch else ()

    def _take_offer(self, now_us: int, sender: PeerId, offer: Offer) -> Effects:
        """Ask for wanted events, and forward the offer of the others."""
        wanted: list[int] = []
        onward: list[HeldEvent] = []
        for held in self._unheard_of(now_us, sender, offer):
            if sender not in held.offerers:
                held.offerers.append(sender)
            if held.wanters or self._wants(held.event):
                wanted.append(held.event.event_id)
                held.asked.append(sender)
            else:
                onward.append(held)
        effects: list[Effect] = [ask(sender, offer.version, wanted)] if wanted else []
        effects += self._put_off(onward)  # the tree of the offer may not be repaired any more
        return [*effects, *self._pass_on(offer.version, sender, onward)]

    def _unheard_of(self, now_us: int, sender: PeerId, offer: Offer) -> Iterable[HeldEvent]:
        """The offered events that are not here, with their known data."""
        some = zip(offer.events, offer.points, offer.published_ms, strict=True)
        for event_id, point, published_ms in some:
            held = self._buffer.get(event_id)
            if held is not None and held.is_here:
                if offer.is_here:
                    held.note_known(sender)
                    self._paced.strike(sender, event_id)
            elif event_id not in self._seen and self._exists(event_id):
                # Rather too late than too early: peers that want it see the exact time.
                published_us = published_ms * 1_000 + 999
                event = Event(event_id, 0, offer.version, published_us, point, b"")
                yield held or self._buffer.add(now_us, event, [], is_here=False)

    # Trees and subscriptions

    def _follow(self, now_us: int, tree: Tree) -> Effects:
        version = self._trees.follow(tree)
        if version is None:
            return ()
        appeared = version.set_links(now_us, tree.links)
        return [
            *self._owe(version, appeared),
            *self._wake("update", self.settings.update_delay_s),
            *self._wake("ask", self.settings.ask_after_s),
        ]

    def _subscribe(self, now_us: int, subscription: Subscription) -> Effects:
        if not self._trees.subscribe(now_us, subscription):
            return ()
        return self._wake("update", self.settings.update_delay_s)

    def _unsubscribe(self, subscription: Subscription) -> Effects:
        if not self._trees.unsubscribe(subscription):
            return ()
        return self._wake("update", self.settings.update_delay_s)

    def _take_update(self, now_us: int, sender: PeerId, update: SubscriptionUpdate) -> Effects:
        version = self._trees.make(update.version)
        if version is None:
            return ()
        if version.take(now_us, sender, update):
            self._buffer.forget_known(sender)  # it may have restarted
        if not version.has_link(sender):
            return ()
        effects = [
            *self._owe(version, (sender,)),
            *self._wake("update", self.settings.update_delay_s),
        ]
        if version.is_current:
            return [*effects, *self._tell_ready()]
        return [*effects, *self._wake("ask", self.settings.ask_after_s)]

    def _restate(self, now_us: int, sender: PeerId, wanted: StateWanted) -> Effects:
        """Start a new epoch for a peer that lacks something, unless one is in progress."""
        version = self._trees.linked(wanted.version, sender)
        if version is None:
            return ()
        epoch = version.links[sender].outgoing.epoch
        if 0 < wanted.epoch < epoch or now_us - epoch < _us(self.settings.ask_after_s):
            return ()
        version.begin_epoch(now_us, sender)
        return self._wake("update", self.settings.update_delay_s)

    def _begin_again(self, now_us: int, to: PeerId, lost: SubscriptionUpdate) -> Effects:
        version = self._trees.linked(lost.version, to)
        if version is None:
            return ()
        if version.links[to].outgoing.epoch == lost.epoch:
            version.begin_epoch(now_us, to)
        return self._wake("update", self.settings.update_delay_s)

    def _ask(self, now_us: int) -> Effects:
        versions = self._trees.announced()
        wait_us = _us(self.settings.ask_after_s)
        asked = [question for v in versions for question in v.questions(now_us, wait_us)]
        if all(version.is_current for version in versions):
            return asked
        return [*asked, *self._wake("ask", self.settings.ask_after_s)]

    def _tell_ready(self) -> Effects:
        """Once: events can be published on a tree, and all subscriptions beyond its links are
        known.
        """
        version = self._trees.get(self._current)
        if self._is_ready or version is None or not version.is_current:
            return ()
        self._is_ready = True
        return [Announce(Ready())]

    def _wake(self, name: str, delay_s: float) -> Effects:
        """Set a timer, unless it is set."""
        if name in self._set_timers:
            return ()
        self._set_timers.add(name)
        return [SetTimer(name, _us(delay_s))]


def _us(seconds: float) -> int:
    return int(seconds * 1e6)
