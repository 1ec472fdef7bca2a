"""Offers: how events get to those whom the tree that they were published on did not lead to.

An event may be offered over its own tree, where a subscription or a link has come up, and over
those built after it: one of each newer family (`agents.routing`), as any one joins all peers.
It is not handed from one version of a family to another, which would take it everywhere twice.
"""

from collections import defaultdict
from collections.abc import Iterable

from agents.content_messages import (
    EVENTS_PER_OFFER,
    NO_TREE,
    Event,
    Wanted,
    copy_event,
    offer_of,
)
from agents.content_tree import ContentTree
from agents.content_trees import ContentTrees
from agents.event_buffer import EventBuffer, HeldEvent
from agents.protocol import PeerId, Send


class EventOffers:
    """What this peer has still to offer, and to whom; events may be older than a tree by a bit."""

    def __init__(self, trees: ContentTrees, buffer: EventBuffer, slack_us: int) -> None:
        self._trees = trees
        self._buffer = buffer
        self._slack_us = slack_us
        self._owed: defaultdict[int, set[PeerId]] = defaultdict(set)  # by version
        self._late: list[HeldEvent] = []  # to be offered in newer families than their own

    def owe(self, version: ContentTree, peers: Iterable[PeerId]) -> bool:
        """Note that peers at links of a version may miss something; says whether they can."""
        if not len(self._buffer):
            return False
        self._owed[version.number].update(peers)
        return True

    def put_off(self, events: Iterable[HeldEvent]) -> bool:
        """Put events down for newer families; says whether any is waiting."""
        self._late += [held for held in events if self._trees.has_heirs(held.event.version)]
        return bool(self._late)

    def offer_owed(self, now_us: int) -> list[Send]:
        """Offer what is recent to those who may miss it."""
        recent = list(self._buffer.expire(now_us))
        owed, self._owed = self._owed, defaultdict(set)
        return [
            offer
            for version in self._trees.announced()
            for offer in self.over(version, owed.get(version.number, set()), recent)
        ]

    def offer_late(self) -> list[Send]:
        """Offer over newer trees what was put off."""
        late, self._late = self._late, []
        return [
            offer
            for version in (self._trees.announced() if late else ())
            for offer in self.over(version, set(version.links), late)
        ]

    def over(
        self, version: ContentTree, peers: set[PeerId], events: Iterable[HeldEvent]
    ) -> Iterable[Send]:
        """Offer to peers at links of a version what they want and are not known to have."""
        offers: defaultdict[tuple[PeerId, bool], list[Event]] = defaultdict(list)
        for held in events if peers else ():
            event = held.event
            if self._belongs(event, version) and not peers.issubset(held.known):
                for peer in version.wanting(event) & peers:
                    if peer not in held.known:
                        held.known.append(peer)
                        offers[peer, held.is_here].append(event)
        for (peer, is_here), some in sorted(offers.items(), key=lambda item: item[0]):
            for at in range(0, len(some), EVENTS_PER_OFFER):
                offer = offer_of(version.number, is_here, some[at : at + EVENTS_PER_OFFER])
                yield Send(peer, offer, reliable=True)

    def fulfil(self, sender: PeerId, wish: Wanted) -> list[Send]:
        """Send what is here over the tree that it was offered on; ask on for the rest."""
        sends: list[Send] = []
        to_ask: defaultdict[PeerId, list[int]] = defaultdict(list)
        for held in filter(None, map(self._buffer.get, wish.events)):
            if held.is_here:
                copy = copy_event(held.event, held.event.hop_count, wish.version)
                sends.append(Send(sender, copy, reliable=True))
                continue
            for peer in held.ask_for(sender):
                to_ask[peer].append(held.event.event_id)
        return [*sends, *(ask(p, wish.version, events) for p, events in sorted(to_ask.items()))]

    def ask_again(self, to: PeerId, wish: Wanted) -> list[Send]:
        """Ask a peer again as long as the tree has it; else another will make an offer."""
        missing = [held for held in map(self._buffer.get, wish.events) if held and not held.is_here]
        if missing and self._trees.is_linked(to):
            return [ask(to, wish.version, [held.event.event_id for held in missing])]
        for held in missing:
            held.forget_peer(to)
        return []

    def _belongs(self, event: Event, version: ContentTree) -> bool:
        """Whether an event may go over a tree: its own, or an heir built around its time."""
        if version.number == event.version:
            return True
        if version.built_us is None or not self._trees.is_heir(event.version, version):
            return False
        is_homeless = event.version == NO_TREE
        return is_homeless or event.published_us >= version.built_us - self._slack_us


def ask(peer: PeerId, version: int, events: list[int]) -> Send:
    """Ask a peer for events that it has offered."""
    return Send(peer, Wanted(version, tuple(events)), reliable=True)
