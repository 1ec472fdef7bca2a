"""Layers of protocols in one agent: results return to their layer, announcements to the others."""

from collections.abc import Hashable
from random import Random
from typing import Any

import pytest
from msgspec import Struct

from agents.kinds import make_agent
from agents.overlays.gossip import Pull, Push
from agents.overlays.hello import Hello, HelloProtocol, Welcome
from agents.probing.route import Route
from agents.protocol import (
    Announce,
    CancelTimer,
    Compute,
    Delay,
    Effects,
    MeasureDelay,
    PeerId,
    ProbeRoute,
    Protocol,
    Record,
    SetTimer,
    Surroundings,
)
from agents.stack import Stack
from agents.wire.codec import U32, Datagram, message


@message(248, role="event")
class Low(Struct, frozen=True):
    """A message of the lower layer."""

    number: U32


@message(249, role="event")
class High(Struct, frozen=True):
    """A message of the upper layer."""

    number: U32


class Layer(Protocol):
    """Records all calls of its handlers with its own name."""

    def record(self, what: str) -> Record:
        return Record(f"{type(self).__name__}:{what}")

    def on_start(self, now_us: int) -> Effects:
        return [SetTimer("tick", 5), CancelTimer("tock"), ProbeRoute(7), MeasureDelay(8)]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        return [self.record(f"timer {name}")]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        return [self.record(f"message {message.number}"), Announce(message.number)]

    def on_computed(self, now_us: int, name: Hashable, result: Any) -> Effects:
        return [self.record(f"computed {name} {result}")]

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        return [self.record(f"heard {content}")]

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        return [self.record("route")]

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        return [self.record("delay")]

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        return [self.record("given up")]


class Lower(Layer):
    messages = (Low,)


class Upper(Layer):
    messages = (High,)

    def on_start(self, now_us: int) -> Effects:
        return [SetTimer("tick", 9), Announce("up")]


class Thinker(Layer):
    def on_start(self, now_us: int) -> Effects:
        return [Compute("sum", sum, ((3, 4),), 10)]


def make() -> Stack:
    given = Surroundings(1, (), Random(1))
    return Stack([Lower(given), Upper(given)])


def words(effects: Effects) -> list[str]:
    return [effect.what for effect in effects if isinstance(effect, Record)]


def test_timers_of_the_same_name_are_separate() -> None:
    stack = make()
    effects = stack.on_start(0)
    timers = [effect.name for effect in effects if isinstance(effect, SetTimer)]
    assert len(set(timers)) == 2
    told = [words(stack.on_timer(5, name)) for name in timers]
    assert told == [["Lower:timer tick"], ["Upper:timer tick"]]
    assert CancelTimer((0, "tock")) in effects


def test_the_result_of_a_computation_reaches_the_layer_that_requested_it() -> None:
    stack = Stack([Lower(given := Surroundings(1, (), Random(1))), Thinker(given)])
    (compute,) = (one for one in stack.on_start(0) if isinstance(one, Compute))
    assert words(stack.on_computed(5, compute.name, 7)) == ["Thinker:computed sum 7"]


def test_messages_reach_their_layer_and_announcements_the_others() -> None:
    stack = make()
    assert words(stack.on_start(0)) == ["Lower:heard up"]
    assert words(stack.on_message(1, 9, High(3))) == ["Upper:message 3", "Lower:heard 3"]
    assert words(stack.on_message(1, 9, Low(4))) == ["Lower:message 4", "Upper:heard 4"]
    assert words(stack.on_give_up(1, 9, Low(4))) == ["Lower:given up"]


def test_answers_reach_only_the_layer_that_requested_them() -> None:
    stack = make()
    stack.on_start(0)
    assert words(stack.on_probe_result(1, Route(7, (), is_reached=False))) == ["Lower:route"]
    assert words(stack.on_delay(1, Delay(8, (5,)))) == ["Lower:delay"]
    assert words(stack.on_delay(1, Delay(8, (5,)))) == []


@pytest.mark.parametrize(
    ("overlay", "question", "answer"),
    [("hello", Hello(1), Welcome), ("gossip", Push(0, 2, 1.0), Pull)],
)
def test_every_overlay_receives_messages_under_a_routing(
    overlay: str, question: Any, answer: type
) -> None:
    layers = {"overlay": {"kind": overlay}, "routing": {"kind": "mst"}}
    agent = make_agent(layers, 7, Surroundings(1, (2,), Random(1)))
    (sent,) = agent.on_datagram(5, Datagram(question, 0, 7, 2, 1, 3, 4))
    assert isinstance(sent, Datagram)
    assert type(sent.content) is answer


def test_a_greeting_given_up_under_a_routing_is_recorded() -> None:
    given = Surroundings(1, (2,), Random(1))
    stack = Stack([HelloProtocol(given), Upper(given)])
    assert stack.on_give_up(1, 2, Hello(1)) == [Record("given_up", {"peer": 2})]
