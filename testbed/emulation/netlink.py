"""The rtnetlink requests of a network, many in one system call.

`ip -batch` has a quarter of the speed: a large network has millions of routes, and
here they are sent to the kernel directly from an array.
"""

import errno
import fcntl
import os
import socket
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RTM_NEWLINK, _RTM_NEWADDR, _RTM_NEWROUTE, _RTM_DELROUTE = 16, 20, 24, 25
_RTM_NEWQDISC, _RTM_DELQDISC, _RTM_GETQDISC = 36, 37, 38
_NLM_F_REQUEST, _NLM_F_ACK, _NLM_F_DUMP = 0x1, 0x4, 0x300
_NLM_F_REPLACE, _NLM_F_CREATE = 0x100, 0x400
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_IFA_LOCAL = 2
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 18, 28
_IFLA_NUM_TX_QUEUES, _IFLA_NUM_RX_QUEUES, _IFLA_GSO_MAX_SEGS = 31, 32, 40
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFF_UP, _IFF_NOARP = 0x1, 0x80
_RT_TABLE_MAIN, _RTPROT_STATIC, _RT_SCOPE_LINK, _RTN_UNICAST = 254, 4, 253, 1
_RTA_DST, _RTA_OIF = 1, 4
_TCA_KIND, _TCA_OPTIONS, _TCA_STATS2 = 1, 2, 7
_TCA_NETEM_RATE, _TCA_NETEM_RATE64 = 6, 8
_TCA_NETEM_LATENCY64, _TCA_NETEM_PRNG_SEED = 10, 14
_TCA_STATS_BASIC, _TCA_STATS_QUEUE, _TCA_STATS_PKT64 = 1, 3, 8
_TC_ROOT, _TC_FIRST, _TC_BELOW_FIRST = 0xFFFFFFFF, 0x10000, 0x10001
_TC_SECOND = 0x20000
_SIOCETHTOOL, _ETHTOOL_STXCSUM = 0x8946, 0x17
_ETHERNET_HEADER_BYTES = 14
_UINT32_MAX = 0xFFFFFFFF
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
_BUFFER_BYTES = 1 << 22
_ROUTES_AT_ONCE = 2_000

# nlmsghdr, rtmsg, and the attributes destination and outgoing interface.
_ROUTE = np.dtype(
    [
        ("length", "<u4"), ("type", "<u2"), ("flags", "<u2"), ("sequence", "<u4"), ("port", "<u4"),
        ("family", "u1"), ("prefix", "u1"), ("source_prefix", "u1"), ("tos", "u1"),
        ("table", "u1"), ("protocol", "u1"), ("scope", "u1"), ("kind", "u1"), ("rt_flags", "<u4"),
        ("dst_length", "<u2"), ("dst_type", "<u2"), ("dst", ">u4"),
        ("oif_length", "<u2"), ("oif_type", "<u2"), ("oif", "<u4"),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Netem:
    """One of the kernel's netem queues: it loses, delays and spaces packets, at most `limit`.

    `loss` is a share of 2^32 - 1; without a rate, `bytes_per_s` is 0.
    """

    delay_ns: int
    loss: int
    limit: int
    bytes_per_s: int = 0


@dataclass(frozen=True, slots=True)
class NetemState:
    """A netem queue as the kernel reports it; a second one of an interface is below its first."""

    interface: int
    is_first: bool
    settings: Netem
    forwarded: int
    dropped: int


class Netlink:
    """A netlink socket in the namespace where it was opened."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        for option in (_SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
            self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)

    def __enter__(self) -> "Netlink":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def add_address(self, interface: int, address: str) -> None:
        """Give an interface a host address."""
        body = struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, interface)
        body += _attribute(_IFA_LOCAL, socket.inet_aton(address))
        self._request(_RTM_NEWADDR, _NLM_F_CREATE, body)

    def set_up(self, interface: int, up: bool) -> None:
        """Switch an interface on or off."""
        self._request(_RTM_NEWLINK, 0, _link_header(interface, _IFF_UP if up else 0, _IFF_UP))

    def create_veth(self, name: str, peer: str, peer_namespace: int, mac: bytes) -> None:
        """A veth pair from this namespace into another; both ends are switched off.

        Both ends have the same hardware address, and no ARP: each accepts what the other
        sends, and no ARP packet crosses the link.
        """
        there = _link_header(0, _IFF_NOARP, _IFF_NOARP) + _cable_end(peer, mac)
        there += _attribute(_IFLA_NET_NS_FD, struct.pack("=I", peer_namespace))
        kind = _attribute(_IFLA_INFO_KIND, b"veth")
        data = _attribute(_IFLA_INFO_DATA, _attribute(_VETH_INFO_PEER, there))
        here = _link_header(0, _IFF_NOARP, _IFF_NOARP) + _cable_end(name, mac)
        self._request(_RTM_NEWLINK, _NLM_F_CREATE, here + _attribute(_IFLA_LINKINFO, kind + data))

    def set_netem(
        self, interface: int, first: Netem, second: Netem | None = None, seed: int = 0
    ) -> None:
        """Put one or two netem queues on packets that leave by an interface.

        Existing queues are changed in place, and keep their packets and counts.
        """
        flags = _NLM_F_CREATE | _NLM_F_REPLACE
        header = _queue_header(interface, _TC_FIRST, _TC_ROOT)
        self._request(_RTM_NEWQDISC, flags, header + _netem(first, seed))
        header = _queue_header(interface, _TC_SECOND, _TC_BELOW_FIRST)
        if second is not None:
            self._request(_RTM_NEWQDISC, flags, header + _netem(second, seed))
        else:
            self._request(_RTM_DELQDISC, 0, header, tolerated=errno.ENOENT)

    def netem_states(self) -> Iterator[NetemState]:
        """All netem queues of this namespace."""
        for message in self._dump(_RTM_GETQDISC, _queue_header(0, 0, 0)):
            attributes = _attributes(message[20:])
            if attributes[_TCA_KIND] == b"netem\0":
                interface, _, parent = struct.unpack_from("=4xiII", message)
                yield _netem_state(interface, parent == _TC_ROOT, attributes)

    def set_routes(
        self, networks: NDArray[np.uint32], prefix: int, interfaces: NDArray[np.uint32]
    ) -> None:
        """Set the outgoing interface of the route to each network."""
        flags = _NLM_F_REQUEST | _NLM_F_CREATE | _NLM_F_REPLACE
        self._send(_routes(_RTM_NEWROUTE, flags, networks, prefix, interfaces))

    def remove_routes(self, networks: NDArray[np.uint32], prefix: int) -> None:
        """Remove the existing routes for these networks.

        The kernel removes the routes of an interface that goes down.
        """
        any_interface = np.zeros_like(networks)
        messages = _routes(_RTM_DELROUTE, _NLM_F_REQUEST, networks, prefix, any_interface)
        self._send(messages, tolerated=errno.ESRCH)

    def _request(self, kind: int, flags: int, body: bytes, tolerated: int = 0) -> None:
        flags |= _NLM_F_REQUEST | _NLM_F_ACK
        self._socket.send(_message(kind, flags, body))
        self._check_answers(tolerated)

    def _dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """The bodies of all messages of a kind from the kernel."""
        self._socket.send(_message(kind, _NLM_F_REQUEST | _NLM_F_DUMP, body))
        while True:
            answer = self._socket.recv(1 << 16)
            while answer:
                length, answer_kind = struct.unpack_from("=IH", answer)
                if answer_kind == _NLMSG_DONE:
                    return
                if answer_kind == _NLMSG_ERROR:
                    _check_status(answer)
                yield answer[16:length]
                answer = answer[length:]

    def _send(self, messages: NDArray[np.void], tolerated: int = 0) -> None:
        for start in range(0, len(messages), _ROUTES_AT_ONCE):
            self._socket.send(messages[start : start + _ROUTES_AT_ONCE].tobytes())
            self._check_answers(tolerated)

    def _check_answers(self, tolerated: int = 0) -> None:
        """Raise the first error among the answers, which are complete when send returns."""
        while True:
            try:
                answer = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            _check_status(answer, tolerated)


def without_offload(interface: str) -> None:
    """Turn offloading off, so that packets are complete when they enter an interface."""
    command = array("I", [_ETHTOOL_STXCSUM, 0])
    request = struct.pack("16sQ16x", interface.encode(), command.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCETHTOOL, request)


def _check_status(answer: bytes, tolerated: int = 0) -> None:
    _, kind, _, _, _, status = struct.unpack_from("=IHHIIi", answer)
    if kind == _NLMSG_ERROR and -status not in (0, tolerated):
        raise OSError(-status, f"netlink: {os.strerror(-status)}")


def _routes(
    kind: int,
    flags: int,
    networks: NDArray[np.uint32],
    prefix: int,
    interfaces: NDArray[np.uint32],
) -> NDArray[np.void]:
    messages = np.zeros(len(networks), dtype=_ROUTE)
    constants = {
        "length": _ROUTE.itemsize, "type": kind, "flags": flags, "family": socket.AF_INET,
        "prefix": prefix, "table": _RT_TABLE_MAIN, "protocol": _RTPROT_STATIC,
        "scope": _RT_SCOPE_LINK, "kind": _RTN_UNICAST, "dst_length": 8, "dst_type": _RTA_DST,
        "oif_length": 8, "oif_type": _RTA_OIF,
    }  # fmt: skip
    for field, value in constants.items():
        messages[field] = value
    messages["dst"] = networks
    messages["oif"] = interfaces
    return messages


def _link_header(interface: int, flags: int, changed_flags: int) -> bytes:
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, interface, flags, changed_flags)


def _cable_end(name: str, mac: bytes) -> bytes:
    """One queue is enough for a link, and no packet is larger than its MTU."""
    one = struct.pack("=I", 1)
    return (
        _attribute(_IFLA_IFNAME, name.encode() + b"\0")
        + _attribute(_IFLA_ADDRESS, mac)
        + _attribute(_IFLA_NUM_TX_QUEUES, one)
        + _attribute(_IFLA_NUM_RX_QUEUES, one)
        + _attribute(_IFLA_GSO_MAX_SEGS, one)
    )


def _queue_header(interface: int, handle: int, parent: int) -> bytes:
    return struct.pack("=BxxxiIII", socket.AF_UNSPEC, interface, handle, parent, 0)


def _netem(settings: Netem, seed: int) -> bytes:
    rate = settings.bytes_per_s
    options = struct.pack("=6I", 0, settings.limit, settings.loss, 0, 0, 0)
    options += _attribute(_TCA_NETEM_LATENCY64, struct.pack("=q", settings.delay_ns))
    # Kernels before 6.6 draw losses without a seed, and ignore it.
    options += _attribute(_TCA_NETEM_PRNG_SEED, struct.pack("=Q", seed))
    options += _attribute(_TCA_NETEM_RATE64, struct.pack("=Q", rate))
    options += _attribute(
        _TCA_NETEM_RATE, struct.pack("=IiIi", min(rate, _UINT32_MAX), -_ETHERNET_HEADER_BYTES, 0, 0)
    )
    return _attribute(_TCA_KIND, b"netem\0") + _attribute(_TCA_OPTIONS, options)


def _netem_state(interface: int, is_first: bool, attributes: dict[int, bytes]) -> NetemState:
    options = attributes[_TCA_OPTIONS]
    _, limit, loss = struct.unpack_from("=III", options)
    details = _attributes(options[24:])
    (delay_ns,) = struct.unpack("=q", details[_TCA_NETEM_LATENCY64])
    (rate,) = struct.unpack_from("=I", details[_TCA_NETEM_RATE])
    if _TCA_NETEM_RATE64 in details:
        (rate,) = struct.unpack("=Q", details[_TCA_NETEM_RATE64])
    counts = _attributes(attributes[_TCA_STATS2])
    (forwarded,) = struct.unpack_from("=8xI", counts[_TCA_STATS_BASIC])
    if _TCA_STATS_PKT64 in counts:
        (forwarded,) = struct.unpack("=Q", counts[_TCA_STATS_PKT64])
    (dropped,) = struct.unpack_from("=8xI", counts[_TCA_STATS_QUEUE])
    settings = Netem(delay_ns, loss, limit, rate)
    return NetemState(interface, is_first, settings, forwarded, dropped)


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body


def _attribute(kind: int, value: bytes) -> bytes:
    padding = b"\0" * (-len(value) % 4)
    return struct.pack("=HH", 4 + len(value), kind) + value + padding


def _attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3 :]
    return found
