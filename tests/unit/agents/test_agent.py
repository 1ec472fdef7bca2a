"""Two agents connected by a test: messages they accept, repeat, measure and give up."""

from collections.abc import Hashable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from agents.agent import Action, Agent, Ping
from agents.errors import AgentFailed
from agents.overlays.hello import Hello
from agents.protocol import (
    CancelTimer,
    Delay,
    Effects,
    MeasureDelay,
    PeerId,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
)
from agents.runtime.simulator import Simulator
from agents.wire.codec import U32, WANTS_ACK, Datagram, encode, message
from agents.wire.reliable import ReplayWindow
from topologies.underlay import Channel, Host, Link, Router, Underlay

ME, PEER, STRANGER, RUN = 10, 20, 30, 7


@message(251, role="event")
class Note(Struct, frozen=True):
    number: U32


class Notebook(Protocol):
    """Returns the effects in its settings at the start, and records all calls of its handlers."""

    class Settings(Struct, frozen=True):
        first: Effects

    settings: Settings
    messages = (Note,)

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self.heard: list[Any] = []

    def on_start(self, now_us: int) -> Effects:
        del now_us
        return self.settings.first

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        del now_us
        self.heard.append((sender, message))
        return ()

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        del now_us
        self.heard.append(name)
        return ()

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        del now_us
        self.heard.append(delay)
        return [Record("measured", {"samples": len(delay.samples_us)})]

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        del now_us
        self.heard.append(("gave up", to, message))
        return ()


def make(address: int = ME, *first: Any) -> tuple[Agent, Notebook]:
    notebook = Notebook(Surroundings(address, (), Random(1), Notebook.Settings(first)))
    return Agent(address, RUN, notebook), notebook


def note(number: int = 0, *, message_id: int = 1, **changed: int) -> Datagram:
    fields = {"flags": 0, "run_id": RUN, "sender": PEER, "receiver": ME, "sent_us": 0} | changed
    return Datagram(Note(number), message_id=message_id, **fields)


def sent(actions: list[Action]) -> Datagram:
    (datagram,) = [action for action in actions if isinstance(action, Datagram)]
    return datagram


def timers(actions: list[Action]) -> list[SetTimer]:
    return [action for action in actions if isinstance(action, SetTimer)]


@pytest.mark.parametrize(
    ("data", "source", "count"),
    [
        (encode(note(sender=STRANGER)), PEER, "impostor"),
        (encode(note(sender=ME)), ME, "impostor"),
        (encode(note(receiver=STRANGER)), PEER, "misaddressed"),
        (encode(note(run_id=RUN + 1)), PEER, "of_another_run"),
        (encode(note())[:-1], PEER, "malformed"),
        (b"", PEER, "malformed"),
        (encode(Datagram(Hello(1), WANTS_ACK, RUN, PEER, ME, 1, 0)), PEER, "unexpected"),
    ],
)
def test_invalid_datagrams_are_counted_and_dropped(data: bytes, source: int, count: str) -> None:
    agent, notebook = make()
    assert agent.on_bytes(5, source, data) == []
    assert notebook.heard == []
    assert agent.figures == {count: 1, "received": 0, "sent": 0}


def test_a_replay_is_handled_once_and_acknowledged_each_time() -> None:
    agent, notebook = make()
    datagram = note(3, flags=WANTS_ACK)
    for time_us in (5, 6, 7):
        assert len(agent.on_datagram(time_us, datagram)) == 1
    assert notebook.heard == [(PEER, Note(3))]
    assert agent.counts == {"repeated": 2}
    assert agent.figures["received"] == 3
    assert agent.figures["sent"] == agent.figures["sent_Acknowledgement"] == 3


def test_an_unreliable_message_is_handled_as_often_as_it_arrives() -> None:
    agent, notebook = make()
    for message_id in (5_000, 5_000, 900):
        assert agent.on_datagram(5, note(3, message_id=message_id)) == []
    assert notebook.heard == 3 * [(PEER, Note(3))]
    assert agent.counts == {}


def test_a_message_too_old_to_recognise_is_not_acknowledged() -> None:
    agent, notebook = make()
    agent.on_datagram(5, note(1, flags=WANTS_ACK, message_id=5_000))
    assert agent.on_datagram(6, note(2, flags=WANTS_ACK, message_id=900)) == []
    assert len(agent.on_datagram(7, note(3, flags=WANTS_ACK, message_id=905))) == 1
    assert notebook.heard == [(PEER, Note(1)), (PEER, Note(3))]
    assert agent.counts["too_old"] == 1


def test_a_protocol_that_sends_to_itself_is_an_internal_error() -> None:
    agent, _ = make(ME, Send(ME, Note(1)))
    with pytest.raises(ValueError, match="Note: a protocol sent a message to itself"):
        agent.start(0)


def test_a_protocol_must_declare_its_messages() -> None:
    agent, _ = make(ME, Send(PEER, Hello(1)))
    with pytest.raises(ValueError, match="Hello: expected one of its protocol's `messages`"):
        agent.start(0)


def test_a_timer_reaches_its_protocol_with_any_name() -> None:
    names = ["tea", ("sample", PEER), ("resend", 0)]
    wishes = [SetTimer(name, 5) for name in names]
    agent, notebook = make(ME, *wishes)
    assert agent.start(0) == wishes
    for name in names:
        agent.on_timer(5, name)
    assert notebook.heard == names


def test_a_delay_is_measured_with_one_round_trip_after_another() -> None:
    agent, notebook = make(ME, MeasureDelay(PEER, 3), MeasureDelay(PEER, 3))
    peer, _ = make(PEER)
    actions = agent.start(0)
    (timer,) = timers(actions)
    for time_us in (40, 90, 140):
        (pong,) = peer.on_datagram(time_us - 20, sent(actions))
        assert isinstance(pong, Datagram)
        actions = agent.on_datagram(time_us, pong)
        agent.on_datagram(time_us + 1, pong)  # A replay adds no sample.
    assert notebook.heard == [Delay(PEER, (40, 50, 50))]
    assert (notebook.heard[0].min_us, notebook.heard[0].median_us) == (40, 50)
    assert CancelTimer(timer.name) in actions
    assert Record("measured", {"samples": 3}) in actions


def test_a_silent_peer_gives_no_samples() -> None:
    agent, notebook = make(ME, MeasureDelay(PEER, 2))
    actions = agent.start(0)
    for _ in range(2):
        (timer,) = timers(actions)
        actions = agent.on_timer(2_000_000, timer.name)
    assert notebook.heard == [Delay(PEER, ())]


def test_an_unrequested_pong_has_no_effect() -> None:
    agent, _ = make()
    peer, _ = make(PEER)
    ping = Datagram(Ping(99), 0, RUN, ME, PEER, 1, 0)
    (pong,) = peer.on_datagram(1, ping)
    assert isinstance(pong, Datagram)
    assert agent.on_datagram(2, pong) == []


def test_a_reliable_message_is_repeated_with_back_off_and_given_up() -> None:
    agent, notebook = make(ME, Send(PEER, Note(1), reliable=True))
    actions = agent.start(0)
    datagram, waits_us = sent(actions), []
    while actions:
        (timer,) = timers(actions)
        waits_us.append(timer.delay_us)
        assert sent(actions) == datagram
        actions = agent.on_timer(sum(waits_us), timer.name)
    assert waits_us == sorted(waits_us)
    assert notebook.heard == [("gave up", PEER, Note(1))]
    assert agent.counts == {"resent": len(waits_us) - 1, "given_up": 1}
    assert agent.figures["sent"] == 1


def test_an_acknowledgement_ends_the_repetition_and_adapts_the_timeout() -> None:
    agent, notebook = make(ME, Send(PEER, Note(1), reliable=True))
    peer, heard_by_peer = make(PEER)
    actions = agent.start(0)
    (answer,) = peer.on_datagram(50_000, sent(actions))
    assert isinstance(answer, Datagram)
    (cancel,) = agent.on_datagram(100_000, answer)
    assert heard_by_peer.heard == [(ME, Note(1))]
    (timer,) = timers(actions)
    assert cancel == CancelTimer(timer.name)
    assert agent.on_timer(200_000, timer.name) == []
    notebook.settings = Notebook.Settings([Send(PEER, Note(2), reliable=True)])
    (later,) = timers(agent.start(300_000))
    assert later.delay_us == 4 * 100_000


@pytest.mark.parametrize(
    ("wish", "wrong"),
    [
        ("tea", "TypeError: expected an effect, found 'tea'"),
        (SetTimer("tea", 0.5), r"TypeError: expected a name and whole microseconds, found .*0\.5"),
        (
            SetTimer(["tea"], 5),
            r"TypeError: expected a name and whole microseconds, found .*\['tea",
        ),
        (Send(PEER, Note(-1)), "error: .*argument out of range"),
    ],
)
def test_an_invalid_effect_ends_a_simulation_with_the_agents_name(wish: Any, wrong: str) -> None:
    slow = Channel(1_000, rate_mbit=10)  # has a rate, so messages are encoded
    links = tuple(Link(host, "r1", slow, slow) for host in ("h1", "h2"))
    simulator = Simulator(Underlay((Router("r1"),), links, (Host("h1"), Host("h2"))))
    simulator.add_agent("h1", lambda: make(ME, wish)[0])
    simulator.start_agent(3, "h1")
    with pytest.raises(AgentFailed, match=f"^agent h1 at 0.000003 s: {wrong}"):
        simulator.run(10)


def test_only_the_receiver_can_acknowledge() -> None:
    agent, _ = make(ME, Send(PEER, Note(1), reliable=True))
    stranger, _ = make(STRANGER)
    actions = agent.start(0)
    stolen = Datagram(Note(1), WANTS_ACK, RUN, ME, STRANGER, 0, 0)  # causes an ack of id 0
    (answer,) = stranger.on_datagram(1, stolen)
    assert isinstance(answer, Datagram)
    assert agent.on_datagram(2, answer) == []
    (timer,) = timers(actions)
    assert sent(agent.on_timer(1_000_000, timer.name)) == sent(actions)


@pytest.mark.parametrize("later_us", [3_000_000, 11 * 3_600_000_000])
def test_messages_of_a_restarted_agent_are_not_taken_for_replays(later_us: int) -> None:
    agent, notebook = make()
    for start_us in (0, later_us):
        peer, _ = make(PEER, Send(ME, Note(1), reliable=True))
        agent.on_datagram(start_us + 10, sent(peer.start(start_us)))
    assert len(notebook.heard) == 2


@pytest.mark.parametrize("first", [0, 2**31, 2**32 - 6_000])
@given(st.lists(st.integers(0, 12_000), max_size=200))
def test_a_window_accepts_each_id_once(first: int, numbers: list[int]) -> None:
    window, admitted, newest = ReplayWindow(), set(), -1
    for number in numbers:
        is_new = window.is_new((first + number) % 2**32)
        if number <= newest - 4_096:
            assert is_new is None
        else:
            assert is_new is (number not in admitted)
        admitted |= {number} if is_new else set()
        newest = max(newest, number)


@pytest.mark.parametrize("far", [2**31, 2**32 - 1])
def test_an_id_far_ahead_does_not_make_later_ids_old(far: int) -> None:
    agent, notebook = make()
    for message_id in (far, 5_000, 5_001):
        agent.on_datagram(5, note(message_id, flags=WANTS_ACK, message_id=message_id))
    assert notebook.heard == [(PEER, Note(far)), (PEER, Note(5_000)), (PEER, Note(5_001))]
