"""The application of an agent: its part of the workload, the same on both backends.

It subscribes, unsubscribes and publishes at the times of the workload, and records this and what is
delivered to it. A second delivery of an event is recorded like the first. The publisher's own event
is delivered here, without the layers below.
"""

from collections.abc import Hashable
from typing import Any

from agents.announcements import (
    Interests,
    Publish,
    Ready,
    Resume,
    Settled,
    Subscribe,
    Suspend,
    Unsettled,
    Unsubscribe,
)
from agents.protocol import (
    Announce,
    Deliver,
    Effect,
    Effects,
    Protocol,
    Record,
    SetTimer,
    Surroundings,
)
from agents.routing.tree import NO_TREE, CurrentTree
from workloads.share import NEVER_US, OwnInterest, OwnPublication

_PUBLISH, _CHANGE = "publish", "change interests"


class Application(Protocol):
    """Announces a peer's interests and publications, and records deliveries.

    Where there is a routing layer, each publication is recorded with the version of its tree.
    """

    def __init__(self, given: Surroundings, has_trees: bool = False) -> None:
        super().__init__(given)
        self._share = given.workload
        self._held: dict[int, OwnInterest] = {}  # by number
        self._changes: list[tuple[int, OwnInterest]] = []  # future changes, the next one last
        self._unpublished: list[OwnPublication] = []  # the next one last
        self._version = NO_TREE if has_trees else None
        self._suspended: set[int | None] = set()
        self._is_settled = True  # unless the overlay says that it is not
        self._can_serve = self._is_ready = False

    def on_start(self, now_us: int) -> Effects:
        """Subscribe to the present interests, and set a timer for the next change."""
        effects: list[Effect] = []
        for interest in self._share.interests_at(now_us):
            effects += self._subscribe(interest)
        self._changes = sorted(_changes_after(now_us, self._share.interests), reverse=True)
        due = (one for one in self._share.publications if one.time_us >= now_us)
        self._unpublished = sorted(due, key=lambda one: one.time_us, reverse=True)
        return [
            *effects,
            *self._tell_interests(),
            *self._await_change(now_us),
            *self._await_publication(now_us),
        ]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Publish, or change the interests."""
        if name == _PUBLISH:
            publication = self._unpublished.pop()
            return [*self._publish(publication), *self._await_publication(now_us)]
        effects: list[Effect] = []
        while self._changes and self._changes[-1][0] <= now_us:
            _, interest = self._changes.pop()
            is_held = interest.number in self._held
            effects += self._unsubscribe(interest) if is_held else self._subscribe(interest)
        return [*effects, *self._tell_interests(), *self._await_change(now_us)]

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Record the tree for publications and readiness, or pause and resume publications."""
        if isinstance(content, CurrentTree):
            self._version = content.version
        elif isinstance(content, Suspend):
            self._suspended.add(content.content)
        elif isinstance(content, Resume):
            self._suspended.discard(content.content)
        elif isinstance(content, Unsettled | Settled):
            self._is_settled = isinstance(content, Settled)
        elif isinstance(content, Ready):
            self._can_serve = True
        if self._is_ready or not (self._can_serve and self._is_settled):
            return ()
        self._is_ready = True
        return [Record("ready")]

    def on_delivery(self, now_us: int, delivery: Deliver) -> Effects:
        """Record an event that the layer below delivers."""
        values = {
            "event_id": delivery.event_id,
            "from": delivery.sender,
            "hop_count": delivery.hop_count,
        }
        return [Record("delivered", values)]

    def _publish(self, publication: OwnPublication) -> Effects:
        event_id, content = publication.event_id, publication.content
        if self._suspended & {None, content}:
            return [Record("event_not_offered", {"event_id": event_id})]
        told = {"event_id": event_id, self._share.event_key: content}
        if self._version is not None:
            told["version"] = self._version
        effects: list[Effect] = [Record("event_published", told)]
        if any(number in self._held for number in publication.own_interests):
            effects.append(Record("delivered", {"event_id": event_id, "hop_count": 0}))
        payload = bytes(self._share.payload_bytes)
        return [*effects, Announce(Publish(event_id, content, payload))]

    def _subscribe(self, interest: OwnInterest) -> Effects:
        self._held[interest.number] = interest
        subscribe = Announce(Subscribe(interest.number, interest.content))
        return [Record("subscribed", self._values(interest)), subscribe]

    def _unsubscribe(self, interest: OwnInterest) -> Effects:
        del self._held[interest.number]
        unsubscribe = Announce(Unsubscribe(interest.number, interest.content))
        return [Record("unsubscribed", self._values(interest)), unsubscribe]

    def _values(self, interest: OwnInterest) -> dict[str, int]:
        return {"interest": interest.number, self._share.interest_key: interest.content}

    def _tell_interests(self) -> Effects:
        return [Announce(Interests(frozenset(held.content for held in self._held.values())))]

    def _await_publication(self, now_us: int) -> Effects:
        if not self._unpublished:
            return ()
        return [SetTimer(_PUBLISH, max(0, self._unpublished[-1].time_us - now_us))]

    def _await_change(self, now_us: int) -> Effects:
        return [SetTimer(_CHANGE, self._changes[-1][0] - now_us)] if self._changes else ()


def _changes_after(
    now_us: int, interests: tuple[OwnInterest, ...]
) -> list[tuple[int, OwnInterest]]:
    """When interests begin and end after a time; those that last to the end do not end."""
    times = ((at_us, one) for one in interests for at_us in (one.from_us, one.until_us))
    return [(at_us, one) for at_us, one in times if now_us < at_us < NEVER_US]
