"""iScribe (Chen et al., BeaConvey): a tree for each topic, made of routes down to subscribers.

The rendezvous point of a topic learns its subscribers (`Subscribe`, routed up) and has a branch
created to each, over its own fingers and those of the peers on the way (`Graft`). So the tree
consists of links towards the subscribers, where Scribe's tree uses links towards the rendezvous
point backwards. Routes to subscribers go by position, so the overlay has to be a ring.

All state is soft: subscribers repeat their subscriptions every `refresh_s`, with the events that
they have, and are sent those that they lack. A peer that loses the previous peer of a branch
subscribes again on behalf of the subscribers below, so a new rendezvous point soon knows most
subscribers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace

from agents.announcements import NextHop, PeerLost, PeerRestarted, RingView
from agents.protocol import Effect, Effects, Neighbours, PeerId, Send, Surroundings
from agents.pubsub.custody import Custody, Part
from agents.pubsub.scribe.inverse_messages import Direct, Graft, Subscribe
from agents.pubsub.scribe.messages import (
    IDS,
    AtRoot,
    Confirm,
    Downward,
    TopicEvent,
    Upward,
    read_event,
    write_event,
)
from agents.pubsub.scribe.scribe import SLACK_MS, Scribe
from agents.pubsub.scribe.settings import InverseScribeSettings
from agents.pubsub.scribe.topic_tree import TopicTree
from agents.wire.codec import U32_MAX

_MOST_HOPS = 255
_LIVES = 3  # periods without a refresh after which a subscriber is removed
_IN_FLIGHT_US = 3_000_000  # younger events may still be under way
_AGAIN_US = 1_000_000  # shortest time between two subscriptions


@dataclass(slots=True)
class Branch:
    """The branch to a subscriber: previous peer, next peer, and former next peers."""

    position: int
    version: int
    root: PeerId
    above: PeerId | None
    below: PeerId | None
    renewed_us: int
    former: PeerId | None = None


class InverseScribe(Scribe):
    """A tree for each topic, of the routes from its rendezvous point to subscribers; on rings."""

    Settings = InverseScribeSettings
    messages: ClassVar[tuple[type, ...]] = (  # type: ignore[misc]
        Upward, Downward, Confirm, AtRoot, Subscribe, Graft, Direct, *Custody.messages,
    )  # fmt: skip
    needs = "positions"

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._refresh_us = int(self.settings.refresh_s * 1e6)
        self._view: RingView | None = None
        self._branches: dict[int, dict[PeerId, Branch]] = {}  # by topic and subscriber
        self._got_us: dict[
            int, dict[int, int]
        ] = {}  # events of own topics, with the times of their arrival
        self._told_us: dict[int, int] = {}  # time of this peer's last subscription to each topic
        self._root_of: dict[int, PeerId] = {}  # previous peers of branches
        self._lists: dict[tuple[PeerId, int], dict[int, Subscribe]] = {}
        self._handlers = {
            Upward: self.rendezvous.on_upward,
            Downward: self._on_downward,
            Confirm: self.rendezvous.on_confirm,
            AtRoot: self.rendezvous.on_at_root,
            Subscribe: self._on_subscribe,
            Graft: self._on_graft,
            Direct: self._on_direct,
        }

    def on_stop(self, now_us: int) -> Effects:
        """Unsubscribe from all topics."""
        wanted = [tree for tree in self.trees.values() if tree.wanted_since_us is not None]
        return [one for tree in wanted for one in self._subscribe(now_us, tree, is_wanted=False)]

    def handle(self, now_us: int, part: Part, event: TopicEvent, sender: PeerId | None) -> Effects:
        """Keep an event, deliver it, and send it down all branches."""
        tree = self.tree_of(event.topic)
        if event.event_id in tree.events:
            return ()
        tree.keep(now_us, event)
        effects: list[Effect] = [*self._deliver(now_us, tree, event, sender or self.me)]
        from_above = None if self.rendezvous.is_root(event.topic) else sender
        branches = self._branches.get(event.topic, {}).values()
        below = dict.fromkeys(one.below for one in branches if one.below not in (None, from_above))
        for peer in below:
            assert peer is not None
            effects += self.custody.send(now_us, part, peer, write_event(Downward, now_us, event))
        return effects

    def on_part_returned(
        self, now_us: int, part: Part, message: Any, receiver: PeerId | None
    ) -> Effects:
        """Send an event over another peer, after a branch has moved."""
        if isinstance(message, Direct):
            return self._pass_direct(now_us, part, message)
        if not isinstance(message, Downward):
            return super().on_part_returned(now_us, part, message, receiver)
        branches = self._branches.get(message.topic, {})
        effects: list[Effect] = []
        if receiver is not None and any(one.below == receiver for one in branches.values()):
            effects += self.custody.send(now_us, part, receiver, message)
        for subscriber, branch in branches.items():
            if branch.former == receiver:
                event = read_event(now_us, message)._replace(hops=message.hops)
                direct = _direct(now_us, event, subscriber, branch.position)
                effects += self._pass_direct(now_us, part, direct)
        return effects

    def _on_downward(self, now_us: int, sender: PeerId, message: Downward) -> Effects:
        event = read_event(now_us, message)
        key = (event.event_id, event.topic)
        part = self.custody.take(now_us, sender, message.token, key, is_relay=False)
        effects = [*self.note_copy(now_us, event, sender)]
        effects += self.handle(now_us, part, event, sender)
        return [*effects, *self.custody.settle(now_us, part)]

    def _deliver(self, now_us: int, tree: TopicTree, event: TopicEvent, sender: PeerId) -> Effects:
        if tree.wanted_since_us is not None:
            self._got_us.setdefault(tree.topic, {})[event.event_id] = now_us
        return super()._deliver(now_us, tree, event, sender)

    def _on_direct(self, now_us: int, sender: PeerId, message: Direct) -> Effects:
        """Deliver an event that this peer lacked, or pass it on."""
        event = TopicEvent(
            message.event_id,
            message.topic,
            message.payload,
            message.hops + 1,
            now_us - message.age_ms * 1000,
        )
        is_mine = message.subscriber == self.me
        key = (event.event_id, event.topic, message.subscriber)
        part = self.custody.take(now_us, sender, message.token, key, is_relay=not is_mine)
        effects: list[Effect] = [*self.note_copy(now_us, event, sender)]
        tree = self.trees.get(event.topic)
        if is_mine and tree is not None:
            effects += self._deliver(now_us, tree, event, sender)
        elif part.is_new and not is_mine:
            direct = _direct(now_us, event, message.subscriber, message.position)
            is_loop = part.is_loop
            pass_on = self.custody.hold if is_loop else self._pass_direct
            effects += pass_on(now_us, part, direct)
        return [*effects, *self.custody.settle(now_us, part)]

    def _pass_direct(self, now_us: int, part: Part, message: Direct) -> Effects:
        """Send an event towards a subscriber; it ends if no finger is nearer."""
        to = self._towards(message.position)
        return self.custody.send(now_us, part, to, message) if to is not None else ()

    def _towards(self, position: int) -> PeerId | None:
        """The farthest finger that does not pass a position; None if there is none."""
        view = self._view
        if view is None or position == view.position:
            return None
        wanted = (position - view.position) % view.modulus
        found = None
        for finger in view.fingers:
            if (finger.position - view.position) % view.modulus <= wanted:
                found = finger.peer
        return found

    def _subscribe(self, now_us: int, tree: TopicTree, is_wanted: bool = True) -> list[Effect]:
        """Send the rendezvous point a subscription of this peer, or of a subscriber below it."""
        if self._view is None or not self.rendezvous.can_route:
            return []
        to = self.rendezvous.next_hop(tree.topic)
        self._told_us[tree.topic] = now_us
        if to is None:
            return []
        got = self._got_us.get(tree.topic, {})
        ids = sorted(got) if is_wanted else []
        since_us = tree.wanted_since_us if tree.wanted_since_us is not None else now_us
        wants_ms = min((now_us - since_us) // 1000 + SLACK_MS, U32_MAX)
        version, pieces = self._next_version(now_us), max(1, -(-len(ids) // IDS))
        return [
            Send(
                to,
                Subscribe(
                    tree.topic, self.me, self._view.position, version, wants_ms, is_wanted, False,
                    0, piece, pieces, tuple(ids[piece * IDS :][:IDS]),
                ),
                reliable=True,
            )
            for piece in range(pieces)
        ]  # fmt: skip

    def _speak_for(self, now_us: int, topic: int, subscriber: PeerId, branch: Branch) -> Effects:
        """Subscribe on behalf of a peer whose branch has lost its previous peer."""
        told = Subscribe(
            topic, subscriber, branch.position, branch.version, 0, True, True, 0, 0, 1, ()
        )
        return self._on_subscribe(now_us, self.me, told)

    def _on_subscribe(self, now_us: int, sender: PeerId, said: Subscribe) -> Effects:
        """Forward a subscription, or create a branch as the rendezvous point."""
        if not self.rendezvous.can_route:
            return ()
        to = self.rendezvous.next_hop(said.topic)
        if to is not None:
            if said.hops == _MOST_HOPS:
                return ()
            return [Send(to, replace(said, hops=said.hops + 1), reliable=True)]
        if said.subscriber == self.me:
            return ()
        graft = Graft(
            said.topic, said.subscriber, said.position, said.version, self.me, said.is_wanted
        )
        effects = [*self._on_graft(now_us, self.me, graft)]
        if not said.is_proxy and said.is_wanted:
            effects += self._supply(now_us, said)
        return effects

    def _supply(self, now_us: int, said: Subscribe) -> list[Effect]:
        """Send a subscriber the events that it lacks, once all pieces of its list are there."""
        key = (said.subscriber, said.topic)
        pieces = self._lists.get(key, {})
        if any(piece.version != said.version for piece in pieces.values()):
            pieces = {}
        pieces[said.piece] = said
        self._lists[key] = pieces
        if len(pieces) < said.pieces:
            return []
        del self._lists[key]
        has = {event for piece in pieces.values() for event in piece.has}
        effects: list[Effect] = []
        for event in self.tree_of(said.topic).events.values():
            is_due = now_us - said.wants_ms * 1000 <= event.published_us < now_us - _IN_FLIGHT_US
            if is_due and event.event_id not in has:
                key_of = (event.event_id, event.topic, said.subscriber)
                if not self.custody.is_relaying(key_of):
                    part = self.custody.begin(now_us, key_of, is_relay=True)
                    direct = _direct(now_us, event, said.subscriber, said.position)
                    effects += self._pass_direct(now_us, part, direct)
                    effects += self.custody.settle(now_us, part)
        return effects

    def _on_graft(self, now_us: int, sender: PeerId, graft: Graft) -> Effects:
        """Create, renew or remove a branch, and forward this to its next peer."""
        if graft.subscriber == self.me:
            return self._note_root(now_us, graft)
        branches = self._branches.setdefault(graft.topic, {})
        known = branches.get(graft.subscriber)
        if known is not None and graft.version < known.version:
            return ()
        if not graft.is_wanted:
            if known is None or known.above not in (None, sender):
                return ()
            del branches[graft.subscriber]
            self.note_change(now_us)
            return [Send(known.below, graft, reliable=True)] if known.below else ()
        below = self._towards(graft.position)
        if known is None or (known.above, known.below) != (sender, below):
            self.note_change(now_us)
        former = known.former if known is not None and known.below == below else None
        branches[graft.subscriber] = Branch(
            graft.position, graft.version, graft.root, sender, below, now_us, former
        )
        effects: list[Effect] = []
        if known is not None and known.below not in (None, below):
            assert known.below is not None
            cut = replace(graft, is_wanted=False)
            effects.append(Send(known.below, cut, reliable=True))
        return [*effects, *([Send(below, graft, reliable=True)] if below is not None else ())]

    def _note_root(self, now_us: int, graft: Graft) -> Effects:
        """Report at once to a new rendezvous point which events this peer has."""
        tree, topic = self.trees.get(graft.topic), graft.topic
        if tree is None or tree.wanted_since_us is None:
            return ()
        is_same = self._root_of.get(topic) == graft.root
        self._root_of[topic] = graft.root
        if is_same or now_us - self._told_us.get(topic, 0) < _AGAIN_US:
            return ()
        return self._subscribe(now_us, tree)

    def _follow(self, now_us: int, content: Neighbours | RingView | NextHop) -> Effects:
        if isinstance(content, RingView):
            if self._view is not None and content.position != self._view.position:
                self._told_us.clear()
            self._view = content
        return super()._follow(now_us, content)

    def _do_without(self, now_us: int, failed: PeerLost | PeerRestarted) -> Effects:
        """Move all branches over a failed peer, and subscribe again for those that came from it."""
        self.note_change(now_us)
        self.rendezvous.forget(failed.peer)
        effects: list[Effect] = []
        for topic, branches in self._branches.items():
            for subscriber, branch in list(branches.items()):
                if branch.below == failed.peer:
                    branch.below, branch.former = None, failed.peer
                if branch.above == failed.peer or branch.root == failed.peer:
                    effects += self._speak_for(now_us, topic, subscriber, branch)
        for topic, root in list(self._root_of.items()):
            if root == failed.peer:
                self._root_of.pop(topic)
                self._told_us.pop(topic, None)
        effects += self._look(now_us)
        return [*effects, *self.custody.on_announcement(now_us, failed)]

    def _change_interests(self, now_us: int, topics: frozenset[int]) -> Effects:
        held = {topic for topic, tree in self.trees.items() if tree.wanted_since_us is not None}
        effects: list[Effect] = []
        for topic in sorted(held - topics):
            effects += self._subscribe(now_us, self.trees[topic], is_wanted=False)
            for known in (self._got_us, self._told_us, self._root_of):
                known.pop(topic, None)
        return [*effects, *super()._change_interests(now_us, topics)]

    def _place(self, now_us: int, tree: TopicTree) -> Effects:
        """Follow a change of the rendezvous point, move branches, and subscribe if it is time."""
        if not self.rendezvous.can_route:
            return ()
        topic = tree.topic
        was_root, tree.is_root = tree.is_root, self.rendezvous.is_root(topic)
        effects: list[Effect] = []
        if was_root != tree.is_root:
            self.note_change(now_us)
        if was_root and not tree.is_root:
            self.rendezvous.hand_over(now_us, tree.events.values())
            for subscriber, branch in list(self._branches.get(topic, {}).items()):
                effects += self._speak_for(now_us, topic, subscriber, branch)
        is_due = now_us - self._told_us.get(topic, -self._refresh_us) >= self._refresh_us
        if tree.wanted_since_us is not None and is_due:
            effects += self._subscribe(now_us, tree)
        return effects

    def _look(self, now_us: int) -> Effects:
        """Move branches whose next peer has changed, and remove those that are not renewed."""
        effects: list[Effect] = []
        oldest_us = now_us - _LIVES * self._refresh_us
        for topic, branches in list(self._branches.items()):
            for subscriber, branch in list(branches.items()):
                if branch.renewed_us < oldest_us:
                    del branches[subscriber]
                    self.note_change(now_us)
                else:
                    effects += self._move(now_us, topic, subscriber, branch)
            if not branches:
                del self._branches[topic]
        return [*effects, *super()._look(now_us)]

    def _move(self, now_us: int, topic: int, subscriber: PeerId, branch: Branch) -> list[Effect]:
        below = self._towards(branch.position)
        if below == branch.below:
            return []
        self.note_change(now_us)
        graft = Graft(topic, subscriber, branch.position, branch.version, branch.root, True)
        effects: list[Effect] = []
        if branch.below is not None:
            effects.append(Send(branch.below, replace(graft, is_wanted=False), reliable=True))
            branch.former = branch.below
        branch.below = below
        return [*effects, *([Send(below, graft, reliable=True)] if below is not None else [])]

    def _table(self) -> Iterator[tuple[int, PeerId]]:
        """Each topic with the peers above and below on its branches."""
        for topic, branches in self._branches.items():
            for branch in branches.values():
                ends = (branch.above, branch.below)
                yield from ((topic, peer) for peer in ends if peer not in (None, self.me))

    def _expire(self, now_us: int) -> None:
        super()._expire(now_us)
        self._lists.clear()  # incomplete lists come again with the next refresh
        oldest_us = now_us - 2 * self._keep_us
        for got_us in self._got_us.values():
            for event_id in [event for event, at_us in got_us.items() if at_us < oldest_us]:
                del got_us[event_id]

    def _become_ready(self, now_us: int) -> Effects:
        """Announce readiness only when this peer has a branch for each of its topics."""
        for topic, tree in self.trees.items():
            is_wanted = tree.wanted_since_us is not None
            if is_wanted and not tree.is_root and topic not in self._root_of:
                return ()
        return super()._become_ready(now_us)


def _direct(now_us: int, event: TopicEvent, subscriber: PeerId, position: int) -> Direct:
    down = write_event(Downward, now_us, event)
    return Direct(
        down.event_id, down.hop_count, down.topic, 0, down.hops, down.age_ms, subscriber, position,
        down.payload,
    )  # fmt: skip
