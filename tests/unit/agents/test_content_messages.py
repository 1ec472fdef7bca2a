"""Messages of content-based routing: four bytes for each subscription, and invalid values."""

import pytest

from agents.pubsub.content.messages import Event, SubscriptionUpdate, offer_of
from agents.wire.codec import HEADER, Datagram, DecodeError, decode, encode
from workloads.content.subscription import Point, Subscription, make_point, subscribe


def bytes_of(content: object) -> bytes:
    return encode(Datagram(content, 0, 1, 2, 3, 4, 5))


def update(*numbers: int) -> SubscriptionUpdate:
    return SubscriptionUpdate(1, 2, 3, True, numbers, (), ())


def test_a_subscription_takes_four_bytes() -> None:
    boxes = [subscribe({0: (1, 2), 1: (3, 4)}), subscribe({0: (10, 10)})]
    sent = update(*(box.number for box in boxes))
    data = bytes_of(sent)
    assert len(data) - len(bytes_of(update())) == 2 * 4
    assert [Subscription(number) for number in decode(data).content.added] == boxes


def test_a_point_is_encoded_as_its_number() -> None:
    point = make_point([1, 2, 3, 4, 5])
    received = decode(bytes_of(Event(7, 0, 1, 9, point.number, b""))).content
    assert Point(received.point).values == (1, 2, 3, 4, 5)


def test_a_number_that_is_no_subscription_does_not_decode() -> None:
    data = bytes_of(update(0))
    at = HEADER.size + 4 + 8 + 4 + 1 + 2
    with pytest.raises(DecodeError, match="expected numbers of subscriptions"):
        decode(data[:at] + (66**5).to_bytes(4) + data[at + 4 :])


def test_a_number_that_is_no_point_does_not_decode() -> None:
    data = bytes_of(Event(7, 0, 1, 9, 0, b""))
    at = HEADER.size + 4 + 8
    with pytest.raises(DecodeError, match="expected a number below"):
        decode(data[:at] + (11**5).to_bytes(4) + data[at + 4 :])


def test_an_event_with_any_time_can_be_offered() -> None:
    times_us = (5_999, 2**64 - 1)
    events = [Event(number, 0, 1, time_us, 0, b"") for number, time_us in enumerate(times_us)]
    offer = decode(bytes_of(offer_of(1, True, events))).content
    assert offer.published_ms == (5, 2**32 - 1)
