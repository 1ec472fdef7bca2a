"""Route probing in the simulation: what `probe_sockets` does for a host, without sockets."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from agents.probe import Probe, ProbeSettings
from agents.route import Route
from agents.route_probe import RouteProbe
from agents.runtime.packet import HEADERS_BYTES, Complaint, Packet, ProbeMark

_PAYLOAD_BYTES = 8
NEVER_US = 1 << 62
_MAX_OUTSTANDING = 256  # of one host, as on sockets


@dataclass(slots=True)
class _UnderWay:
    """The probing of one target, and when each of its probes left."""

    number: int
    probing: RouteProbe
    sent_us: dict[int, int] = field(default_factory=dict)


class SimulatedProber:
    """Probes routes from one host."""

    def __init__(
        self, address: int, send: Callable[[int, Packet], None], settings: ProbeSettings
    ) -> None:
        self.wakes_at_us = NEVER_US  # when its user has planned to call `on_time`
        self._address = address
        self._send = send
        self._settings = settings
        self._most_at_once = max(1, _MAX_OUTSTANDING // settings.max_outstanding)
        self._queued: deque[int] = deque()
        self._wanted: set[int] = set()
        self._under_way: dict[int, _UnderWay] = {}
        self._next_number = 0

    @property
    def next_deadline_us(self) -> int | None:
        """When `on_time` wants to be called, if no answer comes before."""
        deadlines = [one.probing.next_deadline_us for one in self._under_way.values()]
        return min((at_us for at_us in deadlines if at_us is not None), default=None)

    def probe(self, now_us: int, target: int) -> None:
        """Probe a target soon; a probing of it that is under way answers for both."""
        if target not in self._wanted:
            self._wanted.add(target)
            self._queued.append(target)
            self._start_queued(now_us)

    def on_complaint(self, now_us: int, source: int, complaint: Complaint) -> list[Route]:
        """Take in an ICMP error; returns the routes that are complete now."""
        mark = complaint.about
        one = self._under_way.get(mark.probing) if isinstance(mark, ProbeMark) else None
        if one is None or not isinstance(mark, ProbeMark):
            return []
        sent_us = one.sent_us.pop(mark.number, None)
        if sent_us is None:
            return []
        probes = one.probing.on_reply(
            now_us, mark.number, source, complaint.answer, now_us - sent_us
        )
        return self._advance(now_us, one, probes)

    def on_time(self, now_us: int) -> list[Route]:
        """Give up waiting for what is overdue; returns the routes that are complete now."""
        routes: list[Route] = []
        for one in list(self._under_way.values()):
            deadline_us = one.probing.next_deadline_us
            if deadline_us is not None and deadline_us <= now_us:
                routes += self._advance(now_us, one, one.probing.on_time(now_us))
        return routes

    def _start_queued(self, now_us: int) -> None:
        while self._queued and len(self._under_way) < self._most_at_once:
            probing = RouteProbe(self._queued.popleft(), self._settings)
            one = _UnderWay(self._next_number, probing)
            self._next_number += 1
            self._under_way[one.number] = one
            self._advance(now_us, one, probing.start(now_us))

    def _advance(self, now_us: int, one: _UnderWay, probes: Iterable[Probe]) -> list[Route]:
        """Send probes of a target; returns its route if it is complete."""
        for probe in probes:
            one.sent_us[probe.number] = now_us
            mark = ProbeMark(one.number, probe.number)
            size_bytes = HEADERS_BYTES + _PAYLOAD_BYTES
            target = one.probing.target
            self._send(now_us, Packet(self._address, target, size_bytes, mark, probe.ttl))
        route = one.probing.result
        if route is None:
            return []
        del self._under_way[one.number]
        self._wanted.discard(one.probing.target)
        self._start_queued(now_us)
        return [route]
