"""Probes on real networks: UDP datagrams are sent, ICMP errors received.

All probings of one host share two sockets. A UDP socket sends the probes, each with its own TTL,
and all of a flow with the same ports, as in Paris traceroute. A raw socket receives the ICMP errors
of routers and targets. They quote the probe: its payload identifies it, and its header has the
remaining TTL, which an error queue (IP_RECVERR) does not show. The kernel stamps arrivals, so a
busy process does not lengthen round trips.

Opening the sockets requires root; afterwards the process may drop it. Routers must quote 16
bytes of the datagram or more, as RFC 1812 requires.
"""

import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any, Generic, NamedTuple, TypeVar

from agents.probing.host_probing import Begin, HostProbing, Mark
from agents.probing.probe import Answer, Probe, ProbeSettings
from agents.probing.route import Route
from agents.probing.route_probe import RouteProbe
from agents.runtime.arrival_stamps import STAMP_BYTES, arrival_ns, stamp_arrivals
from agents.runtime.held_clock import HeldClock

FIRST_PORT = 33_434  # as in traceroute; flow 0, further flows use the next ports
_SOL_RAW, _ICMP_FILTER = 255, 1  # Linux; not in the socket module
_PAYLOAD = struct.Struct(">II")  # the payload of a probe
_TTL = struct.Struct("=i")
_IP = struct.Struct(">B7xBB2x4s4x")  # header length, TTL, protocol, source
_ICMP = struct.Struct(">BB6x")  # type, code
_UDP = struct.Struct(">H6x")  # source port
_UNREACHABLE, _TIME_EXCEEDED = 3, 11
_PORT_UNREACHABLE, _FRAGMENTATION_NEEDED = 3, 4
_QUOTE_BYTES = 256  # room for two IP headers with options, ICMP, UDP and the payload
_RECEIVE_BUFFER_BYTES = 1 << 20

Result = TypeVar("Result")


class _Reply(NamedTuple):
    """An ICMP error: the probe that it answers, its sender, its meaning, and its arrival time.

    `ttl_left` is the TTL of the probe where it was answered.
    """

    mark: Mark
    address: int
    answer: Answer
    received_us: int
    ttl_left: int


class Prober(Generic[Result]):
    """Probes targets from the namespace in which it was created; an event loop drives it.

    The loop calls `on_readable` when the descriptor is readable, and `on_time` at
    `next_deadline_us`. Both return completed probings.
    """

    def __init__(
        self,
        begin: Begin[Result],
        settings: ProbeSettings | None = None,
        source_port: int = 0,
        time_scale: float = 1.0,
        held: HeldClock | None = None,
    ) -> None:
        """Open the sockets; `begin` creates the probing of one target, for example `RouteProbe`.

        With a time scale, round trips are divided by it. `held` is the clock of the links, if they
        have one.
        """
        self._tick_ns = 1000 * time_scale
        self._held = held or HeldClock()
        self._probing = HostProbing(begin, self._send, settings)
        self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._sender.bind(("", source_port))
        self._source_port = self._sender.getsockname()[1]
        self._receiver = _open_receiver()

    def fileno(self) -> int:
        """The descriptor to watch for input."""
        return self._receiver.fileno()

    def close(self) -> None:
        """Close the sockets; probings in progress do not end."""
        self._sender.close()
        self._receiver.close()

    def __enter__(self) -> "Prober[Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_idle(self) -> bool:
        """Whether no probing is in progress."""
        return self._probing.is_idle

    @property
    def next_deadline_us(self) -> int | None:
        """The time at which `on_time` must be called if nothing arrives before."""
        return self._probing.next_deadline_us

    def probe(self, now_us: int, target: int) -> None:
        """Start probing a target soon, or join the probing of it that is in progress."""
        self._probing.probe(now_us, target)

    def forget(self) -> None:
        """Cancel all probes in flight, so that another user can start."""
        self._probing.forget()

    def on_readable(self, now_us: int) -> list[Result]:
        """Read the answers that have arrived; returns completed probings."""
        finished: list[Result] = []
        for reply in self._read_replies():
            finished += self._probing.on_reply(
                now_us,
                reply.mark,
                reply.address,
                reply.answer,
                reply.received_us,
                ttl_left=reply.ttl_left,
            )
        return finished + self._probing.use_room(now_us)

    def on_time(self, now_us: int) -> list[Result]:
        """Stop waiting for overdue probes; returns completed probings."""
        # An answer that arrived while this process did not run is not late.
        return self.on_readable(now_us) + self._probing.on_time(now_us)

    def _send(self, target: int, mark: Mark, probe: Probe) -> int:
        """Send a probe; one that cannot be sent counts as lost, which the probing handles."""
        ttl = [(socket.IPPROTO_IP, socket.IP_TTL, _TTL.pack(probe.ttl))]
        where = (socket.inet_ntoa(target.to_bytes(4)), FIRST_PORT + probe.flow)
        sent_us = int(self._held.now_ns() / self._tick_ns)
        with suppress(OSError):
            self._sender.sendmsg([_PAYLOAD.pack(*mark)], ttl, 0, where)
        return sent_us

    def _read_replies(self) -> Iterator[_Reply]:
        """The answers to our probes that have arrived."""
        while True:
            try:
                packet, ancillary, _, _ = self._receiver.recvmsg(_QUOTE_BYTES, STAMP_BYTES)
            except BlockingIOError:
                return
            received_us = int(self._held.at_ns(arrival_ns(ancillary)) / self._tick_ns)
            reply = _parse_reply(packet, self._source_port, received_us)
            if reply is not None:
                yield reply


def probe_routes(
    targets: Iterable[int | str], settings: ProbeSettings | None = None
) -> list[Route]:
    """The routes from this host to each target, in their order."""
    wanted = [int(IPv4Address(target)) for target in targets]
    with Prober(RouteProbe, settings) as prober:
        for target in wanted:
            prober.probe(monotonic_us(), target)
        found = {route.target: route for route in run_probers([prober])[0]}
    return [found[target] for target in wanted]


def run_probers(probers: Sequence[Prober[Result]]) -> list[list[Result]]:
    """The results of each of some probers, when all are done."""
    found: list[list[Result]] = [[] for _ in probers]
    by_descriptor = {prober.fileno(): number for number, prober in enumerate(probers)}
    with select.epoll() as watch:
        for descriptor in by_descriptor:
            watch.register(descriptor, select.EPOLLIN)
        while not all(prober.is_idle for prober in probers):
            for descriptor, _ in watch.poll(_seconds_to_deadline(probers)):
                number = by_descriptor[descriptor]
                found[number] += probers[number].on_readable(monotonic_us())
            now_us = monotonic_us()
            for number, prober in enumerate(probers):
                deadline_us = prober.next_deadline_us
                if deadline_us is not None and deadline_us <= now_us:
                    found[number] += prober.on_time(now_us)
    return found


def monotonic_us() -> int:
    """The time of the monotonic clock, in microseconds."""
    return time.monotonic_ns() // 1000


def _seconds_to_deadline(probers: Sequence[Prober[Any]]) -> float:
    deadlines = [at_us for prober in probers if (at_us := prober.next_deadline_us) is not None]
    return max(0, min(deadlines) - monotonic_us()) / 1e6


def _open_receiver() -> socket.socket:
    """A socket that receives the ICMP errors sent to this host, with arrival times."""
    opened = socket.socket(
        socket.AF_INET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.IPPROTO_ICMP
    )
    unwanted = 0xFFFFFFFF & ~(1 << _UNREACHABLE | 1 << _TIME_EXCEEDED)
    opened.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", unwanted))
    stamp_arrivals(opened)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    return opened


def _parse_reply(packet: bytes, source_port: int, received_us: int) -> _Reply | None:
    """The content of an ICMP error about a probe from our port; None for any other."""
    try:
        length, _, _, address = _IP.unpack_from(packet)
        error = (length & 15) * 4
        icmp_type, code = _ICMP.unpack_from(packet, error)
        quote = error + _ICMP.size
        length, ttl_left, protocol, _ = _IP.unpack_from(packet, quote)
        datagram = quote + (length & 15) * 4
        (port,) = _UDP.unpack_from(packet, datagram)
        mark = Mark(*_PAYLOAD.unpack_from(packet, datagram + _UDP.size))
    except struct.error:
        return None  # it quotes too little, or is no error
    answer = _meaning(icmp_type, code)
    if answer is None or protocol != socket.IPPROTO_UDP or port != source_port:
        return None
    return _Reply(mark, int.from_bytes(address), answer, received_us, ttl_left)


def _meaning(icmp_type: int, code: int) -> Answer | None:
    if icmp_type == _TIME_EXCEEDED:
        return Answer.PASSING
    if icmp_type != _UNREACHABLE or code == _FRAGMENTATION_NEEDED:
        return None
    return Answer.TARGET if code == _PORT_UNREACHABLE else Answer.DEAD_END
