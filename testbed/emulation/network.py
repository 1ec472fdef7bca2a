"""An underlay as a real network: it is built, changed while it runs, and removed.

Every node is a namespace with one address on its loopback device; links have none, so a
router has the same address in every traceroute. Routers forward along the static
routes that `topologies` computed; there is no switch and no controller.
"""

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from mininet.net import Mininet

from agents.runtime.held_clock import HeldClock
from testbed.emulation.capacity import available_mb, check_capacity
from testbed.emulation.ledger import Ledger
from testbed.emulation.links import Links, choose_links
from testbed.emulation.namespaces import Namespace, create_namespaces, entered, write_sysctl
from testbed.emulation.netlink import Netlink
from testbed.emulation.nodes import UnderlayInterface, UnderlayLink, UnderlayNode
from testbed.emulation.route_tables import RouteTables
from testbed.errors import EmulationError
from topologies.addresses import interface_name
from topologies.routes import Routes
from topologies.underlay import Link, Underlay

_SYSCTLS = {
    "ipv4/ip_forward": "1",
    "ipv4/icmp_ratemask": "0",  # no kind of ICMP message is rate-limited
    "ipv4/conf/all/rp_filter": "0",  # routes may be asymmetric
    "ipv4/conf/default/rp_filter": "0",
    "ipv6/conf/all/disable_ipv6": "1",  # its own traffic would be on the links
    "ipv6/conf/default/disable_ipv6": "1",
}
_ANONYMITY = """
table ip tdo {
  chain output {
    type filter hook output priority 0;
    icmp type { time-exceeded, destination-unreachable, echo-reply } drop;
  }
}
"""


@dataclass(frozen=True, slots=True)
class Phase:
    """A step of building or removing: its duration, and the memory in use after it."""

    name: str
    duration_s: float
    used_mb: float


class EmulatedNetwork(Mininet):
    """An underlay that packets can cross, with Mininet's interface to its nodes.

    A context manager: entry builds it, exit removes it.
    """

    def __init__(
        self,
        underlay: Underlay,
        *,
        links: str | None = None,
        seed: int = 0,
        time_scale: float = 1.0,
        on_phase: Callable[[Phase], None] = lambda _: None,
    ) -> None:
        """Prepare; `links` is `netem`, `delay-line` or None for the better one of this machine.

        `time_scale` is the factor by which the underlay's delays are already stretched.
        """
        Mininet.inited = True  # Mininet's own preparation changes limits of the whole machine
        super().__init__(build=False)
        self.underlay = underlay
        self.routers: list[UnderlayNode] = []
        self.phases: list[Phase] = []
        self.routes: Routes
        self.clock = HeldClock()
        self._on_phase = on_phase
        self._down: frozenset[str] = frozenset()
        self._namespaces: dict[str, Namespace] = {}
        self._tables: RouteTables
        self.link_layer: Links = choose_links(links, seed, time_scale)
        check_capacity(underlay, self.link_layer.descriptors_per_link)
        self._available_mb = available_mb()
        self.ledger = Ledger.begin()

    def __enter__(self) -> "EmulatedNetwork":
        try:
            self.build()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __iter__(self) -> Iterator[str]:
        """The names of all nodes, for Mininet's prompt."""
        return self.underlay.node_names

    def __len__(self) -> int:
        return len(self.nameToNode)

    def build(self) -> None:
        """Build the network; `phases` has the steps and their durations."""
        with self._phase("namespaces"):
            self._create_namespaces()
        with ThreadPoolExecutor(1) as beside, self._phase("links"):
            making_links = beside.submit(
                self.link_layer.build, self.underlay, self._namespaces, self.ledger.environment
            )
            with self._phase("shortest routes"):
                self.routes = Routes(self.underlay)
            making_links.result()
            self.clock = HeldClock(self.link_layer.clock_path)
        with self._phase("addresses and routes"):
            self._tables = RouteTables(self.underlay, self._namespaces, self.routes)
            self._tables.install()
        with self._phase("anonymous routers"):
            for router in self.underlay.routers:
                if router.anonymous:
                    self._hide(router.name)
        with self._phase("Mininet nodes"):
            self._add_nodes()
        self.built = True

    def stop(self) -> None:
        """Remove everything; may be called at any time, and repeatedly."""
        with _uninterrupted():
            try:
                with self._phase("shells"):
                    for node in self.nameToNode.values():
                        node.terminate()
                    self.nameToNode.clear()
                with self._phase("links removed"):
                    self.link_layer.close()
            finally:
                with self._phase("namespaces removed"):
                    for namespace in self._namespaces.values():
                        namespace.close()
                    self._namespaces.clear()
                    self.clock.close()
                    self.ledger.settle()

    def set_link(self, a: str, b: str, up: bool) -> None:
        """Cut or restore the link between two nodes, and update routes."""
        name = self._find_link(a, b).name
        self._set_down(self._down - {name} if up else self._down | {name})

    def set_router(self, router: str, up: bool) -> None:
        """Switch a router off, with all its links, or on again, and update routes."""
        if router not in self.underlay.router_index:
            raise EmulationError(f"router {router}: expected a router of this network")
        self._set_down(self._down - {router} if up else self._down | {router})

    def set_delay(self, a: str, b: str, delay_us: int) -> None:
        """Change the delay of a link in both directions, and update routes."""
        old = self._find_link(a, b)
        new = replace(
            old, ab=replace(old.ab, delay_us=delay_us), ba=replace(old.ba, delay_us=delay_us)
        )
        links = tuple(new if link is old else link for link in self.underlay.links)
        self.underlay = replace(self.underlay, links=links)
        self.link_layer.configure(new)
        self._reroute()

    def inside(self, node: str) -> AbstractContextManager[None]:
        """Move the calling thread into a node's namespace, to open sockets there."""
        return entered(self._namespaces[node].descriptor)

    def namespace_path(self, node: str) -> str:
        """The path of a node's namespace for processes of root."""
        return self._namespaces[node].path

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Called by Mininet's prompt for `link r1 r2 down`."""
        self.set_link(src, dst, up=status == "up")

    def iperf(self, *_: object, **__: object) -> None:
        """Called by Mininet's prompt for `iperf`; Mininet's own method kills every iperf."""
        raise EmulationError("iperf: start it yourself, as in `h2 iperf -s &`, `h1 iperf -c h2`")

    def counts(self) -> dict[str, Any]:
        """Counts of packets that the links have forwarded and dropped so far."""
        return self.link_layer.counts()

    def _create_namespaces(self) -> None:
        names = list(self.underlay.node_names)
        for name, namespace in zip(names, create_namespaces(len(names)), strict=True):
            self._namespaces[name] = namespace
            for key, value in _SYSCTLS.items():
                with suppress(FileNotFoundError):  # a kernel without IPv6
                    write_sysctl(key, value)
        self.ledger.cookies = [namespace.cookie for namespace in self._namespaces.values()]
        self.ledger.write()

    def _hide(self, router: str) -> None:
        with self.inside(router):
            done = subprocess.run(
                ["nft", "-f", "-"], input=_ANONYMITY, text=True, capture_output=True, check=False
            )
        if done.returncode != 0:
            raise EmulationError(f"{router}: nft exited {done.returncode}: {done.stderr.strip()}")

    def _add_nodes(self) -> None:
        for name in self.underlay.node_names:
            address = self.underlay.address[name]
            node = UnderlayNode(name, self._namespaces[name], address, self.ledger.environment)
            self.nameToNode[name] = node
            (self.routers if name in self.underlay.router_index else self.hosts).append(node)
        for link in self.underlay.links:
            a, b = self.nameToNode[link.a], self.nameToNode[link.b]
            end_a = UnderlayInterface(interface_name(link.a, link.b), a)
            end_b = UnderlayInterface(interface_name(link.b, link.a), b)
            self.links.append(UnderlayLink(end_a, end_b))

    def _find_link(self, a: str, b: str) -> Link:
        for link in self.underlay.links:
            if {link.a, link.b} == {a, b}:
                return link
        raise EmulationError(f"link {a}-{b}: expected a link of this network, found none")

    def _set_down(self, down: frozenset[str]) -> None:
        before, after = self._dead_links(self._down), self._dead_links(down)
        self._down = down
        for link in before ^ after:
            self._switch(link, up=link in before)
        self._reroute()
        for link in before - after:
            if link.a in self.underlay.last_mile:
                self._tables.attach(link)

    def _dead_links(self, down: Set[str]) -> set[Link]:
        return {
            link for link in self.underlay.links if not down.isdisjoint((link.name, link.a, link.b))
        }

    def _switch(self, link: Link, up: bool) -> None:
        for node, neighbour in ((link.a, link.b), (link.b, link.a)):
            with self.inside(node), Netlink() as netlink:
                netlink.set_up(socket.if_nametoindex(interface_name(node, neighbour)), up)

    def _reroute(self) -> None:
        self.routes = Routes(self.underlay, self._down)
        self._tables.update(self.routes)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        used_mb = max(0.0, self._available_mb - available_mb())
        phase = Phase(name, time.perf_counter() - start, used_mb)
        self.phases.append(phase)
        with suppress(OSError):  # the output may be closed
            self._on_phase(phase)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C and requests to end until the block is finished."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    old = {number: signal.signal(number, signal.SIG_IGN) for number in wanted}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
