"""A router network built by stock Mininet as in Mininet's router example.

`python -m benchmarks.stock_mininet TOPOLOGY.json HOST-HOST...` prints one JSON object with the time
of each phase and the number of successful pings.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

from mininet.link import Link
from mininet.net import Mininet
from mininet.node import Node

from topologies.routes import Routes
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay


class ForwardingNode(Node):  # type: ignore[misc]  # Mininet has no types
    """A node that forwards packets."""

    def config(self, **params: Any) -> None:
        """Configure the node as Mininet does, then enable forwarding."""
        super().config(**params)
        self.cmd("sysctl -w net.ipv4.ip_forward=1")


class StockNetwork:
    """An underlay in Mininet's own nodes and links, with an address for each link end."""

    def __init__(self, underlay: Underlay) -> None:
        Mininet.inited = True  # otherwise Mininet would change limits of the whole machine
        self.net = Mininet(build=False, link=Link)
        self._underlay = underlay
        self._address: dict[tuple[str, str], str] = {}

    def add_nodes(self) -> None:
        """Add a shell and a namespace for each node."""
        for name in self._underlay.node_names:
            self.net.addHost(name, cls=ForwardingNode, ip=None)

    def add_links(self) -> None:
        """Add a virtual cable for each link, with a network of four addresses."""
        for number, link in enumerate(self._underlay.links):
            network = 4 * number
            ends = ((link.a, link.b, network + 1), (link.b, link.a, network + 2))
            for node, neighbour, host in ends:
                text = f"10.{host >> 16}.{host >> 8 & 255}.{host & 255}"
                self._address[node, neighbour] = text
            self.net.addLink(
                link.a,
                link.b,
                intfName1=link.name,
                intfName2=f"{link.b}-{link.a}",
                params1={"ip": f"{self._address[link.a, link.b]}/30"},
                params2={"ip": f"{self._address[link.b, link.a]}/30"},
            )
        self.net.build()

    def add_routes(self) -> None:
        """Run on each router a command for each network that has hosts."""
        routes = Routes(self._underlay)
        for host, last_mile in self._underlay.last_mile.items():
            gateway = self._address[last_mile.b, host]
            self.net[host].cmd(f"ip route add default via {gateway}")
            for router in self._underlay.routers:
                if router.name == last_mile.b:
                    continue
                next_hop = routes.path(router.name, last_mile.b)[1]
                via = self._address[next_hop, router.name]
                target = self._address[host, last_mile.b]
                self.net[router.name].cmd(f"ip route add {target}/32 via {via}")

    def ping(self, source: str, target: str) -> bool:
        """Whether a host answers another host's ping."""
        address = self._address[target, self._underlay.access_router[target]]
        return ", 0% packet loss" in self.net[source].cmd(f"ping -n -c 1 -W 2 {address}")


def main() -> None:
    """Build, ping and remove the network, and print the measurements."""
    underlay = load_underlay(Path(sys.argv[1]))
    pairs = [pair.split("-") for pair in sys.argv[2:]]
    stock = StockNetwork(underlay)
    figures: dict[str, float] = {}
    for name, step in (
        ("nodes", stock.add_nodes),
        ("links", stock.add_links),
        ("routes", stock.add_routes),
    ):
        start = time.perf_counter()
        step()
        figures[f"{name}_s"] = time.perf_counter() - start
    figures["answered"] = sum(stock.ping(*pair) for pair in pairs)
    start = time.perf_counter()
    stock.net.stop()
    figures["teardown_s"] = time.perf_counter() - start
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
