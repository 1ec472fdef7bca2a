"""Links with delay, rate, loss and queue: one interface, two implementations.

`NetemLinks` uses the kernel's netem. `DelayLineLinks` is for kernels without netem: a
process of ours carries the packets (see `delay_line`).
"""

import json
import os
import select
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import asdict
from typing import Any
from zlib import crc32

from testbed.emulation.namespaces import Namespace, create_namespaces, entered
from testbed.emulation.netlink import Netem, NetemState, Netlink, without_offload
from testbed.errors import EmulationError
from topologies.addresses import interface_name
from topologies.underlay import Channel, Link, Underlay

_LOOPBACK = 1
_PATIENCE_S = 120.0
_CERTAIN = 0xFFFFFFFF
_UNLIMITED_PACKETS = 1_000_000
_MISSES = {
    None: (
        "links: expected netem in the kernel or tun devices, found neither; load one with "
        "`sudo modprobe tun`, then see `tdo doctor`"
    ),
    "netem": (
        "links: expected netem in the kernel, found none; load it with `sudo modprobe sch_netem`, "
        "or use delay-line links"
    ),
    "delay-line": (
        "links: expected tun devices for delay-line links, found none; load them with "
        "`sudo modprobe tun`, or use netem links"
    ),
}


class Links(ABC):
    """The links of one network."""

    kind: str
    descriptors_per_link: int
    clock_path: str | None = None  # of links with a clock that pauses with them

    @property
    def processes(self) -> list[int]:
        """The processes that carry the packets; none if the kernel does."""
        return []

    @abstractmethod
    def build(
        self, underlay: Underlay, namespaces: Mapping[str, Namespace], env: Mapping[str, str]
    ) -> None:
        """Make all links, up and carrying packets; processes get the environment `env`."""

    @abstractmethod
    def configure(self, link: Link) -> None:
        """Apply the current description of the link of this name."""

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """Counts of the links so far: `forwarded`, `lost`, `overflowed`, and more."""

    @abstractmethod
    def close(self) -> None:
        """Remove what the kernel does not remove with the namespaces."""


def has_netem() -> bool:
    """Whether this kernel has netem, found out by using it."""
    with closing(create_namespaces(1)) as namespaces:
        namespace = next(namespaces)
        try:
            with Netlink() as netlink:
                netlink.set_netem(_LOOPBACK, Netem(delay_ns=1_000_000, loss=0, limit=1))
        except OSError:
            return False
        finally:
            namespace.close()
    return True


def choose_links(kind: str | None, seed: int, time_scale: float = 1.0) -> Links:
    """The links of the given kind; without one, netem where the kernel has it.

    `seed` is for losses. The threshold for late packets grows with the time scale.
    """
    if kind not in (None, NetemLinks.kind, DelayLineLinks.kind):
        raise EmulationError(f"links: expected netem or delay-line, found {kind!r}")
    if kind != DelayLineLinks.kind and has_netem():
        return NetemLinks(seed)
    if kind != NetemLinks.kind and os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return DelayLineLinks(seed, time_scale)
    raise EmulationError(_MISSES[kind])


class DelayLineLinks(Links):
    """Links carried by a delay-line process."""

    kind = "delay-line"
    descriptors_per_link = 2

    def __init__(self, seed: int, time_scale: float) -> None:
        self._seed = seed
        self._time_scale = time_scale
        self._process: subprocess.Popen[bytes] | None = None

    def build(
        self, underlay: Underlay, namespaces: Mapping[str, Namespace], env: Mapping[str, str]
    ) -> None:
        """Start the delay line and wait until it has made its devices."""
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "testbed.emulation.delay_line"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,  # Ctrl-C is handled by the parent
        )
        links = [_line_description(link, underlay, namespaces) for link in underlay.links]
        setting = {"seed": self._seed, "time_scale": self._time_scale, "links": links}
        self.clock_path = self._ask(setting)["clock"]

    @property
    def processes(self) -> list[int]:
        """The delay line, while it runs."""
        return [self._process.pid] if self._process else []

    def configure(self, link: Link) -> None:
        """Change a link's channels for the packets that enter it from now on."""
        settings = {"ab": asdict(link.ab), "ba": asdict(link.ba)}
        self._ask({"configure": link.name, **settings})

    def counts(self) -> dict[str, Any]:
        """The counts of the delay line, with late packets (`late`) and their lateness."""
        return self._ask({})

    def close(self) -> None:
        """End the delay line, which closes its devices."""
        if self._process is not None:
            try:
                self._process.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
            self._process = None

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise EmulationError("delay line: expected it to run, found it closed")
        try:
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; the reason is reported below
        poller = select.poll()  # the descriptor may be too large a number for select
        poller.register(process.stdout, select.POLLIN)
        if not poller.poll(_PATIENCE_S * 1000):
            raise EmulationError(
                f"delay line: expected an answer within {_PATIENCE_S:.0f} s, found none"
            )
        answer: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
        if not answer:
            _, errors = process.communicate()
            self._process = None
            last_line = errors.decode().strip().rpartition("\n")[2]
            raise EmulationError(
                f"delay line: expected an answer, found it ended with status "
                f"{process.returncode}: {last_line or 'no message'}"
            )
        return answer


class NetemLinks(Links):
    """Links made of veth pairs, with the kernel's netem at both ends."""

    kind = "netem"
    descriptors_per_link = 0

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._links: tuple[Link, ...] = ()
        self._namespaces: Mapping[str, Namespace] = {}

    def build(
        self, underlay: Underlay, namespaces: Mapping[str, Namespace], _env: Mapping[str, str]
    ) -> None:
        """Create all pairs, switch them on, then configure netem at every end.

        In this order the kernel accepts packets at once; a pair with netem that is
        switched on later drops them at first.
        """
        self._links, self._namespaces = underlay.links, namespaces
        channels: dict[str, dict[str, Channel]] = {name: {} for name in namespaces}
        for number, link in enumerate(underlay.links):
            self._lay_cable(number, link)
            channels[link.a][interface_name(link.a, link.b)] = link.ab
            channels[link.b][interface_name(link.b, link.a)] = link.ba
        for node, ends in channels.items():
            self._switch_on(node, ends)
        for node, ends in channels.items():
            self._shape(node, ends)

    def configure(self, link: Link) -> None:
        """Change netem at both ends of a link."""
        self._shape(link.a, {interface_name(link.a, link.b): link.ab})
        self._shape(link.b, {interface_name(link.b, link.a): link.ba})

    def counts(self) -> dict[str, Any]:
        """Sums over the kernel's counters at all link ends.

        Drops of the second queue of an end are overflows, and the first counts them, too;
        the other drops of the first one are random losses.
        """
        forwarded: dict[str, int] = {}
        dropped = overflowed = 0
        for node in self._namespaces:
            for device, state in self._states(node):
                if state.is_first:
                    forwarded[device] = state.forwarded
                    dropped += state.dropped
                else:
                    overflowed += state.dropped
        return {
            "forwarded": sum(forwarded.values()),
            "lost": dropped - overflowed,
            "overflowed": overflowed,
            "by_link": {
                link.name: [forwarded[link.name], forwarded[interface_name(link.b, link.a)]]
                for link in self._links
            },
        }

    def close(self) -> None:
        """Nothing to do: the kernel removes veth pairs with their namespaces."""

    def _lay_cable(self, number: int, link: Link) -> None:
        mac = bytes([2, 0, *number.to_bytes(4, "big")])  # locally administered
        far_end = self._namespaces[link.b].descriptor
        with entered(self._namespaces[link.a].descriptor), Netlink() as netlink:
            netlink.create_veth(link.name, interface_name(link.b, link.a), far_end, mac)

    def _switch_on(self, node: str, devices: Iterable[str]) -> None:
        with entered(self._namespaces[node].descriptor), Netlink() as netlink:
            for device in devices:
                without_offload(device)
                netlink.set_up(socket.if_nametoindex(device), True)

    def _shape(self, node: str, channels: Mapping[str, Channel]) -> None:
        with entered(self._namespaces[node].descriptor), Netlink() as netlink:
            for device, channel in channels.items():
                seed = crc32(f"{self._seed}/{device}".encode())
                netlink.set_netem(socket.if_nametoindex(device), *_netem_queues(channel), seed)
        self._check(node, channels)

    def _check(self, node: str, channels: Mapping[str, Channel]) -> None:
        """Compare the kernel's queues with the requested ones."""
        found: dict[str, list[Netem | None]] = {device: [None, None] for device in channels}
        for device, state in self._states(node):
            if device in found:
                found[device][0 if state.is_first else 1] = state.settings
        for device, channel in channels.items():
            expected = list(_netem_queues(channel))
            if found[device] != expected:
                raise EmulationError(f"{device}: expected {expected}, found {found[device]}")

    def _states(self, node: str) -> list[tuple[str, NetemState]]:
        """The queues of a node with the names of their devices."""
        with entered(self._namespaces[node].descriptor), Netlink() as netlink:
            return [
                (socket.if_indextoname(state.interface), state) for state in netlink.netem_states()
            ]


def _line_description(
    link: Link, underlay: Underlay, namespaces: Mapping[str, Namespace]
) -> dict[str, Any]:
    ends = [
        [namespaces[node].path, interface_name(node, neighbour), node in underlay.last_mile]
        for node, neighbour in ((link.a, link.b), (link.b, link.a))
    ]
    return {"ends": ends, "ab": asdict(link.ab), "ba": asdict(link.ba)}


def _netem_queues(channel: Channel) -> tuple[Netem, Netem | None]:
    """A channel as netem queues: one for loss and delay, and one for rate and overflow.

    With a single queue, the limit would also count packets under way. The second one has
    only waiting packets, and the one that is being sent.
    """
    loss = round(channel.loss_percent / 100 * _CERTAIN)
    delay = Netem(channel.delay_us * 1000, loss, _UNLIMITED_PACKETS)
    if channel.rate_mbit is None:
        return delay, None
    bytes_per_s = round(channel.rate_mbit * 1e6 / 8)
    return delay, Netem(0, 0, channel.queue_packets + 1, bytes_per_s)
