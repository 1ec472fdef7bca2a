"""All the probing from one host, without I/O: many targets, one bound on outstanding probes.

Both runtimes use this: on sockets and in the simulator a host probes in the same order.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Protocol, TypeVar

from agents.probing.probe import Allowance, Answer, Probe, ProbeSettings

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Mark(NamedTuple):
    """What a probe carries so that its answer is known: two numbers of 32 bits."""

    target_number: int
    probe_number: int


class Probing(Protocol[Result_co]):
    """What probes one target: `RouteProbe` or `MultipathProbe`."""

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
# Sends a probe to a target, and returns when it left, in microseconds of any clock.
Send = Callable[[int, Mark, Probe], int]


@dataclass(slots=True)
class _UnderWay(Generic[Result]):
    """One target: its probing, and when each of its probes left."""

    number: int
    target: int
    probing: Probing[Result]
    deadline_us: int | None = None  # none while it only waits for room
    sent_us: dict[int, int] = field(default_factory=dict)


class HostProbing(Generic[Result]):
    """Probes targets; what starts, goes on or ends is told by the runtime."""

    def __init__(
        self, begin: Begin[Result], send: Send, settings: ProbeSettings | None = None
    ) -> None:
        """Prepare; `begin` makes what probes one target, for example `RouteProbe`."""
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
        """Whether nothing is under way."""
        return not self._under_way

    @property
    def next_deadline_us(self) -> int | None:
        """When `on_time` wants to be called, if no answer comes before; it may have passed."""
        deadlines = (one.deadline_us for one in self._under_way.values())
        return min((at_us for at_us in deadlines if at_us is not None), default=None)

    def probe(self, now_us: int, target: int) -> None:
        """Probe a target soon; a probing of it that is under way answers for both."""
        if target not in self._wanted:
            self._wanted.add(target)
            self._queued.append(target)
            self.use_room(now_us)

    def forget(self) -> None:
        """Give up all that is under way; answers that still come in mean nothing any more."""
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
        """Take in an answer, received then by the clock of `Send`; returns what is complete.

        Call `use_room` when all answers at hand are taken in.
        """
        one = self._under_way.get(mark.target_number)
        if one is None or mark.probe_number not in one.sent_us:
            return []  # of a probe whose answer no longer matters
        round_trip_us = max(0, received_us - one.sent_us.pop(mark.probe_number))
        probes = one.probing.on_reply(
            now_us, mark.probe_number, address, answer, round_trip_us, ttl_left
        )
        return self._advance(one, probes)

    def on_time(self, now_us: int) -> list[Result]:
        """Give up waiting for what is overdue; returns what is now complete."""
        finished: list[Result] = []
        for one in list(self._under_way.values()):
            if one.deadline_us is not None and one.deadline_us <= now_us:
                finished += self._advance(one, one.probing.on_time(now_us))
        return finished + self.use_room(now_us)

    def use_room(self, now_us: int) -> list[Result]:
        """Go on with what waits for room, started targets first; returns what is complete."""
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
            self._allowance = Allowance(self._settings)  # few at first, again
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
