"""Unicast between the peers of an overlay: routes, delays and the links that they cross.

The findings of agents about the underlay are compared with this. Links are numbered as in
`Underlay.links`, last miles included, and sets of links are Boolean arrays.
"""

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address

import numpy as np
from numpy.typing import NDArray

from topologies.routes import Routes
from topologies.underlay import Underlay

Numbers = NDArray[np.int64]
LinkSet = NDArray[np.bool_]


class Unicast:
    """Delays and hops between some hosts, the peers; matrices are `[from, to]`.

    `delay_us` is with both last miles, `between_routers_us` without; `crossings` is the
    number of links on a route with both last miles, and `used` are the links on any route.
    `router_links` are all links but last miles, used or not.
    """

    def __init__(self, underlay: Underlay, peers: Sequence[str]) -> None:
        self.underlay = underlay
        self.number = {name: index for index, name in enumerate(peers)}
        self.routes = Routes(underlay)
        self._link_between = _link_numbers(underlay)
        self._last_mile = {
            link.a: number
            for number, link in enumerate(underlay.links)
            if link.a in underlay.last_mile
        }
        self.router_links = np.ones(len(underlay.links), dtype=np.bool_)
        self.router_links[list(self._last_mile.values())] = False
        last_miles = [underlay.last_mile[peer] for peer in peers]
        at = self._access_routers(peers)
        self.up_us = np.array([link.ab.delay_us for link in last_miles], dtype=np.int64)
        self.down_us = np.array([link.ba.delay_us for link in last_miles], dtype=np.int64)
        self.between_routers_us = self.routes.delay_us[np.ix_(at, at)].T
        self.delay_us = self.up_us[:, None] + self.between_routers_us + self.down_us
        np.fill_diagonal(self.delay_us, 0)
        self.crossings, self.used = self._cross_all(peers, at)

    def links_on(self, pairs: Iterable[tuple[str, str]]) -> LinkSet:
        """The links on the routes from the first host to the second of each pair."""
        ends = list(pairs)
        marked = np.zeros(len(self.underlay.links), dtype=np.bool_)
        for host in {host for pair in ends for host in pair}:
            marked[self._last_mile[host]] = True
        for _, here, there in self._steps(*self._routers_of(ends)):
            marked[self._link_between[here, there]] = True
        return marked

    def routers_on(self, pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[int, ...]]:
        """For each pair of hosts the addresses of the routers on the route between them."""
        sources, targets = self._routers_of(list(pairs))
        columns = [sources]
        for moving, _, there in self._steps(sources, targets):
            column = np.full(len(sources), -1, dtype=np.int64)
            column[moving] = there
            columns.append(column)
        address = [
            int(IPv4Address(self.underlay.address[router.name])) for router in self.underlay.routers
        ]
        for row in np.stack(columns, axis=1):
            yield tuple(address[router] for router in row[row >= 0].tolist())

    def _access_routers(self, hosts: Iterable[str]) -> Numbers:
        index, router = self.underlay.router_index, self.underlay.access_router
        return np.array([index[router[host]] for host in hosts], dtype=np.int64)

    def _routers_of(self, pairs: Sequence[tuple[str, str]]) -> tuple[Numbers, Numbers]:
        return (
            self._access_routers(source for source, _ in pairs),
            self._access_routers(target for _, target in pairs),
        )

    def _steps(self, sources: Numbers, targets: Numbers) -> Iterator[tuple[Numbers, ...]]:
        """Yield the steps of all routes at once: pairs that move, their old and new routers."""
        pairs = np.flatnonzero(sources != targets)
        here = sources[pairs]
        while pairs.size:
            there = self.routes.next_hop[targets[pairs], here].astype(np.int64)
            yield pairs, here, there
            is_under_way = there != targets[pairs]
            pairs, here = pairs[is_under_way], there[is_under_way]

    def _cross_all(self, peers: Sequence[str], at: Numbers) -> tuple[Numbers, LinkSet]:
        """The number of links on each route between two peers, and the links on any of them."""
        routers, place = np.unique(at, return_inverse=True)
        sources, targets = (side.ravel() for side in np.meshgrid(routers, routers, indexing="ij"))
        hops = np.zeros(len(sources), dtype=np.int64)
        used = np.zeros(len(self.underlay.links), dtype=np.bool_)
        for moving, here, there in self._steps(sources, targets):
            hops[moving] += 1
            used[self._link_between[here, there]] = True
        if len(peers) > 1:
            used[[self._last_mile[peer] for peer in peers]] = True
        crossings = hops.reshape(len(routers), len(routers))[np.ix_(place, place)] + 2
        np.fill_diagonal(crossings, 0)
        return crossings, used


def _link_numbers(underlay: Underlay) -> NDArray[np.int32]:
    """The number of the link between two routers, in either direction."""
    count = len(underlay.routers)
    numbers = np.full((count, count), -1, dtype=np.int32)
    index = underlay.router_index
    for number, link in enumerate(underlay.links):
        if link.a in index:
            a, b = index[link.a], index[link.b]
            numbers[a, b] = numbers[b, a] = number
    return numbers
