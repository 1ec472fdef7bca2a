"""Inference of the route to a target, as traceroute does it, without I/O.

A probe is a datagram with a TTL. The router at which the TTL expires sends an ICMP error, which
gives one hop. All probes of a route belong to one flow, so that routers which balance load by flow
send them along the same route (Augustin et al., "Avoiding traceroute anomalies with Paris
traceroute", IMC 2006).

Unlike traceroute, many TTLs are in flight at the same time. The first probe has the largest TTL and
reaches the target. The answer quotes its remaining TTL, which gives the distance of the target.
Then all TTLs up to that distance are probed, as many at once as the allowance permits. Until the
distance is known, a small window of TTLs moves with the furthest hop that answered. A route
therefore takes about two round trips, whatever its length, and one probe for each hop.

A runtime calls `start`, then `on_reply` for each answer and `on_time` at `next_deadline_us`. Each
returns the probes to send now. At the end, `result` is set. If routes share an allowance, the
runtime calls `go_on` of a route that `wants_room`.
"""

from dataclasses import dataclass, field

from agents.probing.probe import Allowance, Answer, Outstanding, Probe, ProbeSettings
from agents.probing.route import Hop, Route

__all__ = ["Answer", "Probe", "ProbeSettings", "RouteProbe"]


@dataclass(slots=True)
class _HopState:
    """The state of one TTL."""

    address: int | None = None
    round_trips_us: list[int] = field(default_factory=list)
    in_flight: int = 0
    misses: int = 0


class RouteProbe:
    """The probing of one route."""

    def __init__(
        self,
        target: int,
        settings: ProbeSettings | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self.target = target
        self.result: Route | None = None
        self.wants_room = False  # waits for the shared allowance
        self._settings = settings or ProbeSettings()
        self._outstanding = Outstanding(self._settings, allowance)
        self._hops = [_HopState() for _ in range(self._settings.max_ttl + 1)]
        self._furthest = 0  # the largest TTL that was answered
        self._tried = 0  # the largest TTL that was answered or overdue
        self._scout: Probe | None = None  # has the largest TTL, to find the distance of the target
        self._target_ttl: int | None = None
        self._dead_end_ttl: int | None = None

    @property
    def next_deadline_us(self) -> int | None:
        """The time at which `on_time` must be called if no answer arrives before; it may have
        passed.
        """
        return self._outstanding.next_deadline_us

    def start(self, now_us: int) -> list[Probe]:
        """The first probes."""
        given = self._settings
        self._scout = self._outstanding.send(now_us, given.max_ttl, given.flow, 0)
        return [self._scout, *self.go_on(now_us)]

    def on_reply(
        self,
        now_us: int,
        number: int,
        address: int,
        answer: Answer,
        round_trip_us: int,
        ttl_left: int | None = None,
    ) -> list[Probe]:
        """Handle an answer, in time or late; repeated and unknown answers are ignored.

        `ttl_left` is the remaining TTL of the probe where it was answered, if known.
        """
        is_awaited = self._outstanding.is_waiting(number)
        probe = self._outstanding.take_answer(number, round_trip_us)
        if probe is None or self.result is not None:
            return []
        is_scout = probe == self._scout
        self._hops[probe.ttl].in_flight -= is_awaited and not is_scout
        is_end = answer is not Answer.PASSING
        if is_end and ttl_left is not None and 1 <= ttl_left <= probe.ttl:
            self._note_hop(probe.ttl - ttl_left + 1, address, answer, round_trip_us)
        elif not is_scout:
            self._note_hop(probe.ttl, address, answer, round_trip_us)
        return self.go_on(now_us)

    def on_time(self, now_us: int) -> list[Probe]:
        """Stop waiting for overdue probes, and retry or continue."""
        overdue = self._outstanding.take_overdue(now_us)
        for probe in overdue:
            if probe != self._scout:
                hop = self._hops[probe.ttl]
                hop.in_flight -= 1
                hop.misses += 1
                self._tried = max(self._tried, probe.ttl)
        return self.go_on(now_us) if overdue else []

    def go_on(self, now_us: int) -> list[Probe]:
        """The probes to send next; the result is ready when none is waited for."""
        self._forget_needless()
        lacking = [t for t in range(1, self._horizon + 1) for _ in range(self._lacking(t))]
        probes = [self._send(now_us, ttl) for ttl in lacking if self._outstanding.has_room]
        self.wants_room = len(probes) < len(lacking)
        if not self._outstanding and not self.wants_room:
            self.result = self._route()
        return probes

    def _note_hop(self, ttl: int, address: int, answer: Answer, round_trip_us: int) -> None:
        self._tried = max(self._tried, ttl)
        self._furthest = max(self._furthest, ttl)
        if answer is Answer.TARGET:
            self._target_ttl = min(self._target_ttl or ttl, ttl)
        elif answer is Answer.DEAD_END:
            self._dead_end_ttl = min(self._dead_end_ttl or ttl, ttl)
        hop = self._hops[ttl]
        if hop.address is not None and hop.address != address:
            # The route changed. The first answer counts, unless this one is from the target.
            hop.misses += 1
            if answer is not Answer.TARGET:
                return
            hop.round_trips_us.clear()
        hop.address = address
        if len(hop.round_trips_us) < self._settings.samples:
            hop.round_trips_us.append(round_trip_us)

    @property
    def _end_ttl(self) -> int | None:
        """The smallest TTL that reached an end, if any."""
        # While routes change, a router may have had no route for a moment.
        return self._target_ttl or self._dead_end_ttl

    @property
    def _horizon(self) -> int:
        """The largest TTL worth probing now."""
        given = self._settings
        if self._end_ttl is not None:
            return self._end_ttl
        return min(self._tried + given.ahead, self._furthest + given.gap_limit, given.max_ttl)

    def _lacking(self, ttl: int) -> int:
        """The number of probes that a hop still needs; negative if some are not needed.

        The first probe finds a hop; the others are sent after it has answered and measure round
        trips. Therefore a silent hop does not need several times as many probes.
        """
        hop = self._hops[ttl]
        wanted = self._settings.samples - len(hop.round_trips_us) if hop.address is not None else 1
        return min(wanted, self._settings.attempts - hop.misses) - hop.in_flight

    def _send(self, now_us: int, ttl: int) -> Probe:
        hop = self._hops[ttl]
        hop.in_flight += 1
        return self._outstanding.send(now_us, ttl, self._settings.flow, hop.misses)

    def _forget_needless(self) -> None:
        """Stop waiting for probes beyond the end, and at hops that a late answer has completed."""
        for probe in self._outstanding.probes:
            is_beyond = self._end_ttl is not None and probe.ttl > self._end_ttl
            if is_beyond or self._lacking(probe.ttl) < 0:
                self._outstanding.stop_waiting(probe)
                self._hops[probe.ttl].in_flight -= probe != self._scout

    def _route(self) -> Route:
        """The hops to the end; silence after the last answer does not imply further routers."""
        last = self._end_ttl or self._furthest
        hops = (Hop(hop.address, tuple(hop.round_trips_us)) for hop in self._hops[1 : last + 1])
        return Route(self.target, tuple(hops), self._target_ttl is not None)
