"""Events that peers asked for, sent a few at a time.

When a tree is whole again, everything that waited is asked for at once. Sent at once too, it would
crowd links and peers for seconds, and hold up the events that are published meanwhile.
"""

from heapq import nsmallest

from agents.protocol import PeerId, Send
from agents.pubsub.content.messages import Event


class PacedEvents:
    """What is still to be sent to whom: of each batch so many to a peer, the oldest first."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self._waiting: dict[PeerId, dict[int, Event]] = {}

    def add(self, peer: PeerId, event: Event) -> None:
        """Have an event sent to a peer; once, however often it asks before that is done."""
        self._waiting.setdefault(peer, {})[event.event_id] = event

    def strike(self, peer: PeerId, event_id: int) -> None:
        """A peer has got an event from somebody else."""
        self._waiting.get(peer, {}).pop(event_id, None)

    def next_batch(self) -> list[Send]:
        """What is to be sent now."""
        sends: list[Send] = []
        for peer, events in sorted(self._waiting.items()):
            for event in nsmallest(self._batch, events.values(), key=_age):
                sends.append(Send(peer, events.pop(event.event_id), reliable=True))
        self._waiting = {peer: events for peer, events in self._waiting.items() if events}
        return sends


def _age(event: Event) -> tuple[int, int]:
    return event.published_us, event.event_id
