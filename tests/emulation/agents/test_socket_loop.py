"""The loop that drives agents on sockets, with sockets on loopback."""

import socket
import time
from collections.abc import Callable, Hashable, Iterator
from ipaddress import IPv4Address
from random import Random
from time import monotonic_ns
from typing import Any

import pytest

from agents.agent import Agent
from agents.errors import AgentFailed
from agents.overlays.hello import Welcome
from agents.probing.probe import ProbeSettings
from agents.probing.route import Route
from agents.probing.route_probe import RouteProbe
from agents.protocol import Compute, Effects, PeerId, ProbeRoute, Protocol, SetTimer, Surroundings
from agents.runtime.arrival_stamps import arrival_ns, stamp_arrivals
from agents.runtime.held_clock import HeldClock
from agents.runtime.probe_sockets import Prober
from agents.runtime.sockets import AgentSlot, Clock, SocketLoop
from agents.wire.codec import Datagram, encode

RUN_ID = 1
ME, OTHER = (int(IPv4Address(f"127.0.0.{number}")) for number in (1, 2))
HELD_UP_S = 0.2


class Diary(Protocol):
    """Records when it handles messages, and waits after each; can return effects at its start."""

    messages = (Welcome,)

    def __init__(self, *wanted: Any) -> None:
        super().__init__(Surroundings(ME, (), Random(1)))
        self.wanted = wanted
        self.times_us: list[int] = []
        self.waits_over = 0
        self.results: list[tuple[Hashable, Any]] = []
        self.routes: list[Route] = []

    def on_start(self, now_us: int) -> Effects:
        return self.wanted

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        self.times_us.append(now_us)
        return [SetTimer("wait", int(HELD_UP_S * 1e6 / 4))]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        self.waits_over += 1
        return ()

    def on_computed(self, now_us: int, name: Hashable, result: Any) -> Effects:
        self.results.append((name, result))
        return ()

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        self.routes.append(route)
        return ()


class Stage:
    """A loop with one agent, and a socket that sends messages to it."""

    def __init__(self) -> None:
        self.clock = Clock(HeldClock(), monotonic_ns(), time_scale=2)
        self.loop = SocketLoop(self.clock, lambda *_: None)
        self.diary = Diary()
        endpoint = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        endpoint.bind((str(IPv4Address(ME)), 0))
        self.sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sender.bind((str(IPv4Address(OTHER)), 0))
        self.slot = AgentSlot("h1", endpoint, Prober(RouteProbe))
        self.loop.add_slot(self.slot)
        self.start(self.diary)

    def start(self, protocol: Protocol) -> None:
        self.loop.place_agent(self.slot, Agent(ME, RUN_ID, protocol))

    def send(self, number: int) -> None:
        datagram = Datagram(Welcome(number), 0, RUN_ID, OTHER, ME, number, 0)
        self.sender.sendto(encode(datagram), self.slot.endpoint.getsockname())


def await_stamps() -> None:
    """Wait until the kernel timestamps packets: it begins shortly after the first socket requests
    it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mailbox:
        mailbox.bind(("127.0.0.1", 0))
        stamp_arrivals(mailbox)
        for _ in range(500):
            mailbox.sendto(b"", mailbox.getsockname())
            sent_ns = monotonic_ns()
            time.sleep(0.01)
            if arrival_ns(mailbox.recvmsg(0, 64)[1]) <= sent_ns:
                return
    raise TimeoutError("no stamps within five seconds")


@pytest.fixture
def stage() -> Iterator[Stage]:
    made = Stage()
    await_stamps()
    yield made
    made.sender.close()
    made.slot.endpoint.close()
    made.slot.prober.close()


def test_the_time_of_a_message_is_when_the_kernel_received_it(stage: Stage) -> None:
    stage.send(1)
    sent_us = stage.clock.now_us()
    time.sleep(HELD_UP_S)  # The loop is busy.
    held_up_us = HELD_UP_S * 1e6 / 2
    stage.loop.run(stage.clock.now_us() + 1_000)
    (came_us,) = stage.diary.times_us
    assert came_us < sent_us + held_up_us / 2
    assert stage.loop.datagram_lag.max_us >= held_up_us
    assert stage.diary.waits_over == 0  # It begins to wait when it handles the message.


def test_the_time_of_an_agent_never_decreases(stage: Stage) -> None:
    stage.send(1)
    time.sleep(HELD_UP_S)
    told_us = stage.clock.now_us()
    stage.start(stage.diary)  # It starts after the message arrived.
    stage.loop.run(stage.clock.now_us() + 1_000)
    assert stage.diary.times_us[0] >= told_us


def test_pending_requests_of_an_agent_end_with_it(stage: Stage) -> None:
    for _ in range(ProbeSettings().max_outstanding):
        stage.start(Diary(ProbeRoute(OTHER)))
        stage.loop.remove_agent(stage.slot)
    stage.start(stage.diary)
    stage.loop.run(stage.clock.now_us() + 50_000)
    assert stage.diary.routes == []  # This incarnation has requested nothing.
    curious = Diary(ProbeRoute(OTHER))
    stage.start(curious)
    stage.loop.run(stage.clock.now_us() + 50_000)
    assert [route.target for route in curious.routes] == [OTHER]


def run_until(stage: Stage, is_over: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_over():
            return
        stage.loop.run(stage.clock.now_us() + 50_000)
    raise TimeoutError("not within 20 seconds")


def test_a_computation_runs_in_parallel_with_the_agent(stage: Stage) -> None:
    thinker = Diary(Compute("slow", time.sleep, (0.3,), 1), Compute("sum", sum, ([3, 4],), 1))
    stage.start(thinker)
    stage.send(1)
    run_until(stage, lambda: len(thinker.results) == 2)
    assert sorted(thinker.results) == [("slow", None), ("sum", 7)]
    assert len(thinker.times_us) == 1


def test_the_result_for_an_agent_that_has_ended_is_dropped(stage: Stage) -> None:
    former, present = (
        Diary(Compute("sum", sum, ([3, 4],), 1)),
        Diary(Compute("max", max, (1, 2), 1)),
    )
    stage.start(former)
    stage.loop.remove_agent(stage.slot)
    stage.start(present)
    run_until(stage, lambda: bool(present.results) and not stage.loop.computations)
    assert former.results == [] and present.results == [("max", 2)]


def test_a_failed_computation_fails_the_run_with_its_message(stage: Stage) -> None:
    stage.start(Diary(Compute("sum", sum, (["a"],), 1)))
    with pytest.raises(AgentFailed, match=r"agent h1 at .* s: RuntimeError: .*unsupported operand"):
        run_until(stage, lambda: False)


def test_a_running_computation_ends_with_the_run(stage: Stage) -> None:
    stage.start(Diary(Compute("slow", time.sleep, (60,), 1)))
    stage.loop.run(stage.clock.now_us() + 50_000)
    assert stage.loop.computations == 1
    stage.loop.close()
    assert stage.loop.computations == 0


@pytest.mark.parametrize(
    ("wanted", "complaint"),
    [
        (SetTimer("late", -1), "ValueError: a timer in the past: SetTimer"),
        ("a word", "TypeError: expected an effect, found 'a word'"),
    ],
)
def test_an_impossible_effect_is_an_internal_error(
    stage: Stage, wanted: Any, complaint: str
) -> None:
    with pytest.raises(AgentFailed, match=f"agent h1 at .* s: {complaint}"):
        stage.start(Diary(wanted))
