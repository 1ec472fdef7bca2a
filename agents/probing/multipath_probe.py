"""All routes that flows take to a target where routers balance load, without I/O.

The Multipath Detection Algorithm (Augustin, Friedman and Teixeira, "Measuring load-balanced paths
in the Internet", IMC 2007) works hop by hop. It sends each router enough flows that the probability
of missing one of its next hops is small (5 % by default). More next hops require more flows. A flow
passes a router if a probe with a new flow is answered by that router. The interface is that of
`agents.probing.route_probe`.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from math import comb

from agents.probing.probe import Allowance, Answer, Outstanding, Probe, ProbeSettings

_MOST_FLOWS = 256
_HERE = 0
_Key = tuple[int, int]  # TTL and flow


@dataclass(frozen=True, slots=True)
class Branching:
    """A router at a distance, and the next hops of flows from there; None is a silent router.

    Distance 0 is the probing host, which has no address here.
    """

    ttl: int
    router: int | None
    next_hops: frozenset[int | None]


@dataclass(frozen=True, slots=True)
class MultipathRoute:
    """The routes to a target, as the next hops of each router."""

    target: int
    branchings: tuple[Branching, ...]
    is_reached: bool

    @property
    def is_balanced(self) -> bool:
        """Whether flows to the target take more than one route."""
        return any(len(branching.next_hops) > 1 for branching in self.branchings)

    def next_hops(self, ttl: int, router: int | None) -> frozenset[int | None]:
        """The next hops of a router at a distance."""
        for branching in self.branchings:
            if (branching.ttl, branching.router) == (ttl, router):
                return branching.next_hops
        return frozenset()


@cache
def stopping_point(next_hops: int, confidence: float = 0.95) -> int:
    """The number of flows that show all of `next_hops` next hops with this confidence.

    Flows are assumed to spread evenly. The probability that n flows miss at least one of k next
    hops is, by inclusion and exclusion, the sum over i from 1 to k-1 of (-1)^(i+1) C(k, i) (1 -
    i/k)^n.
    """
    flows = next_hops
    while _chance_to_miss(next_hops, flows) > 1 - confidence:
        flows += 1
    return flows


def _chance_to_miss(next_hops: int, flows: int) -> float:
    chance = 0.0
    for missed in range(1, next_hops):
        sign = 1 if missed % 2 else -1
        chance += sign * comb(next_hops, missed) * (1 - missed / next_hops) ** flows
    return chance


class MultipathProbe:
    """The probing of all routes to one target."""

    def __init__(
        self,
        target: int,
        settings: ProbeSettings | None = None,
        allowance: Allowance | None = None,
    ) -> None:
        self.target = target
        self.result: MultipathRoute | None = None
        self.wants_room = False
        self._settings = settings or ProbeSettings()
        self._outstanding = Outstanding(self._settings, allowance)
        self._ttl = 1
        self._flow_count = 0
        self._seen: defaultdict[int, dict[int, int | None]] = defaultdict(dict)
        self._ends: set[int] = set()
        self._is_reached = False
        self._open: dict[_Key, None] = {}  # sent in this round and not answered yet, in order
        self._in_flight: set[_Key] = set()
        self._misses: Counter[_Key] = Counter()

    @property
    def next_deadline_us(self) -> int | None:
        """The time at which `on_time` must be called if no answer arrives before; it may have
        passed.
        """
        return self._outstanding.next_deadline_us

    def start(self, now_us: int) -> list[Probe]:
        """The first probes."""
        return self.go_on(now_us)

    def on_reply(
        self,
        now_us: int,
        number: int,
        address: int,
        answer: Answer,
        round_trip_us: int,
        ttl_left: int | None = None,
    ) -> list[Probe]:
        """Handle an answer, in time or late; repeated and unknown answers are ignored."""
        del ttl_left
        probe = self._outstanding.take_answer(number, round_trip_us)
        if probe is None or self.result is not None:
            return []
        key = (probe.ttl, probe.flow)
        if answer is not Answer.PASSING:
            self._ends.add(address)
            self._is_reached |= answer is Answer.TARGET
        if key in self._open:
            self._settle(key, address)
        return self.go_on(now_us)

    def on_time(self, now_us: int) -> list[Probe]:
        """Stop waiting for overdue probes, and retry or continue."""
        overdue = self._outstanding.take_overdue(now_us)
        for probe in overdue:
            key = (probe.ttl, probe.flow)
            self._in_flight.discard(key)
            self._misses[key] += 1
            if key in self._open and self._misses[key] >= self._settings.attempts:
                self._settle(key, None)
        return self.go_on(now_us) if overdue else []

    def go_on(self, now_us: int) -> list[Probe]:
        """The probes to send next; the result is ready when there are none."""
        while not self._open:
            self._open_round()
            if not self._open and not self._move_on():
                self._finish()
                return []
        unsent = [key for key in self._open if key not in self._in_flight]
        probes = [self._send(now_us, *key) for key in unsent if self._outstanding.has_room]
        self.wants_room = len(probes) < len(unsent)
        return probes

    def _settle(self, key: _Key, address: int | None) -> None:
        ttl, flow = key
        self._seen[ttl][flow] = address
        del self._open[key]

    def _send(self, now_us: int, ttl: int, flow: int) -> Probe:
        self._in_flight.add((ttl, flow))
        return self._outstanding.send(now_us, ttl, flow, self._misses[ttl, flow])

    def _open_round(self) -> None:
        """Request more flows behind every router whose next hops may not all be known."""
        for router in self._routers_before():
            flows = self._flows_through(router)
            asked = [flow for flow in flows if flow in self._seen[self._ttl]]
            next_hops = {self._seen[self._ttl][flow] for flow in asked}
            needed = self._flows_needed(len(next_hops)) - len(asked)
            unasked = [flow for flow in flows if flow not in self._seen[self._ttl]][:needed]
            self._open.update(((self._ttl, flow), None) for flow in unasked)
            if not unasked:
                self._open_new_flows(needed)

    def _flows_needed(self, next_hops: int) -> int:
        """The number of flows that shows that a router with `known` next hops has no other."""
        return stopping_point(max(next_hops, 1) + 1, self._settings.confidence)

    def _open_new_flows(self, count: int) -> None:
        """Probe new flows at the TTL where flows are missing."""
        count = min(max(count, 0), _MOST_FLOWS - self._flow_count)
        new = range(self._flow_count, self._flow_count + count)
        self._flow_count += count
        self._open.update(((max(self._ttl - 1, 1), flow), None) for flow in new)

    def _routers_before(self) -> list[int | None]:
        """The routers, silent ones as None, from which flows come to the current TTL."""
        if self._ttl == 1:
            return [_HERE]
        return [router for router in self._routers_at(self._ttl - 1) if router not in self._ends]

    def _routers_at(self, ttl: int) -> list[int | None]:
        return list(dict.fromkeys(self._seen[ttl].values()))

    def _flows_through(self, router: int | None) -> list[int]:
        if self._ttl == 1:
            return list(range(self._flow_count))
        return [flow for flow, seen in self._seen[self._ttl - 1].items() if seen == router]

    def _move_on(self) -> bool:
        """Continue with the next TTL, unless all routes have ended."""
        if self._ttl >= min(self._settings.max_ttl, self._furthest + self._settings.gap_limit):
            return False
        self._ttl += 1
        return bool(self._routers_before())

    @property
    def _furthest(self) -> int:
        """The largest TTL that any router answered."""
        answered = [ttl for ttl, seen in self._seen.items() if set(seen.values()) - {None}]
        return max(answered, default=0)

    def _finish(self) -> None:
        for probe in self._outstanding.probes:
            self._outstanding.stop_waiting(probe)
        self.wants_room = False
        branchings = [
            branching for ttl in range(self._furthest) for branching in self._branchings(ttl)
        ]
        self.result = MultipathRoute(self.target, tuple(branchings), self._is_reached)

    def _branchings(self, ttl: int) -> list[Branching]:
        """The next hops of each router at a distance."""
        if ttl == 0:
            return [Branching(0, None, frozenset(self._routers_at(1)))]
        next_hops: dict[int | None, set[int | None]] = {
            router: set() for router in self._routers_at(ttl) if router not in self._ends
        }
        for flow, address in self._seen[ttl + 1].items():
            if self._seen[ttl].get(flow) in next_hops and flow in self._seen[ttl]:
                next_hops[self._seen[ttl][flow]].add(address)
        return [Branching(ttl, router, frozenset(after)) for router, after in next_hops.items()]
