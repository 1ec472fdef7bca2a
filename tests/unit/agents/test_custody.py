"""Custody between real instances on fake links: crashes, restarts, lost reports, loops, repeats."""

from collections.abc import Hashable
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agents.announcements import PeerLost, PeerRestarted
from agents.failure_detector import FailureDetector
from agents.protocol import Effect, Effects, PeerId, Protocol, Record, Surroundings
from agents.pubsub.custody import Custody, Inquiry, Part, Report
from agents.stack import Stack
from agents.wire.codec import U8, U32, U64, message
from tests.fixtures.fake_link import FakeLinks

KEEP_S = 10.0


@message(240, role="event")
class Parcel(Struct, frozen=True):
    """An event that relays carry to the last peer of its route, which handles a part."""

    event_id: U64
    hop_count: U8
    token: U32
    route: tuple[U32, ...]
    part: U32 = 0


class Carrier(Protocol):
    """Relays parcels along their routes, and around failed peers; the last one handles them."""

    messages = (Parcel, *Custody.messages)

    def __init__(self, me: PeerId, is_stuck: bool = False, splits: dict[int, Any] | None = None):
        super().__init__(Surroundings(me, (), Random(me)))
        self.custody = Custody(self, KEEP_S)
        self.is_stuck = is_stuck  # accepts parcels and never forwards them
        self.splits = splits or {}  # parts that the handler of a part sends, with their routes

    def publish(self, now_us: int, event: int, *route: PeerId) -> Effects:
        part = self.custody.begin(now_us, event, is_relay=True)
        effects = self.custody.send(now_us, part, route[0], Parcel(event, 0, 0, route[1:]))
        return [*effects, *self.custody.settle(now_us, part)]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        if not isinstance(message, Parcel):
            return self.custody.on_message(now_us, sender, message)
        is_relay = bool(message.route)
        key = message.event_id if is_relay else (message.event_id, message.part)
        part = self.custody.take(now_us, sender, message.token, key, is_relay=is_relay)
        effects: list[Effect] = []
        if part.is_new:
            effects += (
                self._pass_on(now_us, part, message)
                if is_relay
                else self._handle(now_us, part, message)
            )
        return [*effects, *self.custody.settle(now_us, part)]

    def _pass_on(self, now_us: int, part: Part, parcel: Parcel) -> Effects:
        if self.is_stuck or part.is_loop:
            return self.custody.hold(now_us, part, parcel)
        onward = replace(parcel, route=parcel.route[1:])
        return self.custody.send(now_us, part, parcel.route[0], onward)

    def _handle(self, now_us: int, part: Part, parcel: Parcel) -> Effects:
        effects: list[Effect] = [Record("handled", {"event": parcel.event_id, "part": parcel.part})]
        for smaller, (to, *route) in self.splits.get(parcel.part, {}).items():
            onward = replace(parcel, route=tuple(route), part=smaller)
            effects += self.custody.send(now_us, part, to, onward)
        return effects

    def on_part_returned(
        self, now_us: int, part: Part, message: Any, receiver: PeerId | None
    ) -> Effects:
        if receiver is None:
            return self._pass_on(now_us, part, message)
        if not message.route:
            return ()  # No peer is left to receive it.
        onward = replace(message, route=message.route[1:])
        return self.custody.send(now_us, part, message.route[0], onward)

    def on_part_done(self, now_us: int, part: Part) -> Effects:
        return [Record("finished", {"event": part.key})]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        return self.custody.on_timer(now_us, name)

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        return self.custody.on_give_up(now_us, to, message)

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        return self.custody.on_announcement(now_us, content)


def carriers(*numbers: PeerId, **options: Any) -> tuple[FakeLinks, dict[PeerId, Carrier]]:
    """Carriers on links, without failure detectors."""
    links, made = FakeLinks(), {number: Carrier(number, **options) for number in numbers}
    for number, carrier in made.items():
        links.start(number, carrier)
    return links, made


def watched(carrier: Carrier) -> Stack:
    """A carrier on top of a failure detector."""
    return Stack([FailureDetector(Surroundings(carrier.me, (), Random(carrier.me))), carrier])


def events(links: FakeLinks, what: str) -> list[tuple[PeerId, int]]:
    return [(peer, values["event"]) for peer, values in links.recorded(what)]


def test_the_publisher_learns_that_a_part_is_done_after_the_last_peer_handled_it() -> None:
    links, made = carriers(1, 2, 3, 4)
    links.do(1, made[1].publish(0, 7, 2, 3, 4))
    links.run(0.002)
    assert events(links, "finished") == [] and not made[1].custody.is_empty
    links.run(0.2)
    assert events(links, "handled") == [(4, 7)] and events(links, "finished") == [(1, 7)]
    assert all(carrier.custody.is_empty for carrier in made.values())
    assert [one[:2] for one in links.sent_of(Report)] == [(4, 3), (3, 2), (2, 1)]
    assert links.sent_of(Inquiry) == []


def test_a_relay_that_crashes_with_a_part_is_replaced() -> None:
    links = FakeLinks()
    stuck = Carrier(2, is_stuck=True)
    publisher = Carrier(1)
    for carrier in (publisher, stuck, Carrier(3), Carrier(4)):
        links.start(carrier.me, watched(carrier))
    effects = publisher.publish(0, 7, 2, 3, 4)
    links.do(1, links.peers[1]._from(0, 1, effects))  # type: ignore[attr-defined]
    links.run(5)
    assert events(links, "handled") == []
    links.kill(2)
    links.run(3.5)
    assert events(links, "handled") == [(4, 7)] and events(links, "finished") == [(1, 7)]


def test_a_relay_that_restarts_unnoticed_has_lost_the_part() -> None:
    links, made = carriers(1, 3)
    links.start(2, Carrier(2, is_stuck=True))
    links.do(1, made[1].publish(0, 7, 2, 3))
    links.run(0.1)
    links.start(2, Carrier(2))
    links.run(3)
    assert events(links, "handled") == [(3, 7)] and events(links, "finished") == [(1, 7)]


def test_a_part_returns_when_its_receiver_is_lost_restarted_or_silent() -> None:
    for told in (PeerLost(2), PeerRestarted(2), None):
        links, made = carriers(1, 3)
        links.do(1, made[1].publish(0, 7, 2, 3))
        if told:
            links.do(1, made[1].on_announcement(1, told))
        links.run(0.1 if told else 21)
        assert events(links, "handled") == [(3, 7)] and events(links, "finished") == [(1, 7)]


def test_a_lost_report_is_requested() -> None:
    links, made = carriers(1, 2)
    links.is_dropped = lambda _sender, _to, one: isinstance(one, Report) and links.now_us < 1e6
    links.do(1, made[1].publish(0, 7, 2))
    links.run(1)
    assert events(links, "finished") == []
    links.run(2)
    assert events(links, "handled") == [(2, 7)] and events(links, "finished") == [(1, 7)]


def test_reports_are_accepted_only_from_the_receiver_and_for_this_incarnation() -> None:
    links, _ = carriers(1, 2)
    links.start(1, Carrier(1, is_stuck=True))
    former = links.peers[1]
    assert isinstance(former, Carrier)
    links.do(1, former.publish(0, 7, 2, 3))
    (old,) = (one[2].token for one in links.sent_of(Parcel))
    links.run(1)
    later = Carrier(1)
    links.start(1, later)
    links.do(1, later.publish(links.now_us, 8, 2, 3))
    token = links.sent_of(Parcel)[-1][2].token
    assert token != old
    for sender, reported in ((2, old), (3, token), (2, token + 1)):
        links.do(1, later.on_message(links.now_us, sender, Report((reported,), (reported,))))
    assert not later.custody.is_empty
    links.do(1, later.on_message(links.now_us, 2, Report((token,), ())))
    assert later.custody.is_empty and events(links, "finished") == [(1, 8)]


def test_only_an_identical_part_is_answered_from_state_and_only_for_a_while() -> None:
    links, made = carriers(1, 2)
    for second, part in ((0.0, 5), (1.0, 5), (2.0, 6), (12.1, 5)):
        links.run(second - links.now_us / 1e6)
        parcel = Parcel(7, 0, int(second * 10), (), part)
        links.do(2, made[2].on_message(links.now_us, 1, parcel))
    links.run(1)
    assert [values["part"] for _, values in links.recorded("handled")] == [5, 6, 5]
    assert sorted(t for one in links.sent_of(Report) for t in one[2].done) == [0, 10, 20, 121]


def test_a_part_that_is_not_done_is_reported_to_all_its_senders() -> None:
    links, made = carriers(1, 2, 3, 4)
    made[3].splits = {0: {1: [4]}}
    made[4].splits = {1: {2: [9]}}  # a peer that does not answer
    links.do(1, made[1].publish(0, 7, 2, 3))
    links.run(0.1)
    links.kill(2)  # Its part is at 3 now, and returns to 3.
    links.do(1, made[1].on_announcement(links.now_us, PeerLost(2)))
    links.run(0.1)
    assert events(links, "finished") == []
    links.do(4, made[4].on_announcement(links.now_us, PeerLost(9)))
    links.run(0.1)
    assert [values["part"] for _, values in links.recorded("handled")] == [0, 1]
    assert events(links, "finished") == [(1, 7)]


def test_parts_leave_a_loop_once_routes_are_correct() -> None:
    links, made = carriers(1, 2, 3, 4)
    links.do(1, made[1].publish(0, 7, 2, 3, 2, 3, 2, 3, 2, 3, 4))
    links.run(0.4)
    assert events(links, "handled") == [] and len(links.sent_of(Parcel)) == 3
    links.run(4)
    assert events(links, "handled") == [(4, 7)] and events(links, "finished") == [(1, 7)]
    assert all(carrier.custody.is_empty for carrier in made.values())


def test_no_report_of_a_withdrawn_part_is_awaited() -> None:
    links, made = carriers(1, 2)
    made[2].splits = {0: {1: [8], 2: [9]}}
    links.do(1, made[1].publish(0, 7, 2))
    links.run(0.1)
    links.do(2, made[2].custody.withdraw(links.now_us, 8, lambda parcel: parcel.part == 2))
    links.do(2, made[2].custody.withdraw(links.now_us, 9, lambda parcel: parcel.part == 2))
    links.run(0.1)
    assert events(links, "finished") == []
    links.do(2, made[2].custody.withdraw(links.now_us, 8))
    links.run(0.1)
    assert events(links, "finished") == [(1, 7)]


def test_reports_are_combined_up_to_the_size_of_a_datagram() -> None:
    links, made = carriers(1, 2)
    for event in range(700):
        links.do(1, made[1].publish(0, event, 2))
    links.run(0.2)
    assert len(events(links, "finished")) == 700
    assert [len(one[2].done) for one in links.sent_of(Report)] == [300, 300, 100]


def test_a_slow_receiver_is_watched_until_it_is_done() -> None:
    links = FakeLinks()
    publisher, stuck = Carrier(1), Carrier(2, is_stuck=True)
    for carrier in (publisher, stuck, Carrier(3)):
        links.start(carrier.me, watched(carrier))
    detector = links.peers[1]._layers[0]  # type: ignore[attr-defined]
    links.do(1, links.peers[1]._from(0, 1, publisher.publish(0, 7, 2, 3)))  # type: ignore
    links.run(0.4)
    assert not detector._watched
    links.run(0.3)
    assert set(detector._watched) == {2}
    stuck.is_stuck = False
    links.run(2)
    assert not detector._watched and events(links, "finished") == [(1, 7)]
