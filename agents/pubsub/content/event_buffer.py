"""The events that a peer has had: which ones, and the recent ones to hand on again."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.protocol import PeerId
from agents.pubsub.content.messages import Event


@dataclass(slots=True)
class HeldEvent:
    """An event in the buffer, or one that was only offered so far, hence without its payload.

    `known` are the peers that have it, are being sent it or were offered it; `offerers` those
    that can be asked for it, `asked` those that were, and `wanters` those that asked for it here.
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
        """Note that a peer asked for an event that is not here; returns whom to ask in turn.

        All who offered it: while links form a cycle, some offer what was offered to them by us.
        """
        if wanter not in self.wanters:
            self.wanters.append(wanter)
        rest = [peer for peer in self.offerers if peer != wanter and peer not in self.asked]
        self.asked += rest
        return rest

    def forget_peer(self, peer: PeerId) -> None:
        """Take it that a peer has not got the event, and knows nothing of it."""
        for peers in (self.known, self.offerers, self.wanters, self.asked):
            if peer in peers:
                peers.remove(peer)


class EventBuffer:
    """The events of the last while, at most so many, the oldest first."""

    def __init__(self, window_us: int, most: int) -> None:
        self._window_us = window_us
        self._most = most
        self._held: dict[int, HeldEvent] = {}

    def __len__(self) -> int:
        """How many events are held."""
        return len(self._held)

    def get(self, event_id: int) -> HeldEvent | None:
        """An event, if it is still held."""
        return self._held.get(event_id)

    def add(
        self, now_us: int, event: Event, known: list[PeerId], is_here: bool = True
    ) -> HeldEvent:
        """Hold an event, and let go of what is too old or too much."""
        held = self._held[event.event_id] = HeldEvent(event, now_us, is_here, known)
        self.expire(now_us)
        return held

    def expire(self, now_us: int) -> Iterable[HeldEvent]:
        """Let go of what is too old or too much; returns the rest."""
        while self._held:
            oldest = next(iter(self._held.values()))
            is_young = oldest.arrived_us + self._window_us >= now_us
            if is_young and len(self._held) <= self._most:
                break
            del self._held[oldest.event.event_id]
        return self._held.values()

    def forget_known(self, peer: PeerId) -> None:
        """Take it that a peer has nothing of what is held."""
        for held in self._held.values():
            if peer in held.known:
                held.known.remove(peer)


class SeenEvents:
    """Which events a peer has had, in bounded memory, and never one of them as new.

    Once it has to forget, it takes everything published up to then for seen.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._published_us: dict[int, int] = {}
        self._forgotten_us = -1

    def __contains__(self, event_id: object) -> bool:
        """Whether an event is known to have been here."""
        return event_id in self._published_us

    def is_new(self, event_id: int, published_us: int) -> bool:
        """Note an event; False if it was noted before, or is older than can be told."""
        if event_id in self._published_us or published_us <= self._forgotten_us:
            return False
        self._published_us[event_id] = published_us
        if len(self._published_us) > self._most:
            oldest = next(iter(self._published_us))
            self._forgotten_us = max(self._forgotten_us, self._published_us.pop(oldest))
        return True
