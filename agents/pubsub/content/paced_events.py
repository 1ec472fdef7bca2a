"""Limits the rate at which requested events are sent.

After the repair of a tree, all waiting events are requested at once. Sent at once, they would load
links and peers for seconds and delay the events that are published meanwhile.
"""

from heapq import nsmallest

from agents.protocol import PeerId, Send
from agents.pubsub.content.messages import Event


class PacedEvents:
    """The events to send to each peer: a limited number in each batch, the oldest first."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._waiting: dict[PeerId, dict[int, Event]] = {}

    def add(self, peer: PeerId, event: Event) -> None:
        """Add an event for a peer, once, however often the peer asks."""
        self._waiting.setdefault(peer, {})[event.event_id] = event

    def strike(self, peer: PeerId, event_id: int) -> None:
        """Remove an event that a peer has got from another peer."""
        self._waiting.get(peer, {}).pop(event_id, None)

    def next_batch(self) -> list[Send]:
        """The events to send now."""
        sends: list[Send] = []
        for peer, events in sorted(self._waiting.items()):
            for event in nsmallest(self._batch, events.values(), key=_age):
                sends.append(Send(peer, events.pop(event.event_id), reliable=True))
        self._waiting = {peer: events for peer, events in self._waiting.items() if events}
        return sends


def _age(event: Event) -> tuple[int, int]:
    return event.published_us, event.event_id
