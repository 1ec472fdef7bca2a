"""Numbers of the nodes and channels of an underlay, fixed during a simulation.

Routers come first, then hosts, in the order of the underlay. Link number i has channel 2i from its
first end to its second, and 2i + 1 back.
"""

from ipaddress import IPv4Address

import numpy as np
from numpy.typing import NDArray

from topologies.underlay import Underlay

Numbers = NDArray[np.int64]
NO_CHANNEL = -1


class Numbering:
    """The addresses of nodes and the ends of channels."""

    def __init__(self, underlay: Underlay) -> None:
        names = list(underlay.node_names)
        self.node_of = {name: node for node, name in enumerate(names)}
        self.router_count = len(underlay.routers)
        self.address_of = [int(IPv4Address(underlay.address[name])) for name in names]
        self.node_at = {address: node for node, address in enumerate(self.address_of)}
        self._host_bits = 32 - underlay.prefix
        self._router_at = {
            address >> self._host_bits: router
            for router, address in enumerate(self.address_of[: self.router_count])
        }
        self._number_channels(underlay)

    def _number_channels(self, underlay: Underlay) -> None:
        pairs = [(self.node_of[link.a], self.node_of[link.b]) for link in underlay.links]
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.starts, self.ends = ends.ravel(), ends[:, ::-1].ravel()
        self.end_of: list[int] = self.ends.tolist()  # faster for single look-ups
        self.backbone = np.flatnonzero(np.maximum(self.starts, self.ends) < self.router_count)
        keys = self.starts[self.backbone] * self.router_count + self.ends[self.backbone]
        order = np.argsort(keys)
        self._keys, self._channels = keys[order], self.backbone[order]
        self._channel_of: dict[int, int] = dict(
            zip(self._keys.tolist(), self._channels.tolist(), strict=True)
        )
        self._number_last_miles()

    def _number_last_miles(self) -> None:
        """Set the channel up and the access router of each host; that of a router is the router
        itself.
        """
        nodes = len(self.address_of)
        up = np.flatnonzero(self.starts >= self.router_count)
        self.up_channel = np.full(nodes, NO_CHANNEL, dtype=np.int64)
        self.up_channel[self.starts[up]] = up
        self.access_router = np.arange(nodes, dtype=np.int64)
        self.access_router[self.starts[up]] = self.ends[up]

    def router_for(self, address: int) -> int | None:
        """The router whose network an address belongs to."""
        return self._router_at.get(address >> self._host_bits)

    def channel_between(self, router: int, neighbour: int) -> int:
        """The channel from a router to a neighbouring router."""
        return self._channel_of[router * self.router_count + neighbour]

    def channels_between(self, routers: Numbers, neighbours: Numbers) -> Numbers:
        """The channels from some routers to neighbouring routers."""
        return self._channels[np.searchsorted(self._keys, routers * self.router_count + neighbours)]
