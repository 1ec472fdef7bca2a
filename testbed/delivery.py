"""Who should have got which event, and who did: the oracle of content-based runs.

It knows the workload, and what agents recorded: what they subscribed to and when, what was
published, what was delivered. An event is owed to a subscription that was made before the event
was published, and that lasted for a while after: until the peer unsubscribed, ended, or the run
was over. Nothing is owed of an event whose publisher ended within that while: it may have been the
only one to have it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.matching import MatchIndex
from agents.subscription import Point, Subscription
from agents.workload import Workload

Row = tuple[int, str, str, Mapping[str, Any]]  # time, host, what, values
Pair = tuple[str, int]  # a host and an event id


@dataclass(frozen=True, slots=True)
class Account:
    """What some peers were owed and got; events by host."""

    expected: int = 0
    delivered: int = 0
    missing: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    duplicates: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @property
    def is_exact(self) -> bool:
        """Whether everything that was owed came, and nothing twice."""
        return not self.missing and not self.duplicates


@dataclass(frozen=True, slots=True)
class Delivery:
    """The account of the peers that never ended, that of the others, and what nobody asked for."""

    published: int
    steady: Account
    unsteady: Account
    unsteady_hosts: tuple[str, ...] = ()
    orphans: tuple[int, ...] = ()  # events whose publishers ended right after
    unasked: tuple[Pair, ...] = ()
    departures: tuple[str, ...] = ()  # from the workload, in words


@dataclass(slots=True)
class _Interest:
    """A subscription of a host, from when until when."""

    subscription: Subscription
    from_us: int
    until_us: int


def account(
    workload: Workload,
    hosts: Sequence[str],
    rows: Iterable[Row],
    ends: Iterable[tuple[int, str]],
    end_us: int,
    settle_us: int = 0,
) -> Delivery:
    """The deliveries of a run; `hosts` in order of number, `ends` are the ends of agents."""
    kinds = ("subscribed", "unsubscribed", "event_published", "delivered")
    by_kind: dict[str, list[Row]] = {kind: [] for kind in kinds}
    for row in sorted(rows, key=lambda row: row[0]):
        if row[2] in by_kind:
            by_kind[row[2]].append(row)
    gone = sorted(ends)
    changes = sorted(by_kind["subscribed"] + by_kind["unsubscribed"], key=lambda row: row[0])
    interests = _interests(changes, gone, end_us)
    published = {int(row[3]["event_id"]): row for row in reversed(by_kind["event_published"])}
    got = Counter((row[1], int(row[3]["event_id"])) for row in by_kind["delivered"])
    orphans = _orphans(published, gone, settle_us)
    owed, allowed = _expect(interests, published, settle_us)
    owed = {pair for pair in owed if pair[1] not in orphans}
    unsteady = {host for _, host in gone}
    return Delivery(
        len(published),
        _account({pair for pair in owed if pair[0] not in unsteady}, got, unsteady, False),
        _account({pair for pair in owed if pair[0] in unsteady}, got, unsteady, True),
        tuple(sorted(unsteady)),
        tuple(sorted(orphans)),
        tuple(sorted(set(got) - allowed)),
        tuple(_departures(workload, hosts, by_kind["subscribed"], published)),
    )


def _interests(
    changes: list[Row], gone: list[tuple[int, str]], end_us: int
) -> dict[str, list[_Interest]]:
    """What each host was subscribed to, and when."""
    found: defaultdict[str, list[_Interest]] = defaultdict(list)
    for time_us, host, what, values in changes:
        subscription = Subscription(int(values["subscription"]))
        for interest in found[host]:
            if interest.subscription == subscription:
                interest.until_us = min(interest.until_us, time_us)
        if what == "subscribed":
            ends_us = [at_us for at_us, who in gone if who == host and at_us > time_us]
            found[host].append(_Interest(subscription, time_us, min([*ends_us, end_us])))
    return found


def _orphans(published: Mapping[int, Row], gone: list[tuple[int, str]], settle_us: int) -> set[int]:
    return {
        event_id
        for event_id, (time_us, host, _, _) in published.items()
        if any(who == host and time_us <= at_us < time_us + settle_us for at_us, who in gone)
    }


def _expect(
    interests: Mapping[str, list[_Interest]], published: Mapping[int, Row], settle_us: int
) -> tuple[set[Pair], set[Pair]]:
    """The deliveries that were owed, and those that were at least asked for."""
    index: MatchIndex[tuple[str, int]] = MatchIndex()
    for host, some in interests.items():
        for number, interest in enumerate(some):
            index.add((host, number), interest.subscription)
    owed, allowed = set(), set()
    for event_id, (time_us, _, _, values) in published.items():
        for (host, number), _ in index.matching(Point(int(values["point"]))):
            interest = interests[host][number]
            if interest.from_us <= time_us <= interest.until_us:
                allowed.add((host, event_id))
            if interest.from_us <= time_us <= interest.until_us - settle_us:
                owed.add((host, event_id))
    return owed, allowed


def _account(
    owed: set[Pair], got: Mapping[Pair, int], unsteady: set[str], is_unsteady: bool
) -> Account:
    twice = {p for p, n in got.items() if n > 1 and (p[0] in unsteady) == is_unsteady}
    missing = owed - set(got)
    return Account(len(owed), len(owed) - len(missing), _by_host(missing), _by_host(twice))


def _by_host(pairs: set[Pair]) -> dict[str, tuple[int, ...]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for host, event_id in sorted(pairs):
        found[host].append(event_id)
    return {host: tuple(events) for host, events in found.items()}


def _departures(
    workload: Workload,
    hosts: Sequence[str],
    subscribed: list[Row],
    published: Mapping[int, Row],
) -> Iterable[str]:
    """Where what was recorded is not what the workload says."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for _, host, _, values in subscribed:
        numbers[host].add(int(values["subscription"]))
    for host, wanted in zip(hosts, workload.subscriptions, strict=True):
        if host in numbers and not {s.number for s in wanted} <= numbers[host]:
            yield f"{host}: did not subscribe to what the workload says"
    for event_id, (_, host, _, values) in sorted(published.items()):
        event = workload.events[event_id - 1]
        if (hosts[event.publisher], event.point.number) != (host, values["point"]):
            yield f"event {event_id}: not published as the workload says"
