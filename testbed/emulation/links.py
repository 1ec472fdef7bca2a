"""Links with delay, rate, loss and queue: two ways to make them, one interface.

`NetemLinks` leaves the work to the kernel. `DelayLineLinks` is for kernels without netem: a
process of ours carries the packets (see `delay_line`).
"""

import json
import math
import os
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from testbed.emulation.namespaces import Namespace, create_namespaces, entered
from testbed.emulation.netlink import Netlink
from testbed.errors import EmulationError
from topologies.addresses import interface_name
from topologies.underlay import Channel, Link, Underlay

_FULL_PACKET_BITS = 1500 * 8
_UNLIMITED_PACKETS = 1_000_000


class Links(ABC):
    """The links of one network."""

    kind: str

    @property
    def processes(self) -> list[int]:
        """The processes that carry the packets, where it is not the kernel alone."""
        return []

    @abstractmethod
    def build(
        self, underlay: Underlay, namespaces: Mapping[str, Namespace], env: Mapping[str, str]
    ) -> None:
        """Make all links, up and carrying packets; processes get the environment `env`."""

    @abstractmethod
    def configure(self, link: Link) -> None:
        """Let the link of this name behave as the description now says."""

    @abstractmethod
    def counts(self) -> dict[str, Any]:
        """What the links have done so far: `forwarded`, `lost`, `overflowed`, and more."""

    @abstractmethod
    def close(self) -> None:
        """Remove what the kernel would not remove by itself."""


def has_netem() -> bool:
    """Whether this kernel can delay packets itself, found out by letting it try."""
    namespaces = create_namespaces(1)
    namespace = next(namespaces)
    attempt = subprocess.run(
        ["tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms"],
        capture_output=True,
        check=False,
    )
    namespaces.close()
    namespace.close()
    return attempt.returncode == 0


def choose_links(kind: str | None, seed: int) -> Links:
    """The links of the kind asked for, or netem where the kernel has it; `seed` is for losses."""
    if kind is None:
        kind = NetemLinks.kind if has_netem() else DelayLineLinks.kind
    if kind == NetemLinks.kind:
        return NetemLinks()
    if kind != DelayLineLinks.kind:
        raise EmulationError(f"links: expected netem or delay-line, found {kind!r}")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise EmulationError(
            "links: expected netem in the kernel or tun devices, found neither; load one with "
            "`sudo modprobe tun`, then see `tdo doctor`"
        )
    return DelayLineLinks(seed)


class DelayLineLinks(Links):
    """Links carried by a delay-line process."""

    kind = "delay-line"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._process: subprocess.Popen[bytes] | None = None

    def build(
        self, underlay: Underlay, namespaces: Mapping[str, Namespace], env: Mapping[str, str]
    ) -> None:
        """Start the delay line and wait until it has made its devices."""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "testbed.emulation.delay_line"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,  # Ctrl-C is for us to handle
        )
        links = [_line_description(link, underlay, namespaces) for link in underlay.links]
        self._ask({"seed": self._seed, "links": links})

    @property
    def processes(self) -> list[int]:
        """The delay line, while it runs."""
        return [self._process.pid] if self._process else []

    def configure(self, link: Link) -> None:
        """Change a link's channels for the packets that enter it from now on."""
        settings = {"ab": _line_settings(link.ab), "ba": _line_settings(link.ba)}
        self._ask({"configure": link.name, **settings})

    def counts(self) -> dict[str, Any]:
        """What the delay line has counted, `late` and the lateness of packets included."""
        return self._ask({})

    def close(self) -> None:
        """End the delay line, which closes its devices."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise EmulationError("delay line: expected it to run, found it closed")
        try:
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended, and tells why below
        answer: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
        if not answer:
            _, errors = process.communicate()
            last_line = errors.decode().strip().rpartition("\n")[2]
            raise EmulationError(f"delay line: expected an answer, found it ended: {last_line}")
        return answer


class NetemLinks(Links):
    """Links made of virtual cables, with the kernel's netem at both ends."""

    kind = "netem"

    def __init__(self) -> None:
        self._namespaces: Mapping[str, Namespace] = {}

    def build(
        self, underlay: Underlay, namespaces: Mapping[str, Namespace], _env: Mapping[str, str]
    ) -> None:
        """Lay all cables, then shape the traffic at every end."""
        self._namespaces = namespaces
        shapes: dict[str, dict[str, Channel]] = {name: {} for name in namespaces}
        for number, link in enumerate(underlay.links):
            self._lay_cable(number, link)
            shapes[link.a][interface_name(link.a, link.b)] = link.ab
            shapes[link.b][interface_name(link.b, link.a)] = link.ba
        for node, channels in shapes.items():
            self._shape(node, channels)

    def configure(self, link: Link) -> None:
        """Replace the shaping at both ends of a link."""
        self._shape(link.a, {interface_name(link.a, link.b): link.ab})
        self._shape(link.b, {interface_name(link.b, link.a): link.ba})

    def counts(self) -> dict[str, Any]:
        """Sums over the kernel's counters at all link ends."""
        shown = [q for node in self._namespaces for q in self._read_back(node, statistics=True)]
        return {
            "forwarded": sum(qdisc["packets"] for qdisc in shown),
            "lost": sum(qdisc["drops"] for qdisc in shown),
            "overflowed": sum(qdisc["overlimits"] for qdisc in shown),
        }

    def close(self) -> None:
        """Nothing to do: cables go with their namespaces."""

    def _lay_cable(self, number: int, link: Link) -> None:
        mac = bytes([2, 0, *number.to_bytes(4, "big")])  # locally administered
        far_end = self._namespaces[link.b].descriptor
        with entered(self._namespaces[link.a].descriptor), Netlink() as netlink:
            netlink.create_veth(link.name, interface_name(link.b, link.a), far_end, mac)

    def _shape(self, node: str, channels: Mapping[str, Channel]) -> None:
        lines = [
            f"qdisc replace dev {device} root netem {_netem_arguments(channel)}"
            for device, channel in channels.items()
        ]
        self._tc(node, ["-batch", "-"], "\n".join(lines))
        delays = {q["dev"]: q["options"] for q in self._read_back(node)}
        for device, channel in channels.items():
            _check_netem(node, device, channel, delays.get(device, {}))

    def _read_back(self, node: str, statistics: bool = False) -> list[dict[str, Any]]:
        arguments = ["-s"] if statistics else []
        shown = json.loads(self._tc(node, [*arguments, "-j", "qdisc", "show"]))
        return [qdisc for qdisc in shown if qdisc["kind"] == "netem"]

    def _tc(self, node: str, arguments: list[str], script: str = "") -> str:
        with entered(self._namespaces[node].descriptor):
            done = subprocess.run(
                ["tc", *arguments], input=script, capture_output=True, text=True, check=False
            )
        if done.returncode != 0:
            raise EmulationError(
                f"{node}: tc {' '.join(arguments)} exited {done.returncode}: {done.stderr.strip()}"
            )
        return done.stdout


def _line_description(
    link: Link, underlay: Underlay, namespaces: Mapping[str, Namespace]
) -> dict[str, Any]:
    ends = [
        [namespaces[node].path, interface_name(node, neighbour), node in underlay.last_mile]
        for node, neighbour in ((link.a, link.b), (link.b, link.a))
    ]
    return {"ends": ends, "ab": _line_settings(link.ab), "ba": _line_settings(link.ba)}


def _line_settings(channel: Channel) -> dict[str, Any]:
    return {
        "delay_us": channel.delay_us,
        "rate_mbit": channel.rate_mbit,
        "loss": channel.loss_percent,
        "queue": channel.queue_packets,
    }


def _netem_arguments(channel: Channel) -> str:
    """A channel in netem's words; its limit counts packets under way as well as waiting ones."""
    limit = _UNLIMITED_PACKETS
    rate = ""
    if channel.rate_mbit is not None:
        under_way = channel.rate_mbit * channel.delay_us / _FULL_PACKET_BITS
        limit = channel.queue_packets + math.ceil(under_way)
        rate = f" rate {channel.rate_mbit * 1e6:.0f}bit"
    return f"delay {channel.delay_us}us loss {channel.loss_percent}% limit {limit}{rate}"


def _check_netem(node: str, device: str, channel: Channel, options: dict[str, Any]) -> None:
    """Compare what the kernel says it does with what it was told: a lost unit is a lost delay."""
    found_us = options.get("delay", {}).get("delay", 0) * 1e6
    if abs(found_us - channel.delay_us) > 1:
        raise EmulationError(
            f"{node}, {device}: expected a delay of {channel.delay_us} us, found {found_us:.0f} us"
        )
