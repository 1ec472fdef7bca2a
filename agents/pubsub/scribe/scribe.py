"""Scribe (Castro et al., JSAC 2002): a tree for each topic, made of the routes of its subscribers.

A subscriber joins the next peer on the route to the topic's rendezvous point, which joins the next
one in turn, so the routes make a tree. Events go up to the rendezvous point and down the tree, and
are delivered on the way down. Where the overlay changes, the parent of a peer changes with the next
hop of the route.

Scribe delivers as long as nothing fails. Additions for delivery exactly once:

- Events are in custody (`agents.pubsub.custody`) from the publisher to all leaves.
- Every peer of a tree keeps events for `keep_s`. A peer that joins reports its events, and is sent
  those that it lacks, so an event sent while a peer had no parent is not lost. A rendezvous point
  asks a child for events that only the child has.
- `Rendezvous` ensures that the rendezvous point, which may change, has all events.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, ClassVar, Literal

from agents.announcements import (
    Interests,
    NextHop,
    PeerLost,
    PeerRestarted,
    Publish,
    Ready,
    RingView,
    Watch,
)
from agents.protocol import (
    Announce,
    Deliver,
    Effect,
    Effects,
    Neighbours,
    PeerId,
    Protocol,
    Record,
    Send,
    Service,
    SetTimer,
    Surroundings,
)
from agents.pubsub.custody import Custody, Part
from agents.pubsub.scribe.joins import Joins, write_joins
from agents.pubsub.scribe.messages import (
    IDS,
    AtRoot,
    Confirm,
    Downward,
    Join,
    Leave,
    TopicEvent,
    Upward,
    read_event,
    write_event,
)
from agents.pubsub.scribe.rendezvous import Rendezvous
from agents.pubsub.scribe.settings import RendezvousSettings
from agents.pubsub.scribe.topic_tree import TopicTree
from agents.pubsub.table_count import TableCount
from agents.wire.codec import U32_MAX

_TICK_US = 1_000_000
_LOOK_TICKS = 5  # between two checks of all parents, in case an overlay does not announce a change
_SETTLE_US = 10_000  # after a change in the overlay, to handle several changes together
SLACK_MS = 10_000  # events from before a subscription are accepted, because a message may take long
_REMEMBERED = 4  # multiple of `keep_s` for which an event is recognised


class Scribe(Protocol):
    """A tree for each topic, made of the routes from subscribers to its rendezvous point."""

    Settings = RendezvousSettings
    messages = (Upward, Downward, Join, Leave, Confirm, AtRoot, *Custody.messages)
    guarantee: ClassVar[Literal["exactly-once", "none"]] = "exactly-once"
    needs: ClassVar[Service | None] = "keys"

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._keep_us = int(self.settings.keep_s * 1e6)
        self._quiet_us = int(self.settings.quiet_s * 1e6)
        self.custody = Custody(self, self.settings.keep_s)
        self.rendezvous = Rendezvous(self.me, self.settings, self.custody, self)
        self.rendezvous.is_alone = bool(self.contacts)
        self.trees: dict[int, TopicTree] = {}
        self._seen_us: dict[int, int] = {}  # times of first arrivals of events, the oldest first
        self._delivered_us: dict[int, int] = {}
        self._joins = Joins()
        self._table_count = TableCount()
        self._overlay: dict[type, Any] = {}  # last announcement
        self._watched: frozenset[PeerId] = frozenset()
        self._last_version = self._changed_us = self._counted_us = self._ticks = 0
        self._is_ready = self._is_watch_old = False
        self._handlers: dict[type, Callable[[int, PeerId, Any], Effects]] = {
            Upward: self.rendezvous.on_upward,
            Downward: self._on_downward,
            Join: self._on_join,
            Leave: self._on_leave,
            Confirm: self.rendezvous.on_confirm,
            AtRoot: self.rendezvous.on_at_root,
        }

    def on_start(self, now_us: int) -> Effects:
        """Begin the periodic work."""
        self.note_change(now_us)
        return [SetTimer("tick", _TICK_US)]

    def on_stop(self, now_us: int) -> Effects:
        """Leave all parents."""
        trees = self.trees.values()
        return [self._leave(now_us, tree.parent, tree.topic) for tree in trees if tree.parent]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Take part in trees and custody."""
        handle = self._handlers.get(type(message), self.custody.on_message)
        return self._complete(handle(now_us, sender, message))

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Do the work of a timer."""
        if self.custody.is_own_timer(name):
            return self._complete(self.custody.on_timer(now_us, name))
        if name == "look":
            return self._complete(self._look(now_us))
        self._ticks += 1
        effects: list[Effect] = [SetTimer("tick", _TICK_US), *self.rendezvous.ask(now_us)]
        if self._ticks % _LOOK_TICKS == 0:
            self._expire(now_us)
            effects += self._look(now_us)
        return self._complete([*effects, *self._count_table(now_us), *self._become_ready(now_us)])

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Join a parent again that did not acknowledge it, or send an event again."""
        if isinstance(message, Join):
            tree = self.trees.get(message.topic)
            is_parent = tree is not None and tree.parent == to
            return self._join(now_us, tree) if tree and is_parent else ()
        return self._complete(self.custody.on_give_up(now_us, to, message))

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Handle changes of the overlay, failures and interests, and publish."""
        if isinstance(content, Neighbours | RingView | NextHop):
            return self._follow(now_us, content)
        if isinstance(content, PeerLost | PeerRestarted):
            return self._complete(self._do_without(now_us, content))
        if isinstance(content, Interests):
            return self._complete(self._change_interests(now_us, content.contents))
        if isinstance(content, Publish):
            self._seen_us[content.event_id] = self._delivered_us[content.event_id] = now_us
            event = TopicEvent(content.event_id, content.content, content.payload, 0, now_us)
            return self._complete(self.rendezvous.publish(now_us, event))
        return ()

    def on_part_returned(
        self, now_us: int, part: Part, message: Any, receiver: PeerId | None
    ) -> Effects:
        """Send an event up by another route, or to a child again if it is still one."""
        if isinstance(message, Upward):
            return self.rendezvous.on_returned(now_us, part, message, receiver)
        tree = self.trees.get(message.topic)
        if tree is None or receiver not in tree.children:
            return ()
        return self.custody.send(now_us, part, receiver, message)

    def on_part_done(self, now_us: int, part: Part) -> Effects:
        """An event of this peer has reached all subscribers."""
        event_id: Any = part.key[0] if isinstance(part.key, tuple) else part.key
        return self.rendezvous.on_done(now_us, event_id)

    def tree_of(self, topic: int) -> TopicTree:
        """The state of a topic, created if there is none."""
        tree = self.trees.get(topic)
        if tree is None:
            tree = self.trees[topic] = TopicTree(topic, self._keep_us)
        return tree

    def note_copy(self, now_us: int, event: TopicEvent, sender: PeerId) -> Effects:
        """Record a copy of an event."""
        copy = {"event_id": event.event_id, "from": sender, "hop_count": event.hops}
        if event.event_id in self._seen_us:
            return [Record("event_repeated", copy)]
        self._seen_us[event.event_id] = now_us
        return [Record("event_received", copy)]

    def handle(self, now_us: int, part: Part, event: TopicEvent, sender: PeerId | None) -> Effects:
        """Keep an event, deliver it, and send it to all children that lack it."""
        tree = self.tree_of(event.topic)
        if event.event_id in tree.events:
            return ()
        tree.keep(now_us, event)
        effects: list[Effect] = [*self._deliver(now_us, tree, event, sender or self.me)]
        from_parent = sender if sender == tree.parent else None
        for child in tree.receivers(event, from_parent):
            effects += self._send_down(now_us, part, tree, child, event)
        return effects

    def _deliver(self, now_us: int, tree: TopicTree, event: TopicEvent, sender: PeerId) -> Effects:
        since_us, event_id = tree.wanted_since_us, event.event_id
        if since_us is None or event.published_us < since_us or event_id in self._delivered_us:
            return ()
        self._delivered_us[event_id] = now_us
        return [Deliver(event_id, sender, event.hops)]

    def _send_down(
        self, now_us: int, part: Part, tree: TopicTree, child: PeerId, event: TopicEvent
    ) -> Effects:
        tree.note_sent(now_us, child, event.event_id)
        return self.custody.send(now_us, part, child, write_event(Downward, now_us, event))

    def _on_downward(self, now_us: int, sender: PeerId, message: Downward) -> Effects:
        event = read_event(now_us, message)
        key = (event.event_id, event.topic)
        part = self.custody.take(now_us, sender, message.token, key, is_relay=False)
        effects: list[Effect] = [*self.note_copy(now_us, event, sender)]
        tree = self.trees.get(event.topic)
        if tree is None or tree.parent != sender:  # it does not know that this peer left it
            effects.append(self._leave(now_us, sender, event.topic))
        if tree is not None and tree.is_needed:
            effects += self.handle(now_us, part, event, sender)
        return [*effects, *self.custody.settle(now_us, part)]

    def _on_join(self, now_us: int, sender: PeerId, join: Join) -> Effects:
        tree = self.tree_of(join.topic)
        child = tree.children.get(sender)
        if child is not None and child.version == join.version:
            return ()
        has = self._joins.take(sender, join)
        return () if has is None else self._add_child(now_us, tree, sender, join, has)

    def _add_child(
        self, now_us: int, tree: TopicTree, sender: PeerId, join: Join, has: list[int]
    ) -> Effects:
        """Send a new child missing events, and ask it for events that only it may have."""
        tree.add_child(now_us, sender, join.version, join.wants_ms, has)
        self.note_change(now_us)
        effects: list[Effect] = []
        for event in tree.lacks(sender):
            part = self.custody.begin(now_us, (event.event_id, event.topic), is_relay=False)
            effects += self._send_down(now_us, part, tree, sender, event)
            effects += self.custody.settle(now_us, part)
        effects += self._place(now_us, tree)
        return [*effects, *(self._pull(now_us, tree, sender, has) if tree.is_root else ())]

    def _pull(
        self, now_us: int, tree: TopicTree, child: PeerId, events: Iterable[int]
    ) -> list[Effect]:
        missing = tree.pull(now_us, events)
        return [
            Send(child, AtRoot(tree.topic, (), tuple(missing[at : at + IDS])), reliable=True)
            for at in range(0, len(missing), IDS)
        ]

    def _on_leave(self, now_us: int, sender: PeerId, leave: Leave) -> Effects:
        tree = self.trees.get(leave.topic)
        if tree is None or not self._joins.is_news(sender, leave):
            return ()
        if tree.children.pop(sender, None) is None:
            return ()
        self.note_change(now_us)
        left = self.custody.withdraw(now_us, sender, lambda one: _is_down(one, leave.topic))
        return [*left, *self._place(now_us, tree)]

    def _follow(self, now_us: int, content: Neighbours | RingView | NextHop) -> Effects:
        """Check all parents soon if the overlay has changed."""
        said = frozenset(content.delays_us) if isinstance(content, Neighbours) else content
        if self._overlay.get(type(content)) == said:
            return ()
        self._overlay[type(content)] = said
        if isinstance(content, NextHop):
            self.rendezvous.router = content.router
        if isinstance(content, RingView):
            self.rendezvous.is_alone = not content.successors and bool(self.contacts)
        elif isinstance(content, Neighbours) and RingView not in self._overlay:
            self.rendezvous.is_alone = not content.delays_us and bool(self.contacts)
        self.note_change(now_us)
        return [SetTimer("look", _SETTLE_US)]

    def _do_without(self, now_us: int, failed: PeerLost | PeerRestarted) -> Effects:
        """Remove a failed peer from all trees; one that restarted may have joined again."""
        peer = failed.peer
        self.note_change(now_us)
        self.rendezvous.forget(peer)
        for tree in self.trees.values():
            child = tree.children.get(peer)
            is_lost = isinstance(failed, PeerLost)
            if child and (is_lost or child.version < failed.incarnation):  # type: ignore[union-attr]
                del tree.children[peer]
            if tree.parent == peer:
                tree.parent = None
        return [*self._look(now_us), *self.custody.on_announcement(now_us, failed)]

    def _change_interests(self, now_us: int, topics: frozenset[int]) -> Effects:
        for topic in topics:
            tree = self.tree_of(topic)
            if tree.wanted_since_us is None:
                tree.wanted_since_us = now_us
        for topic, tree in self.trees.items():
            if topic not in topics:
                tree.wanted_since_us = None
        return self._look(now_us)

    def _look(self, now_us: int) -> Effects:
        """Ensure that every tree has the right parent, and retry held messages."""
        effects: list[Effect] = [*self.rendezvous.redirect(now_us)]
        for tree in list(self.trees.values()):
            effects += self._place(now_us, tree)
            if tree.wanted_since_us is not None and self.rendezvous.can_route:
                effects += self.rendezvous.prepare(now_us, tree.topic)
            if tree.is_unused:
                del self.trees[tree.topic]
        return [*effects, *self.custody.retry(now_us)]

    def _place(self, now_us: int, tree: TopicTree) -> Effects:
        """Join the next peer towards the rendezvous point, if this peer must be in the tree."""
        if not self.rendezvous.can_route:
            return ()
        next_hop = self.rendezvous.next_hop(tree.topic)
        was_root, tree.is_root = tree.is_root, next_hop is None
        former, tree.parent = tree.parent, next_hop if tree.is_needed else None
        effects: list[Effect] = []
        if tree.parent is not None and (tree.parent != former or tree.demands_more):
            effects += self._join(now_us, tree)
        if former is not None and former != tree.parent:
            effects.append(self._leave(now_us, former, tree.topic))
        if former != tree.parent or was_root != tree.is_root:
            self.note_change(now_us)
        if was_root and not tree.is_root:
            self.rendezvous.hand_over(now_us, tree.events.values())
        if tree.is_root and not was_root:
            for peer, child in tree.children.items():
                effects += self._pull(now_us, tree, peer, list(child.has_us))
        return effects

    def _join(self, now_us: int, tree: TopicTree) -> list[Effect]:
        """Send the parent the events that the subtree wants and has."""
        assert tree.parent is not None
        since_us, has = tree.renew()
        wants_ms = min(max(0, now_us - since_us) // 1000 + SLACK_MS, U32_MAX)
        joins = write_joins(tree.topic, self._next_version(now_us), wants_ms, sorted(has))
        return [Send(tree.parent, join, reliable=True) for join in joins]

    def _leave(self, now_us: int, parent: PeerId, topic: int) -> Effect:
        return Send(parent, Leave(topic, self._next_version(now_us)), reliable=True)

    def _next_version(self, now_us: int) -> int:
        """A number that is higher than all earlier ones, also of former incarnations."""
        self._last_version = max(now_us, self._last_version + 1)
        return self._last_version

    def _expire(self, now_us: int) -> None:
        for tree in self.trees.values():
            tree.expire(now_us)
        oldest_us = now_us - _REMEMBERED * self._keep_us
        for noted_us in (self._seen_us, self._delivered_us):
            while noted_us and noted_us[first := next(iter(noted_us))] < oldest_us:
                del noted_us[first]

    def _count_table(self, now_us: int) -> Effects:
        """Record the size of the table, if it changed."""
        if self._changed_us < self._counted_us:
            return ()
        self._counted_us = now_us
        return self._table_count.record(self._table())

    def _become_ready(self, now_us: int) -> Effects:
        """Announce readiness once nothing has changed for a while."""
        is_quiet = now_us - self._changed_us >= self._quiet_us
        if self._is_ready or not self.rendezvous.can_route or not is_quiet:
            return ()
        self._is_ready = True
        return [Announce(Ready())]

    def _table(self) -> Iterator[tuple[int, PeerId]]:
        """Each topic with the peers that its events come from and go to."""
        for topic, tree in self.trees.items():
            yield from ((topic, child) for child in tree.children)
            if tree.parent is not None:
                yield topic, tree.parent

    def _depends_on(self) -> set[PeerId]:
        """The peers in the table, and cached rendezvous points."""
        return {*self.rendezvous.roots, *(peer for _, peer in self._table())}

    def note_change(self, now_us: int) -> None:
        """Parents, children, cached rendezvous points or the overlay have changed."""
        self._changed_us, self._is_watch_old = now_us, True

    def _complete(self, effects: Effects) -> Effects:
        """Watch the peers that this one depends on."""
        if not self._is_watch_old:
            return effects
        self._is_watch_old = False
        peers = self._depends_on()
        if peers == self._watched:
            return effects
        self._watched = frozenset(peers)
        return [*effects, Announce(Watch("scribe", self._watched))]


def _is_down(message: Any, topic: int) -> bool:
    return isinstance(message, Downward) and message.topic == topic
