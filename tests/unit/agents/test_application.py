"""The application of an agent: its announcements and records, with their times."""

from collections.abc import Hashable
from random import Random
from typing import Any

import pytest

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
from agents.protocol import Announce, Deliver, Effects, Record, SetTimer, Surroundings
from agents.pubsub.application import Application
from agents.routing.tree import CurrentTree
from workloads.share import NEVER_US, OwnInterest, OwnPublication, Share

SHARE = Share(
    interests=(OwnInterest(4, 70, 0, 50), OwnInterest(5, 71, 20, NEVER_US)),
    publications=(OwnPublication(1, 70, 10, (4,)), OwnPublication(2, 71, 60, (5, 4))),
    events=2,
    first_event_us=10,
    payload_bytes=3,
    interest_key="topic",
    event_key="topic",
)


class Clock:
    """Drives an application by the timers that it sets."""

    def __init__(self, share: Share = SHARE, has_trees: bool = False) -> None:
        given = Surroundings(1, (), Random(1), workload=share)
        self.app = Application(given, has_trees)
        self.timers: dict[Hashable, int] = {}
        self.seen: list[tuple[int, Any]] = []

    def start(self, now_us: int = 0) -> "Clock":
        self.take(now_us, self.app.on_start(now_us))
        return self

    def run(self) -> "Clock":
        while self.timers:
            name = min(self.timers, key=lambda name: self.timers[name])
            due_us = self.timers.pop(name)
            self.take(due_us, self.app.on_timer(due_us, name))
        return self

    def take(self, now_us: int, effects: Effects) -> None:
        for effect in effects:
            if isinstance(effect, SetTimer):
                self.timers[effect.name] = now_us + effect.delay_us
            else:
                content = effect.content if isinstance(effect, Announce) else effect
                self.seen.append((now_us, content))

    def announced(self, kind: type) -> list[tuple[int, Any]]:
        return [(at_us, content) for at_us, content in self.seen if isinstance(content, kind)]

    def recorded(self, what: str) -> list[tuple[int, Any]]:
        return [(at, r.values) for at, r in self.announced(Record) if r.what == what]


def test_interests_begin_and_end_at_their_times() -> None:
    clock = Clock().start().run()
    assert clock.announced(Subscribe) == [(0, Subscribe(4, 70)), (20, Subscribe(5, 71))]
    assert clock.announced(Unsubscribe) == [(50, Unsubscribe(4, 70))]
    assert [(at, set(some.contents)) for at, some in clock.announced(Interests)] == [
        (0, {70}), (20, {70, 71}), (50, {71}),
    ]  # fmt: skip
    assert clock.recorded("subscribed") == [
        (0, {"interest": 4, "topic": 70}), (20, {"interest": 5, "topic": 71}),
    ]  # fmt: skip
    assert clock.recorded("unsubscribed") == [(50, {"interest": 4, "topic": 70})]


def test_publications_are_timely_and_delivered_to_their_publisher() -> None:
    clock = Clock().start().run()
    assert clock.announced(Publish) == [
        (10, Publish(1, 70, bytes(3))), (60, Publish(2, 71, bytes(3))),
    ]  # fmt: skip
    assert clock.recorded("event_published") == [
        (10, {"event_id": 1, "topic": 70}), (60, {"event_id": 2, "topic": 71}),
    ]  # fmt: skip
    assert clock.recorded("delivered") == [
        (10, {"event_id": 1, "hop_count": 0}), (60, {"event_id": 2, "hop_count": 0}),
    ]  # fmt: skip


def test_a_publishers_own_event_is_not_delivered_after_it_unsubscribed() -> None:
    late = OwnPublication(1, 70, 55, (4,))
    clock = Clock(Share(SHARE.interests, (late,), 1)).start().run()
    assert len(clock.recorded("event_published")) == 1
    assert clock.recorded("delivered") == []


def test_an_agent_that_starts_late_has_current_interests_and_later_publications() -> None:
    clock = Clock().start(30).run()
    assert clock.announced(Subscribe) == [(30, Subscribe(4, 70)), (30, Subscribe(5, 71))]
    assert [event.event_id for _, event in clock.announced(Publish)] == [2]


def test_every_delivery_is_recorded_including_repeated_ones() -> None:
    clock = Clock().start()
    for _ in range(2):
        clock.take(7, clock.app.on_delivery(7, Deliver(9, sender=3, hop_count=2)))
    assert clock.recorded("delivered") == [(7, {"event_id": 9, "from": 3, "hop_count": 2})] * 2


def test_the_tree_of_a_publication_is_recorded_if_there_are_trees() -> None:
    clock = Clock(has_trees=True).start()
    clock.take(10, clock.app.on_timer(10, "publish"))
    clock.take(11, clock.app.on_announcement(11, CurrentTree(3)))
    clock.take(60, clock.app.on_timer(60, "publish"))
    assert [values["version"] for _, values in clock.recorded("event_published")] == [0, 3]


def test_a_suspended_publisher_does_not_publish_its_events() -> None:
    clock = Clock().start()
    clock.take(1, clock.app.on_announcement(1, Suspend(70)))
    clock.take(10, clock.app.on_timer(10, "publish"))
    clock.take(60, clock.app.on_timer(60, "publish"))
    assert clock.recorded("event_not_offered") == [(10, {"event_id": 1})]
    assert [event.event_id for _, event in clock.announced(Publish)] == [2]


def test_a_publisher_continues_when_it_is_resumed() -> None:
    clock = Clock().start()
    clock.take(1, clock.app.on_announcement(1, Suspend()))
    clock.take(2, clock.app.on_announcement(2, Resume()))
    clock.run()
    assert clock.recorded("event_not_offered") == []
    assert len(clock.announced(Publish)) == 2


def test_readiness_is_recorded_once() -> None:
    clock = Clock().start()
    for now_us in (5, 6):
        clock.take(now_us, clock.app.on_announcement(now_us, Ready()))
    assert clock.recorded("ready") == [(5, {})]


@pytest.mark.parametrize("order", [(Ready(), Settled()), (Settled(), Ready())])
def test_a_peer_is_not_ready_before_links_are_settled(order: tuple[Any, Any]) -> None:
    clock = Clock().start()
    for now_us, content in enumerate((Unsettled(), *order)):
        assert clock.recorded("ready") == []
        clock.take(now_us, clock.app.on_announcement(now_us, content))
    assert clock.recorded("ready") == [(2, {})]
