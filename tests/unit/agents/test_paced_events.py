"""Requested events are sent at a limited rate, the oldest first."""

from agents.pubsub.content.messages import Event
from agents.pubsub.content.paced_events import PacedEvents
from workloads.content.subscription import make_point


def event(event_id: int, published_us: int) -> Event:
    return Event(event_id, 0, 1, published_us, make_point([1]).number, b"")


def left(paced: PacedEvents) -> list[tuple[int, int]]:
    return [(send.to, send.message.event_id) for send in paced.next_batch()]


def test_each_peer_gets_a_limited_number_of_events_oldest_first() -> None:
    paced = PacedEvents(2)
    for number in (3, 1, 2):
        paced.add(7, event(number, number * 100))
    paced.add(5, event(9, 50))
    assert left(paced) == [(5, 9), (7, 1), (7, 2)]
    paced.add(7, event(4, 10))
    assert left(paced) == [(7, 4), (7, 3)]
    assert left(paced) == []


def test_repeated_requests_and_events_received_meanwhile_are_not_sent_again() -> None:
    paced = PacedEvents(5)
    for number in (1, 2, 2):
        paced.add(7, event(number, 100))
    paced.strike(7, 1)
    paced.strike(8, 2)
    assert left(paced) == [(7, 2)]
