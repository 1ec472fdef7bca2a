"""The underlay: routers, hosts and links as plain data (section 2 of the TDO paper).

An underlay does not depend on the backend. Everything else (addresses, routes, namespaces,
the simulator's queues) is derived from it, so one JSON file repeats a network exactly.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

from topologies.addresses import choose_prefix, interface_name, network_address, node_address
from topologies.errors import TopologyError

Role = Literal["router", "transit", "stub"]

# An interface name is two names and a hyphen; the kernel allows 15 characters.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,6}")


@dataclass(frozen=True, slots=True)
class Router:
    """A router; an anonymous one forwards packets but never answers a probe."""

    name: str
    x: float = 0.0
    y: float = 0.0
    role: Role = "router"
    anonymous: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Host:
    """A host; its one link, the last mile, leads to its access router."""

    name: str
    x: float = 0.0
    y: float = 0.0
    label: str = ""


@dataclass(frozen=True, slots=True)
class Channel:
    """One direction of a link; without a rate it has no limit of packets per second.

    The queue holds packets that wait for a channel with a rate; packets under way do not count.
    """

    delay_us: int
    rate_mbit: float | None = None
    loss_percent: float = 0.0
    queue_packets: int = 1000


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two nodes; a last mile has the host as `a`."""

    a: str
    b: str
    ab: Channel
    ba: Channel

    @property
    def name(self) -> str:
        """The name of the link, which is that of the interface at its first end."""
        return interface_name(self.a, self.b)

    @classmethod
    def symmetric(cls, a: str, b: str, delay_us: int) -> "Link":
        """A link with the same delay in both directions, and no rate, loss or queue."""
        channel = Channel(delay_us)
        return cls(a, b, channel, channel)


@dataclass(frozen=True)
class Underlay:
    """A connected network of routers with hosts; `source` records how it was made."""

    routers: tuple[Router, ...]
    links: tuple[Link, ...]
    hosts: tuple[Host, ...] = ()
    source: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_nodes(self)
        _check_links(self)
        _check_connected(self)
        _ = self.prefix  # raises if there are not enough addresses

    @cached_property
    def router_index(self) -> dict[str, int]:
        """The position of each router, by name."""
        return {router.name: index for index, router in enumerate(self.routers)}

    @cached_property
    def last_mile(self) -> dict[str, Link]:
        """The link of each host to its access router."""
        hosts = {host.name for host in self.hosts}
        return {link.a: link for link in self.links if link.a in hosts}

    @cached_property
    def access_router(self) -> dict[str, str]:
        """The router each host is attached to."""
        return {host: link.b for host, link in self.last_mile.items()}

    @cached_property
    def prefix(self) -> int:
        """The length of the prefix that a router shares with its hosts."""
        crowd = max(Counter(self.access_router.values()).values(), default=0)
        return choose_prefix(len(self.routers), crowd)

    @cached_property
    def address(self) -> dict[str, str]:
        """The address of every node, by name."""
        number = {name: index + 1 for name, index in self.router_index.items()}
        addresses = {name: node_address(self.prefix, number[name], 1) for name in number}
        slots = dict.fromkeys(number, 1)
        for host in self.hosts:
            router = self.access_router[host.name]
            slots[router] += 1
            addresses[host.name] = node_address(self.prefix, number[router], slots[router])
        return addresses

    @cached_property
    def name_at(self) -> dict[str, str]:
        """Names of nodes by address."""
        return {address: name for name, address in self.address.items()}

    def network(self, router: str) -> str:
        """The network of a router and its hosts, as address/length."""
        return network_address(self.prefix, self.router_index[router] + 1)

    @property
    def router_links(self) -> tuple[Link, ...]:
        """The links between routers, without the last miles."""
        return tuple(link for link in self.links if link.a not in self.last_mile)

    def stretched(self, time_scale: float) -> "Underlay":
        """The same underlay with all delays longer and all rates lower by a factor."""
        if time_scale == 1:
            return self

        def stretch(channel: Channel) -> Channel:
            rate = None if channel.rate_mbit is None else channel.rate_mbit / time_scale
            return replace(channel, delay_us=round(channel.delay_us * time_scale), rate_mbit=rate)

        links = (Link(link.a, link.b, stretch(link.ab), stretch(link.ba)) for link in self.links)
        return replace(self, links=tuple(links))

    @property
    def node_names(self) -> Iterator[str]:
        """The names of all routers, then of all hosts."""
        yield from (router.name for router in self.routers)
        yield from (host.name for host in self.hosts)


def _check_nodes(underlay: Underlay) -> None:
    if not underlay.routers:
        raise TopologyError("empty topology: expected at least one router, found none")
    counts = Counter(underlay.node_names)
    name, count = counts.most_common(1)[0]
    if count > 1:
        raise TopologyError(f"node {name}: expected every name once, found it {count} times")
    for name in counts:
        if not _NAME.fullmatch(name):
            raise TopologyError(
                f"node {name!r}: expected a letter and up to 6 more letters, digits or _ "
                f"(interface names have 15 characters); keep the long name in `label`"
            )
    for router in underlay.routers:
        if router.role not in get_args(Role):
            raise TopologyError(
                f"router {router.name}: expected a role of {', '.join(get_args(Role))}, "
                f"found {router.role!r}"
            )


def _check_links(underlay: Underlay) -> None:
    hosts = {host.name for host in underlay.hosts}
    last_miles: Counter[str] = Counter()
    seen: set[frozenset[str]] = set()
    for link in underlay.links:
        for end in (link.a, link.b):
            if end not in underlay.router_index and end not in hosts:
                raise TopologyError(f"link {link.name}: expected known nodes, found {end!r}")
        if link.a == link.b:
            raise TopologyError(f"link {link.name}: expected two different ends, found one")
        if link.b in hosts:
            raise TopologyError(f"link {link.name}: expected the host as `a`, a router as `b`")
        if frozenset((link.a, link.b)) in seen:
            raise TopologyError(f"link {link.name}: expected one link between two nodes, found two")
        seen.add(frozenset((link.a, link.b)))
        last_miles[link.a] += link.a in hosts
        _check_channel(f"link {link.name}, ab", link.ab)
        _check_channel(f"link {link.name}, ba", link.ba)
    for host in underlay.hosts:
        if last_miles[host.name] != 1:
            raise TopologyError(
                f"host {host.name}: expected one last-mile link, found {last_miles[host.name]}"
            )


def _check_channel(where: str, channel: Channel) -> None:
    checks = (
        ("delay_us", channel.delay_us, "a whole number of microseconds, 0 or more",
         isinstance(channel.delay_us, int) and channel.delay_us >= 0),
        ("rate_mbit", channel.rate_mbit, "megabits per second above 0, or null",
         channel.rate_mbit is None or channel.rate_mbit > 0),
        ("loss_percent", channel.loss_percent, "a percentage from 0 to 100",
         0 <= channel.loss_percent <= 100),
        ("queue_packets", channel.queue_packets, "a whole number of packets, 1 or more",
         isinstance(channel.queue_packets, int) and channel.queue_packets >= 1),
    )  # fmt: skip
    for name, value, expected, good in checks:
        if not good:
            raise TopologyError(f"{where}, {name}: expected {expected}, found {value!r}")


def _check_connected(underlay: Underlay) -> None:
    neighbours: dict[str, list[str]] = {router.name: [] for router in underlay.routers}
    for link in underlay.router_links:
        neighbours[link.a].append(link.b)
        neighbours[link.b].append(link.a)
    reached = {underlay.routers[0].name}
    frontier = list(reached)
    while frontier:
        new = {n for name in frontier for n in neighbours[name]} - reached
        reached |= new
        frontier = list(new)
    if len(reached) < len(neighbours):
        stray = next(name for name in neighbours if name not in reached)
        raise TopologyError(
            f"disconnected topology: expected all {len(neighbours)} routers connected, found "
            f"{len(reached)} reachable from {underlay.routers[0].name} and not {stray}; add links, "
            f"or keep one piece"
        )
