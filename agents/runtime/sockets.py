"""Agents on real sockets: one event loop for one or many hosts.

A socket belongs to the namespace in which it was opened, so one process can serve many hosts. The
loop receives open sockets and opens none, so it needs no privileges.
"""

import heapq
import itertools
import select
import socket
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agents.agent import Action, Agent
from agents.errors import AgentFailed
from agents.probing.route import Route
from agents.protocol import CancelTimer, Compute, ProbeRoute, Record, SetTimer
from agents.runtime.arrival_stamps import STAMP_BYTES, arrival_ns, stamp_arrivals
from agents.runtime.computation import Computation
from agents.runtime.held_clock import HeldClock
from agents.runtime.probe_sockets import Prober
from agents.wire.codec import MAX_DATAGRAM_BYTES, PORT, Datagram, encode

_LONGEST_WAIT_S = 0.5
_READS_AT_ONCE = 32
_LATE_US = 10_000
_PROBING = object()  # a private object: no protocol can use it as a name

RecordSink = Callable[[int, str, str, Mapping[str, Any]], None]


@dataclass
class AgentSlot:
    """The place of an agent on a host with its sockets; it is empty after the agent was killed."""

    host: str
    endpoint: socket.socket
    prober: Prober[Route]
    agent: Agent | None = None
    timers: dict[Hashable, int] = field(default_factory=dict)
    seen_us: int = 0  # the latest time that the agent was given


@dataclass
class Lag:
    """The lateness of the loop."""

    count: int = 0
    late: int = 0  # by more than 10 ms
    sum_us: int = 0
    max_us: int = 0

    def note(self, late_us: int) -> None:
        """Count one call."""
        self.count += 1
        self.late += late_us > _LATE_US
        self.sum_us += late_us
        self.max_us = max(self.max_us, late_us)

    def to_values(self) -> dict[str, int | float]:
        """The counts as values of a record."""
        mean_us = self.sum_us / self.count if self.count else 0.0
        return {
            "count": self.count,
            "late": self.late,
            "mean_us": round(mean_us, 1),
            "max_us": self.max_us,
        }


class Clock:
    """Microseconds since the run began, divided by the time scale."""

    def __init__(self, held: HeldClock, origin_ns: int, time_scale: float) -> None:
        self._held = held
        self._origin_ns = origin_ns
        self._scale = time_scale * 1000

    def now_us(self) -> int:
        """The time of the run."""
        return int((self._held.now_ns() - self._origin_ns) / self._scale)

    def at_us(self, moment_ns: int) -> int:
        """The time of the run at a recent time of `time.monotonic_ns`."""
        return int((self._held.at_ns(moment_ns) - self._origin_ns) / self._scale)

    def real_s(self, run_us: float) -> float:
        """The real seconds of a span of the run's time."""
        return run_us * self._scale / 1e9


class SocketLoop:
    """Drives the agents of some hosts until the end of the run."""

    def __init__(self, clock: Clock, record: RecordSink) -> None:
        self.timer_lag, self.datagram_lag = Lag(), Lag()
        self._clock = clock
        self._record = record
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._due: list[tuple[int, int, Callable[[int], None]]] = []
        self._numbers = itertools.count()
        self._peers: dict[str, int] = {}
        self._computations: list[Computation] = []

    def add_slot(self, slot: AgentSlot) -> None:
        """Serve a host's sockets from now on."""
        stamp_arrivals(slot.endpoint)
        self.add_reader(slot.endpoint.fileno(), partial(self._read, slot))
        self.add_reader(slot.prober.fileno(), partial(self._read_probes, slot))

    def add_reader(self, descriptor: int, read: Callable[[], None]) -> None:
        """Call a function whenever a descriptor is readable or has an error."""
        self._readers[descriptor] = read
        self._epoll.register(descriptor, select.EPOLLIN)

    @property
    def computations(self) -> int:
        """The number of computations that have not finished."""
        return len(self._computations)

    def remove_reader(self, descriptor: int) -> None:
        """Stop watching a descriptor."""
        del self._readers[descriptor]
        self._epoll.unregister(descriptor)

    def call_at(self, time_us: int, call: Callable[[int], None]) -> int:
        """Call a function with the time, at that time of the run; returns its number."""
        number = next(self._numbers)
        heapq.heappush(self._due, (time_us, number, call))
        return number

    def place_agent(self, slot: AgentSlot, agent: Agent) -> None:
        """Start an agent at a slot, now."""
        slot.agent = agent
        now_us = self._clock.now_us()
        self._do(now_us, slot, agent.start(now_us))

    def stop_agent(self, slot: AgentSlot) -> None:
        """Stop an agent now; it can send last messages."""
        if slot.agent is not None:
            now_us = self._clock.now_us()
            self._do(now_us, slot, slot.agent.stop(now_us))
        self.remove_agent(slot)

    def remove_agent(self, slot: AgentSlot) -> None:
        """Remove an agent now; it sends nothing."""
        slot.agent = None
        slot.timers.clear()
        slot.prober.forget()

    def run(self, until_us: int) -> None:
        """Serve until the end of the run."""
        while self._clock.now_us() < until_us:
            self._fire_timers(until_us)
            for descriptor, _ in self._epoll.poll(self._wait_s(until_us)):
                self._readers[descriptor]()

    def close(self) -> None:
        """End the running computations."""
        for computation in self._computations:
            self.remove_reader(computation.fileno())
            computation.cancel()
        self._computations.clear()

    def _wait_s(self, until_us: int) -> float:
        next_us = min(until_us, self._due[0][0]) if self._due else until_us
        wait_s = self._clock.real_s(next_us - self._clock.now_us())
        return min(max(wait_s, 0.0), _LONGEST_WAIT_S)

    def _fire_timers(self, until_us: int) -> None:
        while self._due and self._due[0][0] <= (now_us := self._clock.now_us()) < until_us:
            due_us, _, call = heapq.heappop(self._due)
            self.timer_lag.note(now_us - due_us)
            call(now_us)

    def _set_timer(
        self, slot: AgentSlot, name: Hashable, time_us: int, call: Callable[[int], None]
    ) -> None:
        """Call a function at a time, unless the slot's timer of that name is changed before."""

        def call_if_current(now_us: int) -> None:
            if slot.timers.get(name) == number:
                del slot.timers[name]
                call(now_us)

        slot.timers[name] = number = self.call_at(time_us, call_if_current)

    def _wake(self, slot: AgentSlot, name: Hashable, now_us: int) -> None:
        if slot.agent is not None:
            self._do(now_us, slot, slot.agent.on_timer(now_us, name))

    def _read(self, slot: AgentSlot) -> None:
        for _ in range(_READS_AT_ONCE):
            try:
                data, ancillary, _, (text, _) = slot.endpoint.recvmsg(
                    MAX_DATAGRAM_BYTES + 1, STAMP_BYTES
                )
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error about a datagram of ours, which is ignored
            if slot.agent is not None:
                arrived_us = self._clock.at_us(arrival_ns(ancillary))
                self.datagram_lag.note(max(0, self._clock.now_us() - arrived_us))
                # The time of an agent is that of its events, and never decreases.
                came_us = max(slot.seen_us, arrived_us)
                actions = slot.agent.on_bytes(came_us, self._peer(text), data)
                self._do(came_us, slot, actions)

    def _peer(self, text: str) -> int:
        peer = self._peers.get(text)
        if peer is None:
            peer = self._peers[text] = int.from_bytes(socket.inet_aton(text), "big")
        return peer

    def _read_probes(self, slot: AgentSlot) -> None:
        now_us = self._clock.now_us()
        self._finish_probes(slot, now_us, slot.prober.on_readable(now_us))

    def _time_probes(self, slot: AgentSlot, now_us: int) -> None:
        self._finish_probes(slot, now_us, slot.prober.on_time(now_us))

    def _finish_probes(self, slot: AgentSlot, now_us: int, routes: Sequence[Route]) -> None:
        """Pass on finished routes, and set a timer for the other probings."""
        for route in routes:
            if slot.agent is not None:
                self._do(now_us, slot, slot.agent.on_route(now_us, route))
        deadline_us = slot.prober.next_deadline_us
        if deadline_us is not None:
            self._set_timer(slot, _PROBING, deadline_us, partial(self._time_probes, slot))

    def _do(self, now_us: int, slot: AgentSlot, actions: list[Action]) -> None:
        """Carry out the actions of an agent; delays count from now."""
        slot.seen_us, started_us = now_us, self._clock.now_us()
        for action in actions:
            match action:
                case Datagram():
                    self._transmit(slot, action)
                case SetTimer(name, delay_us):
                    if delay_us < 0:
                        raise AgentFailed.blame(
                            slot.host, now_us, ValueError(f"a timer in the past: {action}")
                        )
                    wake = partial(self._wake, slot, name)
                    self._set_timer(slot, name, started_us + delay_us, wake)
                case CancelTimer(name):
                    slot.timers.pop(name, None)
                case ProbeRoute(target):
                    slot.prober.probe(started_us, target)
                    self._finish_probes(slot, started_us, ())
                case Record(what, values):
                    self._record(now_us, slot.host, what, values)
                case Compute():
                    self._compute(slot, action)
                case _:
                    raise AgentFailed.blame(
                        slot.host, now_us, TypeError(f"expected an effect, found {action!r}")
                    )

    def _compute(self, slot: AgentSlot, action: Compute) -> None:
        """Compute in another process, and hand the result to the agent if it is still there."""
        computation, agent = Computation(action.function, action.arguments), slot.agent
        self._computations.append(computation)

        def finish() -> None:
            self.remove_reader(computation.fileno())
            self._computations.remove(computation)
            now_us = max(slot.seen_us, self._clock.now_us())
            try:
                result = computation.finish()
            except Exception as error:
                raise AgentFailed.blame(slot.host, now_us, error) from error
            if slot.agent is not None and slot.agent is agent:
                self._do(now_us, slot, slot.agent.on_computed(now_us, action.name, result))

        self.add_reader(computation.fileno(), finish)

    def _transmit(self, slot: AgentSlot, datagram: Datagram) -> None:
        address = socket.inet_ntoa(datagram.receiver.to_bytes(4, "big"))
        try:
            slot.endpoint.sendto(encode(datagram), (address, PORT))
        except OSError:
            # No route, or an ICMP error about an earlier datagram: the datagram is lost.
            if slot.agent is not None:
                slot.agent.counts["unsent"] += 1
