"""Forwarding of packets: the routes of an underlay, as channels that packets cross."""

from array import array
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.runtime.numbering import NO_CHANNEL, Numbering, Numbers
from agents.runtime.packet import FIRST_TTL
from topologies.routes import NO_ROUTE, Routes
from topologies.underlay import Underlay

# A channel is plain if packets do not wait for each other on it: they are delayed or lost.
# A sum with this value is negative: one comparison tells whether all parts of a path are plain.
NOT_PLAIN = -(1 << 60)
# Paths over more than 2**5 links between routers take the slow path, which checks the TTL.
_DOUBLINGS = 5
_WAYS_KEPT = 1 << 15  # the last paths; all probes of a route take the same path

# Delays in microseconds, by router. They are looked up for every message. An array of numbers
# stays in the processor's caches; a list of objects would not.
Delays = Sequence[int]
Shares = Sequence[float]


class Crossings(NamedTuple):
    """The channels that packets cross, grouped by packet, in order."""

    packet: Numbers
    step: Numbers
    channel: Numbers
    entered_us: Numbers


class LinkPath(NamedTuple):
    """Consecutive plain channels, the delay before each is entered, the delay of the whole path,
    and the share of packets that leave each channel.
    """

    channels: list[int]
    after_us: list[int]
    shares: list[float]


class Forwarding:
    """The paths of packets while no link, router or delay changes."""

    def __init__(
        self,
        underlay: Underlay,
        numbering: Numbering,
        down: Set[str] = frozenset(),
        routes: Routes | None = None,
    ) -> None:
        self.numbering = numbering
        self.routes = routes or Routes(underlay, down)
        channels = [channel for link in underlay.links for channel in (link.ab, link.ba)]
        dead = [not down.isdisjoint((link.name, link.a, link.b)) for link in underlay.links]
        self.delay_us = np.array([channel.delay_us for channel in channels], dtype=np.int64)
        self.is_dead = [is_dead for is_dead in dead for _ in range(2)]
        losses = np.array([channel.loss_percent for channel in channels]) / 100
        self.is_lossy = bool(losses.any())
        self._kept_share = 1.0 - losses
        self.is_plain = np.array([channel.rate_mbit is None for channel in channels], dtype=bool)
        self.is_plain &= ~np.array(self.is_dead, dtype=bool)
        self._is_backbone_plain = bool(self.is_plain[numbering.backbone].all())
        # results of `plain_delays_us` by router
        self.found_delays_us: list[Delays | None] = [None] * len(underlay.routers)
        self._found_shares: dict[int, Shares] = {}
        self.plain_way = lru_cache(_WAYS_KEPT)(self._walk)

    def next_channel(self, node: int, target: int) -> int:
        """The channel on which a node sends packets for an address, if it has a route."""
        if node >= self.numbering.router_count:
            return int(self.numbering.up_channel[node])
        router = self.numbering.router_for(target)
        if router is None:
            return NO_CHANNEL
        if router == node:
            return self._last_mile_down(node, target)
        neighbour = int(self.routes.next_hop[router, node])
        return NO_CHANNEL if neighbour == NO_ROUTE else self._between(node, neighbour)

    def _walk(self, node: int, target: int) -> LinkPath:
        """The plain channels from a node towards an address, as far as a packet gets."""
        way, share = LinkPath([], [0], []), 1.0
        for _ in range(FIRST_TTL):
            channel = self.next_channel(node, target)
            if channel == NO_CHANNEL or not self.is_plain[channel]:
                break
            way.channels.append(channel)
            way.after_us.append(way.after_us[-1] + int(self.delay_us[channel]))
            share *= float(self._kept_share[channel])
            way.shares.append(share)
            node = self.numbering.end_of[channel]
            if self.numbering.address_of[node] == target:
                break
        return way

    def _between(self, router: int, neighbour: int) -> int:
        return self.numbering.channel_between(router, neighbour)

    def _last_mile_down(self, router: int, target: int) -> int:
        host = self.numbering.node_at.get(target)
        if host is None or host == router:
            return NO_CHANNEL
        channel = int(self.numbering.up_channel[host]) ^ 1
        # A router loses the route to a host when the link to it fails.
        return NO_CHANNEL if self.is_dead[channel] else channel

    def plain_delays_us(self, router: int) -> Delays:
        """Delays of the paths from all routers to this one; NOT_PLAIN if a channel is not plain."""
        delays_us = self.found_delays_us[router]
        if delays_us is None:
            delays_us = self.found_delays_us[router] = self._find_plain_delays(router)
        return delays_us

    def _find_plain_delays(self, router: int) -> Delays:
        everyone = np.arange(len(self.routes.next_hop))
        next_hop = self.routes.next_hop[router].astype(np.int64)
        here = np.where(next_hop == NO_ROUTE, everyone, next_hop)
        needs_care = self._find_care(everyone, next_hop)
        # Each pass doubles the length of the paths that are known.
        for _ in range(_DOUBLINGS):
            if needs_care is not None:
                needs_care |= needs_care[here]
            here = here[here]
        is_plain_way = here == router if needs_care is None else (here == router) & ~needs_care
        delays_us = np.where(is_plain_way, self.routes.delay_us[router], NOT_PLAIN)
        return array("q", delays_us.astype(np.int64).tobytes())

    def arrived_shares(self, router: int) -> Shares:
        """The shares of packets from all routers that are not lost on plain paths to this one."""
        shares = self._found_shares.get(router)
        if shares is None:
            shares = self._found_shares[router] = self._find_shares(router)
        return shares

    def _find_shares(self, router: int) -> Shares:
        everyone = np.arange(len(self.routes.next_hop))
        next_hop = self.routes.next_hop[router].astype(np.int64)
        moves = next_hop != NO_ROUTE
        here = np.where(moves, next_hop, everyone)
        shares = np.ones(len(everyone))
        channel = self.numbering.channels_between(everyone[moves], next_hop[moves])
        shares[moves] = self._kept_share[channel]
        for _ in range(_DOUBLINGS):
            shares *= shares[here]
            here = here[here]
        return array("d", shares.tobytes())

    def last_mile_shares(self, hosts: Numbers) -> tuple[list[float], list[float]]:
        """The shares of packets that are not lost on the last miles of hosts, up and down."""
        up = self.numbering.up_channel[hosts]
        return self._kept_share[up].tolist(), self._kept_share[up ^ 1].tolist()

    def _find_care(self, everyone: Numbers, next_hop: Numbers) -> NDArray[np.bool_] | None:
        """The routers whose next channel is not plain; None if all are plain."""
        if self._is_backbone_plain:
            return None
        needs_care = np.zeros(len(everyone), dtype=bool)
        moves = next_hop != NO_ROUTE
        channel = self.numbering.channels_between(everyone[moves], next_hop[moves])
        needs_care[moves] = ~self.is_plain[channel]
        return needs_care

    def last_miles_us(self, hosts: Numbers) -> tuple[list[int], list[int]]:
        """The delays of the last miles of hosts, up and down; NOT_PLAIN if they are not plain."""
        up = self.numbering.up_channel[hosts]
        delays_us = np.where(self.is_plain, self.delay_us, NOT_PLAIN)
        return delays_us[up].tolist(), delays_us[up ^ 1].tolist()

    def cross(self, sources: Numbers, targets: Numbers, arrived_us: Numbers) -> Crossings:
        """The channels that packets on plain paths crossed from host to host, and the times."""
        numbering = self.numbering
        here, there = numbering.access_router[sources], numbering.access_router[targets]
        up, down = numbering.up_channel[sources], numbering.up_channel[targets] ^ 1
        between_us = self.routes.delay_us[there, here]
        time_us = arrived_us - self.delay_us[up] - between_us - self.delay_us[down]
        steps = [(np.arange(len(here)), up, time_us.copy())]
        time_us += self.delay_us[up]
        moving = np.flatnonzero(here != there)
        while len(moving):
            neighbour = self.routes.next_hop[there[moving], here[moving]].astype(np.int64)
            channel = numbering.channels_between(here[moving], neighbour)
            steps.append((moving, channel, time_us[moving]))
            time_us[moving] += self.delay_us[channel]
            here[moving] = neighbour
            moving = moving[neighbour != there[moving]]
        return _in_packet_order(steps, down, time_us)


def _in_packet_order(
    steps: list[tuple[Numbers, Numbers, Numbers]], last_channel: Numbers, last_us: Numbers
) -> Crossings:
    """Steps that were computed for all packets at once, sorted by packet."""
    lengths = np.ones(len(last_channel), dtype=np.int64)
    for moving, _, _ in steps:
        lengths[moving] += 1
    ends = np.cumsum(lengths)
    starts = ends - lengths
    channel, entered_us = np.empty((2, int(lengths.sum())), dtype=np.int64)
    for step, (moving, channels, times_us) in enumerate(steps):
        at = starts[moving] + step
        channel[at], entered_us[at] = channels, times_us
    channel[ends - 1], entered_us[ends - 1] = last_channel, last_us
    packet = np.repeat(np.arange(len(lengths)), lengths)
    return Crossings(packet, np.arange(len(packet)) - starts[packet], channel, entered_us)
