"""The events that a peer has received, and the recent ones for forwarding again."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.protocol import PeerId
from agents.pubsub.content.messages import Event


@dataclass(slots=True)
class HeldEvent:
    """An event in the buffer, or one that was only offered so far and has no payload.

    `known` are the peers that have it, are being sent it or were offered it. `offerers` are the
    peers that can be asked for it, `asked` those that were, and `wanters` those that asked for it
    here.
    """

    event: Event
    arrived_us: int
    is_here: bool
    known: list[PeerId]
    offerers: list[PeerId] = field(default_factory=list)
    wanters: list[PeerId] = field(default_factory=list)
    asked: list[PeerId] = field(default_factory=list)

    def note_known(self, peer: PeerId) -> None:
        """A peer has the event, or will have it."""
        if peer not in self.known:
            self.known.append(peer)

    def ask_for(self, wanter: PeerId) -> list[PeerId]:
        """Record that a peer asked for an event that is not here; returns the peers to ask in turn.

        These are all peers that offered it: while links form a cycle, some offer what this peer
        offered.
        """
        if wanter not in self.wanters:
            self.wanters.append(wanter)
        rest = [peer for peer in self.offerers if peer != wanter and peer not in self.asked]
        self.asked += rest
        return rest

    def forget_peer(self, peer: PeerId) -> None:
        """Assume that a peer does not have the event."""
        for peers in (self.known, self.offerers, self.wanters, self.asked):
            if peer in peers:
                peers.remove(peer)


class EventBuffer:
    """The recent events, up to a maximum number, the oldest first."""

    def __init__(self, window_us: int, most: int) -> None:
        self._window_us = window_us
        self._most = most
        self._held: dict[int, HeldEvent] = {}

    def __len__(self) -> int:
        """The number of events."""
        return len(self._held)

    def get(self, event_id: int) -> HeldEvent | None:
        """An event, if it is still in the buffer."""
        return self._held.get(event_id)

    def add(
        self, now_us: int, event: Event, known: list[PeerId], is_here: bool = True
    ) -> HeldEvent:
        """Add an event, and remove those that are too old or too many."""
        held = self._held[event.event_id] = HeldEvent(event, now_us, is_here, known)
        self.expire(now_us)
        return held

    def expire(self, now_us: int) -> Iterable[HeldEvent]:
        """Remove events that are too old or too many; returns the rest."""
        while self._held:
            oldest = next(iter(self._held.values()))
            is_young = oldest.arrived_us + self._window_us >= now_us
            if is_young and len(self._held) <= self._most:
                break
            del self._held[oldest.event.event_id]
        return self._held.values()

    def forget_known(self, peer: PeerId) -> None:
        """Assume that a peer has none of the events."""
        for held in self._held.values():
            if peer in held.known:
                held.known.remove(peer)


class SeenEvents:
    """The events that a peer has received, in bounded memory; none of them counts as new again.

    When it is full, everything published up to the oldest removed event counts as received.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._published_us: dict[int, int] = {}
        self._forgotten_us = -1

    def __contains__(self, event_id: object) -> bool:
        """Whether an event is known to have been received."""
        return event_id in self._published_us

    def is_new(self, event_id: int, published_us: int) -> bool:
        """Record an event; False if it was recorded before, or is too old to be known."""
        if event_id in self._published_us or published_us <= self._forgotten_us:
            return False
        self._published_us[event_id] = published_us
        if len(self._published_us) > self._most:
            oldest = next(iter(self._published_us))
            self._forgotten_us = max(self._forgotten_us, self._published_us.pop(oldest))
        return True
