"""The delay line: a process that carries packets between the two ends of every link.

It owns one tun device for each link end. A packet read from one end is written to the other after
the link's delay; on a link with a rate, after the packets before it; and not at all if it is lost
by loss or a full queue. One thread serves the links of a whole network, reads commands from
standard input and answers on standard output, one JSON object a line. It closes its devices when
standard input ends, so it never outlives its network.

Lateness does not add up along a path. When a packet leaves a link slightly late, the line stores
for a short time when it was due, and starts from that time when the next router sends the same
packet into the next link.

The line also keeps the clock of the network (see `held_clock`), which pauses as soon as the line is
late. On this clock, packets are hardly late.
"""

import fcntl
import gc
import heapq
import itertools
import json
import os
import random
import select
import signal
import socket
import struct
import sys
from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from time import process_time
from typing import Any

from agents.runtime.held_clock import ClockKeeper
from testbed.emulation.namespaces import entered
from testbed.emulation.privileges import LINKS_FIRST, hurry, keep_awake
from topologies.channel_model import ChannelModel, Fate
from topologies.underlay import Channel

_TUNSETIFF = 0x400454CA
_IFF_TUN_NO_PI = 0x0001 | 0x1000
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 0x1
_SIOCSIFTXQLEN = 0x8943

_PACKET_BYTES = 2_048  # the devices have an MTU of 1,500
_DEVICE_QUEUE_PACKETS = 1_000
_FEW_DEVICES = 3
_LATE_NS = 1_000_000
_REMEMBER_NS = 50_000_000
_LONGEST_NAP_NS, _SHORTEST_NAP_NS = 1_000_000, 100_000
_SLACK_NS = 100_000  # lateness of a packet at which the clock pauses
_LARGEST_MARGIN_NS = 150_000
_CLOSING_THREADS = 128


class LineChannel(ChannelModel):
    """One direction of a link: the device that it writes to, and counts of its packets."""

    __slots__ = ("forwarded", "lost", "overflowed", "to_host", "writes")

    def __init__(self, settings: dict[str, Any], writes: int, to_host: bool) -> None:
        super().__init__(Channel(**settings))
        self.writes = writes
        self.to_host = to_host
        self.forwarded = self.lost = self.overflowed = 0

    def count_drop(self, fate: Fate) -> None:
        """Count a packet that was lost."""
        if fate == "lost":
            self.lost += 1
        else:
            self.overflowed += 1


class DelayLine:
    """All links of a network, carried by one loop."""

    def __init__(self, seed: int, time_scale: float) -> None:
        self._chance = random.Random(seed)
        self._late_ns = round(_LATE_NS * time_scale)
        self._remember_ns = round(_REMEMBER_NS * time_scale)
        self._longest_nap_ns = self._nap_ns = round(_LONGEST_NAP_NS * time_scale)
        self._shortest_nap_ns = round(_SHORTEST_NAP_NS * time_scale)
        self._slack_ns = round(_SLACK_NS * time_scale)
        self._epoll = select.epoll()
        self._devices: dict[str, int] = {}
        self._channel_of: dict[int, LineChannel] = {}
        self._links: dict[str, tuple[LineChannel, LineChannel]] = {}
        self._pending: list[tuple[int, int, LineChannel, bytes, bytes]] = []
        self._sequence = 0
        self._was_ready: set[int] = set()  # devices that the last round read
        self._due_of: dict[bytes, int] = {}
        self._due_before: dict[bytes, int] = {}
        self._forget_at_ns = 0
        self._margin_ns = 50_000
        self._refused = self._late = self._lateness_sum_ns = self._lateness_max_ns = 0
        self.clock: ClockKeeper

    def add_links(self, links: list[dict[str, Any]]) -> None:
        """Create both devices of each link and start to carry packets between them."""
        self._create_devices([tuple(end) for link in links for end in link["ends"]])
        for link in links:
            (_, name_a, a_is_host), (_, name_b, b_is_host) = link["ends"]
            a, b = self._devices[name_a], self._devices[name_b]
            ab = LineChannel(link["ab"], b, b_is_host)
            ba = LineChannel(link["ba"], a, a_is_host)
            self._links[name_a] = (ab, ba)
            self._channel_of |= {a: ab, b: ba}
            self._epoll.register(a, select.EPOLLIN)
            self._epoll.register(b, select.EPOLLIN)
        self.clock = ClockKeeper(self._nap_ns)  # from now on: creating the devices took seconds

    def run(self) -> None:
        """Carry packets until standard input ends."""
        self._epoll.register(sys.stdin.fileno(), select.EPOLLIN)
        while True:
            self._write_due()
            ready = self._wait()
            if any(descriptor == 0 for descriptor, _ in ready) and not self._obey():
                return
            self._read(ready)

    def close(self) -> None:
        """Remove all devices, many in parallel: each takes the kernel milliseconds."""
        with ThreadPoolExecutor(_CLOSING_THREADS) as threads:
            list(threads.map(os.close, self._devices.values()))

    def _create_devices(self, ends: list[tuple[str, str, bool]]) -> None:
        """Make a device for each link end, up and in its namespace."""
        for namespace, group in itertools.groupby(sorted(ends), key=lambda end: end[0]):
            held = os.open(namespace, os.O_RDONLY)
            with entered(held), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                for _, name, _ in group:
                    self._devices[name] = _create_device(name, control)
            os.close(held)

    def _wait(self) -> list[tuple[int, int]]:
        """The descriptors that are ready when a packet has arrived or is about to be due."""
        now_ns = self.clock.now_ns()
        next_ns = now_ns + self._nap_ns
        if self._pending and self._pending[0][0] < next_ns:
            next_ns = self._pending[0][0]
        self.clock.grant(next_ns + self._slack_ns)
        wake_at_ns = next_ns - self._margin_ns
        if wake_at_ns > now_ns:
            # epoll itself rounds time-outs up to milliseconds.
            readable, _, _ = select.select([self._epoll], [], [], (wake_at_ns - now_ns) * 1e-9)
            if not readable:
                self._adapt_margin(self.clock.now_ns() - wake_at_ns)
        ready = self._epoll.poll(0, len(self._channel_of) + 1)
        # While packets arrive, some unread ones may be due soon.
        self._nap_ns = self._shortest_nap_ns if ready else self._longest_nap_ns
        return ready

    def _adapt_margin(self, overslept_ns: int) -> None:
        """Set the margin by which sleeps are shortened to slightly more than their usual excess."""
        difference = overslept_ns - self._margin_ns
        self._margin_ns += difference >> 2 if difference > 0 else difference >> 6
        self._margin_ns = min(self._margin_ns, _LARGEST_MARGIN_NS)

    def _read(self, ready: Sequence[tuple[int, int]]) -> None:
        """Read packets from the devices and compute when each is due at the other end."""
        now_ns = self.clock.now_ns()
        self._forget(now_ns)
        due_of, due_before, pending = self._due_of, self._due_before, self._pending
        sequence = self._sequence
        # Many ready devices mean a packet each, and a second read finds nothing. Few mean a burst;
        # so does a device that is ready again. Unread packets must not wait, as the clock goes on.
        again, self._was_ready = self._was_ready, {descriptor for descriptor, _ in ready}
        is_burst = len(ready) <= _FEW_DEVICES
        for descriptor, _ in ready:
            channel = self._channel_of.get(descriptor)
            if channel is None:
                continue
            for _ in range(_DEVICE_QUEUE_PACKETS if is_burst or descriptor in again else 1):
                try:
                    packet = os.read(descriptor, _PACKET_BYTES)
                except OSError:  # empty, or down
                    break
                identity = packet[4:8] + packet[12:40]
                arrived_ns = due_of.pop(identity, 0) or due_before.pop(identity, 0) or now_ns
                due_ns: int | Fate
                if channel.is_plain:
                    due_ns = arrived_ns + channel.delay_ns
                else:
                    due_ns = channel.due_ns(arrived_ns, len(packet), self._chance)
                    if isinstance(due_ns, str):
                        channel.count_drop(due_ns)
                        continue
                sequence += 1
                heapq.heappush(pending, (due_ns, sequence, channel, packet, identity))
        self._sequence = sequence

    def _forget(self, now_ns: int) -> None:
        """Remove due times of packets that left a link long ago: routers have dropped them."""
        if now_ns > self._forget_at_ns:
            is_all_old = now_ns > self._forget_at_ns + self._remember_ns
            self._due_before, self._due_of = {} if is_all_old else self._due_of, {}
            self._forget_at_ns = now_ns + self._remember_ns

    def _write_due(self) -> None:
        """Write the packets that are due."""
        pending, due_of = self._pending, self._due_of
        dues_ns = []
        until_ns = self.clock.now_ns()  # packets that become due meanwhile wait for the next call
        self.clock.grant(until_ns + self._slack_ns)
        while pending and pending[0][0] <= until_ns:
            due_ns, _, channel, packet, identity = heapq.heappop(pending)
            try:
                os.write(channel.writes, packet)
            except OSError:  # the device is down
                self._refused += 1
                continue
            channel.forwarded += 1
            if not channel.to_host:
                due_of[identity] = due_ns
            dues_ns.append(due_ns)
        if dues_ns:
            self._note_lateness(dues_ns)

    def _note_lateness(self, dues_ns: list[int]) -> None:
        """Record the lateness of packets that were written; they are in order."""
        now_ns = self.clock.now_ns()
        self._lateness_sum_ns += len(dues_ns) * now_ns - sum(dues_ns)
        self._lateness_max_ns = max(self._lateness_max_ns, now_ns - dues_ns[0])
        self._late += bisect_left(dues_ns, now_ns - self._late_ns)

    def _obey(self) -> bool:
        """Carry out one command; False at the end of the input."""
        line = sys.stdin.buffer.readline()
        if not line:
            return False
        command = json.loads(line)
        if "configure" in command:
            link = self._links[command["configure"]]
            for channel, settings in zip(link, (command["ab"], command["ba"]), strict=True):
                channel.configure(Channel(**settings))
        _answer(self._counts())
        return True

    def _counts(self) -> dict[str, Any]:
        channels = [channel for link in self._links.values() for channel in link]
        forwarded = sum(channel.forwarded for channel in channels)
        return {
            "forwarded": forwarded,
            "lost": sum(channel.lost for channel in channels),
            "overflowed": sum(channel.overflowed for channel in channels),
            "refused": self._refused,
            "late": self._late,
            "lateness_mean_us": self._lateness_sum_ns / 1000 / max(forwarded, 1),
            "lateness_max_us": self._lateness_max_ns / 1000,
            "held_s": self.clock.held_ns / 1e9,
            "cpu_s": process_time(),
            "by_link": {
                name: [ab.forwarded, ba.forwarded] for name, (ab, ba) in self._links.items()
            },
        }


def _create_device(name: str, control: socket.socket) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN_NO_PI))
    fcntl.ioctl(
        control, _SIOCSIFTXQLEN, struct.pack("16si20x", name.encode(), _DEVICE_QUEUE_PACKETS)
    )
    fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", name.encode(), _IFF_UP))
    return device


def _answer(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Build the links described on the first line of standard input, then carry packets."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    setting = json.loads(sys.stdin.buffer.readline())
    line = DelayLine(setting["seed"], setting["time_scale"])
    try:
        line.add_links(setting["links"])
        _answer({"clock": line.clock.path})
        gc.freeze()
        gc.disable()
        hurry(LINKS_FIRST)
        keep_awake()
        line.run()
    finally:
        line.close()


if __name__ == "__main__":
    main()
