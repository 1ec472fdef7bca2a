"""Topic-based flooding: each event is sent over every overlay link, and subscribers deliver it.

It needs only neighbours, so it runs on any overlay, and is the simplest baseline: peers without a
matching interest receive and forward events, too.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from agents.announcements import Interests, Publish, Ready
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
    Surroundings,
)
from agents.wire.codec import U8, U32, U64, message

_MOST_HOPS = 255  # the largest in the header


@message(150, role="event")
class FloodedEvent(Struct, frozen=True):
    """An event on one link."""

    event_id: U64
    hop_count: U8
    topic: U32
    payload: bytes


class FloodSettings(Struct, frozen=True, kw_only=True):
    """The time for which a peer remembers forwarded events."""

    keep_s: Annotated[
        float, Meta(gt=0, description="time for which a repeated event is recognised")
    ] = 60.0


class TopicFlood(Protocol):
    """Sends every event to every neighbour, once; subscribers of its topic deliver it."""

    Settings = FloodSettings
    messages = (FloodedEvent,)
    needs = "neighbours"

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._neighbours: Sequence[PeerId] = ()
        self._topics: frozenset[int] = frozenset()
        self._seen_us: dict[int, int] = {}  # the arrival of each event, the oldest first

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Record neighbours and topics, and flood what this peer publishes."""
        if isinstance(content, Neighbours):
            self._neighbours = sorted(content.delays_us)
            return [Announce(Ready())]
        if isinstance(content, Interests):
            self._topics = content.contents
        elif isinstance(content, Publish):
            self._remember(now_us, content.event_id)
            event = FloodedEvent(content.event_id, 0, content.content, content.payload)
            return self._send(self._neighbours, event)
        return ()

    def on_message(self, now_us: int, sender: PeerId, event: FloodedEvent) -> Effects:
        """Deliver a matching event, and forward it if it is new."""
        event = replace(event, hop_count=min(event.hop_count + 1, _MOST_HOPS))
        copy = {"event_id": event.event_id, "from": sender, "hop_count": event.hop_count}
        if event.event_id in self._seen_us:
            return [Record("event_repeated", copy)]
        self._remember(now_us, event.event_id)
        effects: list[Effect] = [Record("event_received", copy)]
        if event.topic in self._topics:
            effects.append(Deliver(event.event_id, sender, event.hop_count))
        others = (peer for peer in self._neighbours if peer != sender)
        return [*effects, *self._send(others, event)]

    def _remember(self, now_us: int, event_id: int) -> None:
        """Remember an event, and remove those too old to be repeated."""
        self._seen_us[event_id] = now_us
        oldest_us = now_us - int(self.settings.keep_s * 1e6)
        while self._seen_us[first := next(iter(self._seen_us))] < oldest_us:
            del self._seen_us[first]

    def _send(self, peers: Iterable[PeerId], event: FloodedEvent) -> Effects:
        return [Send(peer, event, reliable=True) for peer in peers]
