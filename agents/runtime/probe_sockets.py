"""Probes on real networks: one UDP socket for all routes from one host, and no raw packets.

With IP_RECVERR the kernel keeps the ICMP errors that answer our datagrams on the socket's error
queue, each with the address of who sent it and with our payload, which says what it answers.
The ports stay the same for all probes of a flow, as Paris traceroute wants it. Routers have to
quote at least 16 bytes of the datagram, as all that follow RFC 1812 do.
"""

import errno
import select
import socket
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from ipaddress import IPv4Address
from typing import Any, Generic, NamedTuple, TypeVar

from agents.host_probing import Begin, HostProbing, Mark
from agents.probe import Answer, Probe, ProbeSettings
from agents.route import Route
from agents.route_probe import RouteProbe

FIRST_PORT = 33_434  # as traceroute; flow 0, the others follow
_IP_RECVERR, _IP_RECVTTL, _SO_TIMESTAMPNS = 11, 12, 35  # Linux; not in the socket module
_PAYLOAD = struct.Struct(">II")  # a mark
_EXTENDED_ERROR = struct.Struct("=IBBBxII")
_OFFENDER = struct.Struct("=HH4s")
_TIMESTAMP = struct.Struct("=qq")
_TTL = struct.Struct("=i")
_ICMP = 2
_UNREACHABLE, _TIME_EXCEEDED = 3, 11
_PORT_UNREACHABLE, _FRAGMENTATION_NEEDED = 3, 4
_ANCILLARY_BYTES = 256
_RECEIVE_BUFFER_BYTES = 1 << 20
_SEND_TRIES = 8
_STRAYS_AT_ONCE = 64

Result = TypeVar("Result")


class _Reply(NamedTuple):
    """An ICMP error: what it answers, who sent it, what it means, when it came, from how far."""

    mark: Mark
    address: int
    answer: Answer
    received_us: int
    hops_back: int | None


class Prober(Generic[Result]):
    """Probes targets from the namespace it was made in; an event loop drives it.

    Watch the descriptor for input and call `on_readable`; call `on_time` when
    `next_deadline_us` has come. Both return what was found out. Idle, it costs one socket.
    """

    def __init__(
        self,
        begin: Begin[Result],
        settings: ProbeSettings | None = None,
        source_port: int = 0,
    ) -> None:
        """Open the socket; `begin` makes what probes one target, for example `RouteProbe`."""
        self._probing = HostProbing(begin, self._send, settings)
        self._socket = _open_socket(source_port)

    def fileno(self) -> int:
        """The descriptor to watch."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket; what is under way never ends."""
        self._socket.close()

    def __enter__(self) -> "Prober[Result]":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is under way."""
        return self._probing.is_idle

    @property
    def next_deadline_us(self) -> int | None:
        """When `on_time` wants to be called, if nothing comes in before."""
        return self._probing.next_deadline_us

    def probe(self, now_us: int, target: int) -> None:
        """Probe a target soon; a probing of it that is under way answers for both."""
        self._probing.probe(now_us, target)

    def on_readable(self, now_us: int) -> list[Result]:
        """Read the answers that came in; returns what is now complete."""
        finished: list[Result] = []
        while (reply := self._read_reply()) is not None:
            finished += self._probing.on_reply(now_us, *reply)
        self._discard_strays()
        return finished + self._probing.use_room(now_us)

    def on_time(self, now_us: int) -> list[Result]:
        """Give up waiting for what is overdue; returns what is now complete."""
        # An answer that came in while this process did not run is not late.
        return self.on_readable(now_us) + self._probing.on_time(now_us)

    def _send(self, target: int, mark: Mark, probe: Probe) -> int:
        """Send a probe; one that cannot be sent is lost, which its probing is prepared for."""
        ttl = [(socket.IPPROTO_IP, socket.IP_TTL, _TTL.pack(probe.ttl))]
        where = (socket.inet_ntoa(target.to_bytes(4)), FIRST_PORT + probe.flow)
        sent_us = 0
        for _ in range(_SEND_TRIES):
            sent_us = time.time_ns() // 1000
            # An error that came in for an earlier probe is reported, once, instead of sending.
            with suppress(OSError):
                self._socket.sendmsg([_PAYLOAD.pack(*mark)], ttl, 0, where)
                break
        return sent_us

    def _read_reply(self) -> _Reply | None:
        """The next answer on the error queue, if there is one."""
        while True:
            try:
                payload, ancillary, _, _ = self._socket.recvmsg(
                    _PAYLOAD.size, _ANCILLARY_BYTES, socket.MSG_ERRQUEUE
                )
            except BlockingIOError:
                return None
            reply = _parse_reply(payload, ancillary)
            if reply is not None:
                return reply

    def _discard_strays(self) -> None:
        """Drop what others send to our port, or the descriptor would stay readable."""
        for _ in range(_STRAYS_AT_ONCE):
            try:
                self._socket.recv(1)
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    return


def probe_routes(
    targets: Iterable[int | str], settings: ProbeSettings | None = None
) -> list[Route]:
    """The routes from here to each target, in their order."""
    wanted = [int(IPv4Address(target)) for target in targets]
    with Prober(RouteProbe, settings) as prober:
        for target in wanted:
            prober.probe(monotonic_us(), target)
        found = {route.target: route for route in run_probers([prober])[0]}
    return [found[target] for target in wanted]


def run_probers(probers: Sequence[Prober[Result]]) -> list[list[Result]]:
    """What each of some probers finds out, when all are done."""
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
    """The time on the clock that never jumps, in microseconds."""
    return time.monotonic_ns() // 1000


def _seconds_to_deadline(probers: Sequence[Prober[Any]]) -> float:
    deadlines = [at_us for prober in probers if (at_us := prober.next_deadline_us) is not None]
    return max(0, min(deadlines) - monotonic_us()) / 1e6


def _open_socket(source_port: int) -> socket.socket:
    """A UDP socket that keeps ICMP errors, with the time each came in."""
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    opened.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
    opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    opened.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
    # The error queue counts against this buffer, and what does not fit is lost.
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
    opened.bind(("", source_port))
    return opened


def _parse_reply(payload: bytes, ancillary: list[tuple[int, int, bytes]]) -> _Reply | None:
    """What an entry of the error queue says, if it is an answer to a probe."""
    said = {(level, kind): data for level, kind, data in ancillary}
    error = said.get((socket.IPPROTO_IP, _IP_RECVERR), b"")
    if len(error) < _EXTENDED_ERROR.size + _OFFENDER.size or len(payload) < _PAYLOAD.size:
        return None
    _, origin, icmp_type, code, _, _ = _EXTENDED_ERROR.unpack_from(error)
    answer = _meaning(icmp_type, code) if origin == _ICMP else None
    if answer is None:
        return None
    _, _, address = _OFFENDER.unpack_from(error, _EXTENDED_ERROR.size)
    received_us = _received_us(said.get((socket.SOL_SOCKET, _SO_TIMESTAMPNS)))
    hops_back = _hops_back(said.get((socket.IPPROTO_IP, socket.IP_TTL)))
    mark = Mark(*_PAYLOAD.unpack(payload))
    return _Reply(mark, int.from_bytes(address), answer, received_us, hops_back)


def _received_us(timestamp: bytes | None) -> int:
    """When a packet came in, by the kernel's clock reading if there is one."""
    if timestamp is None:
        return time.time_ns() // 1000
    seconds, nanoseconds = _TIMESTAMP.unpack(timestamp)
    return int(seconds) * 1_000_000 + int(nanoseconds) // 1000


def _hops_back(ttl: bytes | None) -> int | None:
    """How many hops a packet took, as systems start with a TTL of 64, 128 or 255."""
    if ttl is None:
        return None
    left = _TTL.unpack(ttl)[0]
    return int(next(first for first in (64, 128, 255) if left <= first) - left + 1)


def _meaning(icmp_type: int, code: int) -> Answer | None:
    if icmp_type == _TIME_EXCEEDED:
        return Answer.PASSING
    if icmp_type != _UNREACHABLE or code == _FRAGMENTATION_NEEDED:
        return None
    return Answer.TARGET if code == _PORT_UNREACHABLE else Answer.DEAD_END
