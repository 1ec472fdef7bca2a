"""Offers: how events reach peers to which the tree of their publication did not lead.

An event may be offered over its own tree, when a subscription or a link is added, and over later
trees: one of each newer family (`agents.routing.tree`), because any one joins all peers. It is not
handed over between versions of a family, which would send it everywhere twice.

Offers are not forwarded at once but together with all others of a moment: repairs bring hundreds of
events over each link, and an offer of many events is as small as one of few.
"""

from collections import defaultdict
from collections.abc import Iterable

from msgspec.structs import replace

from agents.protocol import PeerId, Send
from agents.pubsub.content.event_buffer import EventBuffer, HeldEvent
from agents.pubsub.content.messages import (
    EVENTS_PER_OFFER,
    Event,
    Wanted,
    offer_of,
)
from agents.pubsub.content.paced_events import PacedEvents
from agents.pubsub.content.subscription_tree import ContentTree
from agents.pubsub.content.subscription_trees import ContentTrees
from agents.routing.tree import NO_TREE

_Offers = defaultdict[tuple[PeerId, bool], list[Event]]


class EventOffers:
    """The offers that this peer still has to send; events may be slightly older than a tree."""

    def __init__(
        self, trees: ContentTrees, buffer: EventBuffer, paced: PacedEvents, slack_us: int
    ) -> None:
        self._trees = trees
        self._buffer = buffer
        self._paced = paced
        self._slack_us = slack_us
        self._owed: defaultdict[int, set[PeerId]] = defaultdict(set)  # by version
        self._late: list[HeldEvent] = []  # to be offered in newer families than their own
        # By version, and by who sent them.
        self._onward: defaultdict[int, dict[PeerId, list[HeldEvent]]] = defaultdict(dict)

    def owe(self, version: ContentTree, peers: Iterable[PeerId]) -> bool:
        """Record that peers at links of a version may lack events; returns whether they can."""
        if not len(self._buffer):
            return False
        self._owed[version.number].update(peers)
        return True

    def put_off(self, events: Iterable[HeldEvent]) -> bool:
        """Keep events for newer families; returns whether any is waiting."""
        self._late += [held for held in events if self._trees.has_heirs(held.event.version)]
        return bool(self._late)

    def pass_on(self, version: int, sender: PeerId, events: list[HeldEvent]) -> bool:
        """Keep events for all links of a version but one; returns whether any is waiting."""
        if events and self._trees.get(version) is not None:
            self._onward[version].setdefault(sender, []).extend(events)
        return bool(self._onward)

    def offer_owed(self, now_us: int) -> list[Send]:
        """Offer recent events to the peers that may lack them."""
        recent = list(self._buffer.expire(now_us))
        owed, self._owed = self._owed, defaultdict(set)
        return [
            offer
            for version in self._trees.announced()
            for offer in self._over(version, owed.get(version.number, set()), recent)
        ]

    def offer_late(self) -> list[Send]:
        """Offer the waiting events over newer trees."""
        late, self._late = self._late, []
        return [
            offer
            for version in (self._trees.announced() if late else ())
            for offer in self._over(version, set(version.links), late)
        ]

    def offer_onward(self) -> list[Send]:
        """Forward offers."""
        onward, self._onward = self._onward, defaultdict(dict)
        sends: list[Send] = []
        for number, by_sender in onward.items():
            version = self._trees.get(number)
            if version is not None:
                offers: _Offers = defaultdict(list)
                for sender, events in by_sender.items():
                    self._collect(offers, version, set(version.links) - {sender}, events)
                sends += _messages(version, offers)
        return sends

    def _over(
        self, version: ContentTree, peers: set[PeerId], events: Iterable[HeldEvent]
    ) -> Iterable[Send]:
        """Offer to peers at links of a version the events that match and that they are not known to
        have.
        """
        offers: _Offers = defaultdict(list)
        self._collect(offers, version, peers, events)
        return _messages(version, offers)

    def _collect(
        self,
        offers: _Offers,
        version: ContentTree,
        peers: set[PeerId],
        events: Iterable[HeldEvent],
    ) -> None:
        for held in events if peers else ():
            event, unaware = held.event, peers.difference(held.known)
            if unaware and self._belongs(event, version):
                for peer in version.wanting(event) & unaware:
                    held.known.append(peer)
                    offers[peer, held.is_here].append(event)

    def fulfil(self, sender: PeerId, wish: Wanted) -> list[Send]:
        """Send the events that are here over the tree of the offer; ask for the others."""
        to_ask: defaultdict[PeerId, list[int]] = defaultdict(list)
        for held in filter(None, map(self._buffer.get, wish.events)):
            if held.is_here:
                copy = replace(held.event, version=wish.version)
                self._paced.add(sender, copy)
                continue
            for peer in held.ask_for(sender):
                to_ask[peer].append(held.event.event_id)
        return [ask(peer, wish.version, events) for peer, events in sorted(to_ask.items())]

    def ask_again(self, to: PeerId, wish: Wanted) -> list[Send]:
        """Ask a peer again while the tree has it; otherwise another peer will make an offer."""
        missing = [held for held in map(self._buffer.get, wish.events) if held and not held.is_here]
        if missing and self._trees.is_linked(to):
            return [ask(to, wish.version, [held.event.event_id for held in missing])]
        for held in missing:
            held.forget_peer(to)
        return []

    def _belongs(self, event: Event, version: ContentTree) -> bool:
        """Whether an event may use a tree: its own, or a successor built around its time."""
        if version.number == event.version:
            return True
        if version.built_us is None or not self._trees.is_successor(event.version, version):
            return False
        is_homeless = event.version == NO_TREE
        return is_homeless or event.published_us >= version.built_us - self._slack_us


def _messages(version: ContentTree, offers: _Offers) -> Iterable[Send]:
    for (peer, is_here), some in sorted(offers.items(), key=lambda item: item[0]):
        for at in range(0, len(some), EVENTS_PER_OFFER):
            offer = offer_of(version.number, is_here, some[at : at + EVENTS_PER_OFFER])
            yield Send(peer, offer, reliable=True)


def ask(peer: PeerId, version: int, events: list[int]) -> Send:
    """Ask a peer for events that it has offered."""
    return Send(peer, Wanted(version, tuple(events)), reliable=True)
