"""Addresses and routes in the namespaces of a network, updated with its links."""

import socket
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network

import numpy as np
from numpy.typing import NDArray

from testbed.emulation.namespaces import Namespace, entered
from testbed.emulation.netlink import Netlink
from topologies.addresses import interface_name
from topologies.routes import NO_ROUTE, Routes
from topologies.underlay import Link, Underlay

_LOOPBACK = 1
_ANYWHERE, _HOST_PREFIX, _ANYWHERE_PREFIX = 0, 32, 0


class RouteTables:
    """The routes of every node of a network to the others.

    A router has one route for the network of each other router, and one for each of its own
    hosts; a host has a default route.
    """

    def __init__(
        self, underlay: Underlay, namespaces: Mapping[str, Namespace], routes: Routes
    ) -> None:
        self._underlay = underlay
        self._namespaces = namespaces
        self._routes = routes
        networks = (IPv4Network(underlay.network(router.name)) for router in underlay.routers)
        self._networks = np.array([int(n.network_address) for n in networks], dtype=np.uint32)
        self._neighbours = _neighbours(underlay)

    def install(self) -> None:
        """Give every node its address and routes; the devices must be there."""
        for node in self._underlay.node_names:
            with entered(self._namespaces[node].descriptor), Netlink() as netlink:
                netlink.set_up(_LOOPBACK, True)
                netlink.add_address(_LOOPBACK, self._underlay.address[node])
                if node in self._underlay.router_index:
                    everywhere = np.arange(len(self._networks))
                    self._set_routes(netlink, node, everywhere)
        for link in self._underlay.last_mile.values():
            self.attach(link)

    def attach(self, last_mile: Link) -> None:
        """Install the routes between a host and its router."""
        host, router = last_mile.a, last_mile.b
        address = int(IPv4Address(self._underlay.address[host]))
        for node, neighbour, network, prefix in (
            (host, router, _ANYWHERE, _ANYWHERE_PREFIX),
            (router, host, address, _HOST_PREFIX),
        ):
            with entered(self._namespaces[node].descriptor), Netlink() as netlink:
                interface = socket.if_nametoindex(interface_name(node, neighbour))
                netlink.set_routes(_numbers(network), prefix, _numbers(interface))

    def update(self, routes: Routes) -> None:
        """Change the routes that differ from the previous ones."""
        before, self._routes = self._routes, routes
        changed = routes.next_hop != before.next_hop
        for index in np.flatnonzero(changed.any(axis=0)):
            node = self._underlay.routers[index].name
            destinations = np.flatnonzero(changed[:, index])
            is_gone = routes.next_hop[destinations, index] == NO_ROUTE
            with entered(self._namespaces[node].descriptor), Netlink() as netlink:
                netlink.remove_routes(self._networks[destinations[is_gone]], self._underlay.prefix)
                self._set_routes(netlink, node, destinations[~is_gone])

    def _set_routes(self, netlink: Netlink, node: str, destinations: NDArray[np.intp]) -> None:
        index = self._underlay.router_index[node]
        destinations = destinations[destinations != index]
        next_hops = self._routes.next_hop[destinations, index]
        interfaces = np.zeros(len(self._networks), dtype=np.uint32)
        for neighbour in self._neighbours[node]:
            name = interface_name(node, neighbour)
            interfaces[self._underlay.router_index[neighbour]] = socket.if_nametoindex(name)
        netlink.set_routes(
            self._networks[destinations], self._underlay.prefix, interfaces[next_hops]
        )


def _neighbours(underlay: Underlay) -> dict[str, list[str]]:
    """The neighbouring routers of each router."""
    neighbours: dict[str, list[str]] = {router.name: [] for router in underlay.routers}
    for link in underlay.router_links:
        neighbours[link.a].append(link.b)
        neighbours[link.b].append(link.a)
    return neighbours


def _numbers(value: int) -> NDArray[np.uint32]:
    return np.array([value], dtype=np.uint32)
