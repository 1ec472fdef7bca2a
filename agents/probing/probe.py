"""Probes: datagrams that ask the routers on a way who they are, and the wait for answers."""

from dataclasses import dataclass
from enum import Enum


class Answer(Enum):
    """What an answer to a probe means."""

    PASSING = "a router on the way saw the TTL run out"
    TARGET = "the target has the probe"
    DEAD_END = "a router knows no way on"


@dataclass(frozen=True, slots=True)
class Probe:
    """A datagram to send: the number that its answer will carry, its TTL, and its flow."""

    number: int
    ttl: int
    flow: int = 0


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """How patient and how thorough probing is."""

    max_ttl: int = 30
    samples: int = 1  # round trips measured at each hop
    attempts: int = 3  # probes without an answer until a hop counts as silent
    ahead: int = 2  # TTLs in flight beyond those tried, until the way to the end is known
    gap_limit: int = 8  # silent hops in a row after which the target counts as unreachable
    first_outstanding: int = 10  # probes in flight when a host begins, and later
    max_outstanding: int = 30
    flow: int = 0
    confidence: float = 0.95  # of having found all next hops where load is balanced
    first_timeout_us: int = 500_000  # until a first round trip is known
    min_timeout_us: int = 100_000
    max_timeout_us: int = 2_000_000
    timeout_round_trips: int = 2


class Allowance:
    """How many probes may be outstanding, for all who share it: few at first, and one more for
    each that is answered or overdue.

    Many at once would queue up behind each other, which round trips would show.
    """

    def __init__(self, settings: ProbeSettings) -> None:
        self._most = settings.max_outstanding
        self._limit = min(settings.first_outstanding, self._most)
        self.used = 0

    @property
    def has_room(self) -> bool:
        """Whether another probe may be sent."""
        return self.used < self._limit

    def take(self) -> None:
        """A probe is sent."""
        self.used += 1

    def give_back(self) -> None:
        """A probe is waited for no longer."""
        self.used -= 1
        self._limit = min(self._limit + 1, self._most)


@dataclass(frozen=True, slots=True)
class _Sent:
    probe: Probe
    sent_us: int
    misses: int


class Outstanding:
    """The probes that were sent and not answered, and how long to wait for them.

    Silent routers are common, so waiting is short: a few times the longest round trip seen.
    It doubles with every try, and a late answer is still an answer.
    """

    def __init__(self, settings: ProbeSettings, allowance: Allowance | None) -> None:
        self._settings = settings
        self._allowance = allowance or Allowance(settings)
        self._longest_us = 0
        self._next_number = 0
        self._unanswered: dict[int, Probe] = {}
        self._waiting: dict[int, _Sent] = {}

    def __len__(self) -> int:
        """How many probes are waited for, the overdue ones not counted."""
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether another probe may be sent."""
        return self._allowance.has_room

    @property
    def probes(self) -> list[Probe]:
        """The probes that are waited for."""
        return [sent.probe for sent in self._waiting.values()]

    @property
    def next_deadline_us(self) -> int | None:
        """When the next probe is overdue."""
        return min((self._deadline_us(sent) for sent in self._waiting.values()), default=None)

    def is_waiting(self, number: int) -> bool:
        """Whether a probe is waited for: not answered, and not overdue."""
        return number in self._waiting

    def send(self, now_us: int, ttl: int, flow: int, misses: int) -> Probe:
        """A new probe, sent now after so many tries without an answer."""
        probe = Probe(self._next_number, ttl, flow)
        self._next_number += 1
        self._unanswered[probe.number] = probe
        self._waiting[probe.number] = _Sent(probe, now_us, misses)
        self._allowance.take()
        return probe

    def take_answer(self, number: int, round_trip_us: int) -> Probe | None:
        """The probe that this answers, in time or late, if it is one not answered before."""
        probe = self._unanswered.pop(number, None)
        if probe is not None:
            self.stop_waiting(probe)
            self._longest_us = max(self._longest_us, round_trip_us)
        return probe

    def take_overdue(self, now_us: int) -> list[Probe]:
        """The probes that are waited for no longer, as their time has run out."""
        late = [sent.probe for sent in self._waiting.values() if self._deadline_us(sent) <= now_us]
        for probe in late:
            self.stop_waiting(probe)
        return late

    def stop_waiting(self, probe: Probe) -> None:
        """Let a probe be answered or not; it takes no room any more."""
        if self._waiting.pop(probe.number, None) is not None:
            self._allowance.give_back()

    def _deadline_us(self, sent: _Sent) -> int:
        given = self._settings
        wanted_us = self._longest_us * given.timeout_round_trips or given.first_timeout_us
        timeout_us = min(max(wanted_us, given.min_timeout_us), given.max_timeout_us)
        return sent.sent_us + (timeout_us << sent.misses)
