"""A peer's place in the tree of one topic: parent, children, and recent events."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.protocol import PeerId
from agents.pubsub.scribe.messages import TopicEvent
from topologies.overlays.topic_keys import topic_key

NEVER_US = 2**63 - 1
_LEAST_KEPT = 0.25  # share of the time for which events are kept, for late ones
_PULL_AGAIN_US = 2_000_000


@dataclass(slots=True)
class Child:
    """A child, which wants events published since a time, and has some of them already."""

    version: int
    since_us: int
    has_us: dict[int, int] = field(default_factory=dict)  # the time of that record


class TopicTree:
    """One peer in the tree of one topic."""

    def __init__(self, topic: int, keep_us: int) -> None:
        self.topic = topic
        self.key = topic_key(topic)
        self.wanted_since_us: int | None = None  # if the application subscribes
        self.children: dict[PeerId, Child] = {}
        self.parent: PeerId | None = None
        self.is_root = False
        self.events: dict[int, TopicEvent] = {}
        self._keep_us = keep_us
        self._until_us: dict[int, int] = {}
        self._told: tuple[int, frozenset[int]] = (NEVER_US, frozenset())
        self._pulled_us: dict[int, int] = {}

    @property
    def is_needed(self) -> bool:
        """Whether the peer must be in the tree."""
        return bool(self.children) or self.wanted_since_us is not None

    @property
    def is_unused(self) -> bool:
        """Whether there is no state left."""
        return not (self.is_needed or self.events or self.parent)

    def keep(self, now_us: int, event: TopicEvent) -> None:
        """Keep an event for children that lack it."""
        self.events[event.event_id] = event
        self._until_us[event.event_id] = max(
            event.published_us + self._keep_us, now_us + int(_LEAST_KEPT * self._keep_us)
        )

    def expire(self, now_us: int) -> None:
        """Remove old events and the knowledge about them."""
        for event_id in [e for e, until_us in self._until_us.items() if until_us < now_us]:
            del self.events[event_id], self._until_us[event_id]
        oldest_us = now_us - 2 * self._keep_us
        for child in self.children.values():
            _drop_old(child.has_us, oldest_us)
        _drop_old(self._pulled_us, oldest_us)

    def receivers(self, event: TopicEvent, sender: PeerId | None) -> list[PeerId]:
        """The children to which an event must be sent, other than its sender."""
        return [peer for peer in self.children if peer != sender and self._is_for(peer, event)]

    def lacks(self, child: PeerId) -> list[TopicEvent]:
        """The kept events that a child wants and lacks."""
        return [event for event in self.events.values() if self._is_for(child, event)]

    def note_sent(self, now_us: int, child: PeerId, event_id: int) -> None:
        """A child has an event, or soon will."""
        self.children[child].has_us[event_id] = now_us

    def add_child(
        self, now_us: int, peer: PeerId, version: int, wants_ms: int, has: Iterable[int]
    ) -> None:
        """Add a child, or replace its earlier state."""
        since_us = now_us - wants_ms * 1000
        self.children[peer] = Child(version, since_us, dict.fromkeys(has, now_us))

    def renew(self) -> tuple[int, frozenset[int]]:
        """The state for a new parent: the time since which events are wanted, and known events."""
        self._told = self._demand()
        return self._told[0], self._told[1] | self.events.keys()

    @property
    def demands_more(self) -> bool:
        """Whether the subtree wants more events than the parent knows."""
        since_us, has = self._demand()
        return since_us < self._told[0] or bool(self._told[1] - has - self.events.keys())

    def pull(self, now_us: int, events: Iterable[int]) -> list[int]:
        """Events that the rendezvous point lacks and has not requested very recently."""
        lacking = [
            event
            for event in events
            if event not in self.events
            and now_us - self._pulled_us.get(event, -_PULL_AGAIN_US) >= _PULL_AGAIN_US
        ]
        self._pulled_us.update(dict.fromkeys(lacking, now_us))
        return lacking

    def _is_for(self, peer: PeerId, event: TopicEvent) -> bool:
        child = self.children[peer]
        return event.event_id not in child.has_us and event.published_us >= child.since_us

    def _demand(self) -> tuple[int, frozenset[int]]:
        """The time since which events are wanted, and events of all children not kept here."""
        since_us = [child.since_us for child in self.children.values()]
        if self.wanted_since_us is not None:
            return min([*since_us, self.wanted_since_us]), frozenset()
        lists = [child.has_us.keys() - self.events.keys() for child in self.children.values()]
        common = frozenset(lists[0]).intersection(*lists[1:]) if lists else frozenset()
        return min(since_us, default=NEVER_US), common


def _drop_old(noted_us: dict[int, int], oldest_us: int) -> None:
    """Remove the first entries that are older than a time; they are in order of time."""
    for event in [event for event, at_us in noted_us.items() if at_us < oldest_us]:
        del noted_us[event]
