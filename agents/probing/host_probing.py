"""Probing of many targets from one host, without I/O, with one limit of outstanding probes.

Both runtimes use this module: a host probes in the same order on sockets and in the simulator.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from agents.probing.probe import Allowance, Answer, Probe, ProbeSettings

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Mark(NamedTuple):
    """The two numbers of 32 bits in a probe that identify its answer."""

    target_number: int
    probe_number: int


class Probing(Protocol[Result_co]):
    """The probing of one target: `RouteProbe` or `MultipathProbe`."""

    @property
    def result(self) -> Result_co | None: ...

    @property
    def wants_room(self) -> bool: ...

    @property
    def next_deadline_us(self) -> int | None: ...

    def start(self, now_us: int) -> list[Probe]: ...

    def go_on(self, now_us: int) -> list[Probe]: ...

    def on_reply(
        self,
        now_us: int,
        number: int,
        address: int,
        answer: Answer,
        round_trip_us: int,
        ttl_left: int | None,
    ) -> list[Probe]: ...

    def on_time(self, now_us: int) -> list[Probe]: ...


Begin = Callable[[int, ProbeSettings, Allowance], Probing[Result]]
# sends a probe to a target and returns the send time, in microseconds of any clock
Send = Callable[[int, Mark, Probe], int]


@dataclass(slots=True)
class _UnderWay(Generic[Result]):
    """The probing of one target, and the send times of its probes."""

    number: int
    target: int
    probing: Probing[Result]
    deadline_us: int | None = None  # none while it waits for the allowance
    sent_us: dict[int, int] = field(default_factory=dict)


class HostProbing(Generic[Result]):
    """Probes targets; the runtime passes replies and calls at deadlines."""

    def __init__(
        self, begin: Begin[Result], send: Send, settings: ProbeSettings | None = None
    ) -> None:
        """Prepare; `begin` creates the probing of one target, for example `RouteProbe`."""
        self._begin = begin
        self._send = send
        self._settings = settings or ProbeSettings()
        self._allowance = Allowance(self._settings)
        self._queued: deque[int] = deque()
        self._under_way: dict[int, _UnderWay[Result]] = {}
        self._wanted: set[int] = set()
        self._next_number = 0

    @property
    def is_idle(self) -> bool:
        """Whether no probing is in progress."""
        return not self._under_way

    @property
    def next_deadline_us(self) -> int | None:
        """The time at which `on_time` must be called if no answer arrives before; it may have
        passed.
        """
        deadlines = (one.deadline_us for one in self._under_way.values())
        return min((at_us for at_us in deadlines if at_us is not None), default=None)

    def probe(self, now_us: int, target: int) -> None:
        """Start probing a target soon, or join the probing of it that is in progress."""
        if target not in self._wanted:
            self._wanted.add(target)
            self._queued.append(target)
            self.use_room(now_us)

    def forget(self) -> None:
        """Cancel everything in progress; later answers are ignored."""
        self._queued.clear()
        self._under_way.clear()
        self._wanted.clear()
        self._allowance = Allowance(self._settings)

    def on_reply(
        self,
        now_us: int,
        mark: Mark,
        address: int,
        answer: Answer,
        received_us: int,
        ttl_left: int | None = None,
    ) -> list[Result]:
        """Handle an answer with its receive time on the clock of `Send`; returns completed
        probings.

        Call `use_room` after all available answers have been handled.
        """
        one = self._under_way.get(mark.target_number)
        if one is None or mark.probe_number not in one.sent_us:
            return []  # of a probe whose answer is no longer needed
        round_trip_us = max(0, received_us - one.sent_us.pop(mark.probe_number))
        probes = one.probing.on_reply(
            now_us, mark.probe_number, address, answer, round_trip_us, ttl_left
        )
        return self._advance(one, probes)

    def on_time(self, now_us: int) -> list[Result]:
        """Stop waiting for overdue probes; returns completed probings."""
        finished: list[Result] = []
        for one in list(self._under_way.values()):
            if one.deadline_us is not None and one.deadline_us <= now_us:
                finished += self._advance(one, one.probing.on_time(now_us))
        return finished + self.use_room(now_us)

    def use_room(self, now_us: int) -> list[Result]:
        """Continue probings that wait for the allowance, started ones first; returns completed
        ones.
        """
        finished: list[Result] = []
        for one in list(self._under_way.values()):
            if not self._allowance.has_room:
                return finished
            if one.probing.wants_room:
                finished += self._advance(one, one.probing.go_on(now_us))
        while self._queued and self._allowance.has_room:
            self._start(now_us, self._queued.popleft())
        return finished

    def _start(self, now_us: int, target: int) -> None:
        if not self._under_way:
            self._allowance = Allowance(self._settings)  # begins with few probes again
        probing = self._begin(target, self._settings, self._allowance)
        one = _UnderWay(self._next_number, target, probing)
        self._next_number = self._next_number + 1 & 0xFFFFFFFF
        self._under_way[one.number] = one
        self._advance(one, probing.start(now_us))

    def _advance(self, one: _UnderWay[Result], probes: Iterable[Probe]) -> list[Result]:
        """Send probes of a target; returns its result if it is complete."""
        for probe in probes:
            mark = Mark(one.number, probe.number)
            one.sent_us[probe.number] = self._send(one.target, mark, probe)
        result = one.probing.result
        if result is None:
            one.deadline_us = one.probing.next_deadline_us
            return []
        del self._under_way[one.number]
        self._wanted.discard(one.target)
        return [result]
