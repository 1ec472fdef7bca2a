"""Probes: datagrams that identify the routers on a route, and their timeouts."""

from dataclasses import dataclass
from enum import Enum


class Answer(Enum):
    """The meaning of an answer to a probe."""

    PASSING = "a router on the way saw the TTL run out"
    TARGET = "the target has the probe"
    DEAD_END = "a router knows no way on"


@dataclass(frozen=True, slots=True)
class Probe:
    """A datagram to send: the number that its answer carries, its TTL, and its flow."""

    number: int
    ttl: int
    flow: int = 0


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """The settings of probing."""

    max_ttl: int = 30
    samples: int = 1  # round trips measured at each hop
    attempts: int = 3  # probes without an answer after which a hop counts as silent
    ahead: int = 2  # TTLs in flight beyond the furthest answered one, at first
    gap_limit: int = 8  # consecutive silent hops after which the target counts as unreachable
    first_outstanding: int = 10  # probes in flight at the start of a host, and the maximum later
    max_outstanding: int = 30
    flow: int = 0
    confidence: float = 0.95  # confidence that all next hops were found where load is balanced
    first_timeout_us: int = 500_000  # before the first round trip is known
    min_timeout_us: int = 100_000
    max_timeout_us: int = 2_000_000
    timeout_round_trips: int = 2


class Allowance:
    """The number of probes that may be outstanding, shared by all probings of a host.

    It begins small and grows by one for each probe that is answered or overdue. Many probes at once
    would queue behind each other, and round-trip times would include the queueing.
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
        """Count a probe that is sent."""
        self.used += 1

    def give_back(self) -> None:
        """Count a probe that is no longer waited for."""
        self.used -= 1
        self._limit = min(self._limit + 1, self._most)


@dataclass(frozen=True, slots=True)
class _Sent:
    probe: Probe
    sent_us: int
    misses: int


class Outstanding:
    """The probes that were sent and not answered, and their timeouts.

    Silent routers are common, so the timeout is short: a few times the longest round trip so far.
    It doubles with every retry. A late answer still counts.
    """

    def __init__(self, settings: ProbeSettings, allowance: Allowance | None) -> None:
        self._settings = settings
        self._allowance = allowance or Allowance(settings)
        self._longest_us = 0
        self._next_number = 0
        self._unanswered: dict[int, Probe] = {}
        self._waiting: dict[int, _Sent] = {}

    def __len__(self) -> int:
        """The number of probes that are waited for, without overdue ones."""
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
        """The time when the next probe is overdue."""
        return min((self._deadline_us(sent) for sent in self._waiting.values()), default=None)

    def is_waiting(self, number: int) -> bool:
        """Whether a probe is waited for: neither answered nor overdue."""
        return number in self._waiting

    def send(self, now_us: int, ttl: int, flow: int, misses: int) -> Probe:
        """A new probe, sent now after `tries` attempts without an answer."""
        probe = Probe(self._next_number, ttl, flow)
        self._next_number += 1
        self._unanswered[probe.number] = probe
        self._waiting[probe.number] = _Sent(probe, now_us, misses)
        self._allowance.take()
        return probe

    def take_answer(self, number: int, round_trip_us: int) -> Probe | None:
        """The probe that an answer belongs to, in time or late; None if it was answered before."""
        probe = self._unanswered.pop(number, None)
        if probe is not None:
            self.stop_waiting(probe)
            self._longest_us = max(self._longest_us, round_trip_us)
        return probe

    def take_overdue(self, now_us: int) -> list[Probe]:
        """The probes whose timeout has passed, which are no longer waited for."""
        late = [sent.probe for sent in self._waiting.values() if self._deadline_us(sent) <= now_us]
        for probe in late:
            self.stop_waiting(probe)
        return late

    def stop_waiting(self, probe: Probe) -> None:
        """Stop waiting for a probe; it no longer uses the allowance."""
        if self._waiting.pop(probe.number, None) is not None:
            self._allowance.give_back()

    def _deadline_us(self, sent: _Sent) -> int:
        given = self._settings
        wanted_us = self._longest_us * given.timeout_round_trips or given.first_timeout_us
        timeout_us = min(max(wanted_us, given.min_timeout_us), given.max_timeout_us)
        return sent.sent_us + (timeout_us << sent.misses)
