"""Route inference with raw packets that Scapy builds and parses: a second implementation.

It shares only the result type with `agents.probing.route_probe`, so that each can test the other.
It is also the place to try other kinds of probes. It requires root and is slow.
"""

import logging
import select
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import NamedTuple

from agents.probing.route import Hop, Route

# Scapy logs missing parts of the machine when it is imported.
logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.layers.inet import ICMP, IP, UDP, IPerror, UDPerror  # noqa: E402

_PORT = 33_434
_TIME_EXCEEDED, _UNREACHABLE, _PORT_UNREACHABLE = 11, 3, 3
_LARGEST_PACKET = 65_535


@dataclass(slots=True)
class _Trace:
    """The state of one route: the answer to each TTL, and which of them was the end."""

    target: int
    hops: dict[int, Hop] = field(default_factory=dict)
    end_ttl: int | None = None
    is_reached: bool = False

    def missing(self, max_ttl: int) -> list[int]:
        """The TTLs up to the end without an answer."""
        return [ttl for ttl in range(1, (self.end_ttl or max_ttl) + 1) if ttl not in self.hops]

    def route(self) -> Route:
        """The hops to the end, or to the last router that answered."""
        last = self.end_ttl or max(self.hops, default=0)
        hops = tuple(self.hops.get(ttl, Hop(None)) for ttl in range(1, last + 1))
        return Route(self.target, hops, self.is_reached)


class _Sent(NamedTuple):
    """A probe: its route, its TTL, and its send time."""

    trace: _Trace
    ttl: int
    time_s: float


def scapy_routes(
    targets: Iterable[int | str], max_ttl: int = 30, rounds: int = 3, timeout_s: float = 1.0
) -> list[Route]:
    """The routes to each target: all TTLs at once, then those without an answer again."""
    traces = [_Trace(int(IPv4Address(target))) for target in targets]
    with ExitStack() as opened:
        sender = opened.enter_context(
            socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        )
        receiver = opened.enter_context(
            socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        )
        # Reserves the port; no datagram arrives on it.
        reserved = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        reserved.bind(("", 0))
        # An answer quotes the IP identification of its probe, so late answers
        # are assigned correctly.
        sent: dict[int, _Sent] = {}
        for _ in range(rounds):
            port = reserved.getsockname()[1]
            _probe_once(sender, receiver, port, traces, sent, max_ttl, timeout_s)
    return [trace.route() for trace in traces]


def _probe_once(
    sender: socket.socket,
    receiver: socket.socket,
    source_port: int,
    traces: list[_Trace],
    sent: dict[int, _Sent],
    max_ttl: int,
    timeout_s: float,
) -> None:
    """Send a probe for each missing TTL, and listen while some are missing."""
    for trace in traces:
        for ttl in trace.missing(max_ttl):
            number = len(sent) + 1
            sent[number] = _Sent(trace, ttl, time.time())
            packet = _packet(trace.target, source_port, ttl, number)
            sender.sendto(bytes(packet), (packet.dst, 0))
            _take_answers(receiver, source_port, sent, 0)
    deadline_s = time.time() + timeout_s
    while any(trace.missing(max_ttl) for trace in traces) and time.time() < deadline_s:
        _take_answers(receiver, source_port, sent, deadline_s - time.time())


def _packet(target: int, source_port: int, ttl: int, number: int) -> IP:
    address = str(IPv4Address(target))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect((address, _PORT))
        source = asked.getsockname()[0]
    return IP(src=source, dst=address, ttl=ttl, id=number) / UDP(sport=source_port, dport=_PORT)


def _take_answers(
    receiver: socket.socket,
    source_port: int,
    sent: dict[int, _Sent],
    wait_s: float,
) -> None:
    """Handle all available answers, after waiting some time for the first one."""
    for packet in _packets(receiver, wait_s):
        if ICMP not in packet or IPerror not in packet or UDPerror not in packet:
            continue
        if packet[UDPerror].sport == source_port and packet[IPerror].id in sent:
            trace, ttl, sent_s = sent[packet[IPerror].id]
            _note(trace, ttl, packet, int((time.time() - sent_s) * 1e6))


def _packets(receiver: socket.socket, wait_s: float) -> Iterator[IP]:
    """The packets that have arrived, dissected."""
    poller = select.poll()
    poller.register(receiver, select.POLLIN)
    while poller.poll(max(0.0, wait_s) * 1000):
        yield IP(receiver.recv(_LARGEST_PACKET))
        wait_s = 0


def _note(trace: _Trace, ttl: int, packet: IP, round_trip_us: int) -> None:
    error = packet[ICMP]
    if error.type not in (_TIME_EXCEEDED, _UNREACHABLE):
        return
    trace.hops.setdefault(ttl, Hop(int(IPv4Address(packet.src)), (round_trip_us,)))
    if error.type == _UNREACHABLE and ttl < (trace.end_ttl or ttl + 1):
        trace.end_ttl = ttl
        trace.is_reached = error.code == _PORT_UNREACHABLE
