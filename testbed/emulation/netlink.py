"""The few rtnetlink requests that a network needs, many in one system call.

`ip -batch` would do, at a quarter of the speed: a large network has millions of routes, and
here they go from an array to the kernel as they are.
"""

import errno
import os
import socket
import struct

import numpy as np
from numpy.typing import NDArray

_RTM_NEWLINK, _RTM_NEWADDR, _RTM_NEWROUTE, _RTM_DELROUTE = 16, 20, 24, 25
_NLM_F_REQUEST, _NLM_F_ACK = 0x1, 0x4
_NLM_F_REPLACE, _NLM_F_CREATE = 0x100, 0x400
_NLMSG_ERROR = 2
_IFA_LOCAL = 2
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 18, 28
_IFLA_INFO_KIND, _IFLA_INFO_DATA, _VETH_INFO_PEER = 1, 2, 1
_IFF_UP, _IFF_NOARP = 0x1, 0x80
_RT_TABLE_MAIN, _RTPROT_STATIC, _RT_SCOPE_LINK, _RTN_UNICAST = 254, 4, 253, 1
_RTA_DST, _RTA_OIF = 1, 4
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
        """A virtual cable from here into another namespace, up at both ends.

        Both ends share one hardware address and ask nobody for another: what one sends, the
        other takes as meant for itself, so that no ARP packet ever crosses the link.
        """
        flags = _IFF_UP | _IFF_NOARP
        there = _link_header(0, flags, flags) + _named(peer, mac)
        there += _attribute(_IFLA_NET_NS_FD, struct.pack("=I", peer_namespace))
        kind = _attribute(_IFLA_INFO_KIND, b"veth")
        data = _attribute(_IFLA_INFO_DATA, _attribute(_VETH_INFO_PEER, there))
        here = _link_header(0, flags, flags) + _named(name, mac)
        self._request(_RTM_NEWLINK, _NLM_F_CREATE, here + _attribute(_IFLA_LINKINFO, kind + data))

    def set_routes(
        self, networks: NDArray[np.uint32], prefix: int, interfaces: NDArray[np.uint32]
    ) -> None:
        """Send packets for each network out of the interface at its place, from now on."""
        flags = _NLM_F_REQUEST | _NLM_F_CREATE | _NLM_F_REPLACE
        self._send(_routes(_RTM_NEWROUTE, flags, networks, prefix, interfaces))

    def remove_routes(self, networks: NDArray[np.uint32], prefix: int) -> None:
        """Take away the routes for these networks that are still there.

        The kernel has removed those itself whose interface went down.
        """
        any_interface = np.zeros_like(networks)
        messages = _routes(_RTM_DELROUTE, _NLM_F_REQUEST, networks, prefix, any_interface)
        self._send(messages, tolerated=errno.ESRCH)

    def _request(self, kind: int, flags: int, body: bytes) -> None:
        flags |= _NLM_F_REQUEST | _NLM_F_ACK
        self._socket.send(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body)
        self._check_answers()

    def _send(self, messages: NDArray[np.void], tolerated: int = 0) -> None:
        for start in range(0, len(messages), _ROUTES_AT_ONCE):
            self._socket.send(messages[start : start + _ROUTES_AT_ONCE].tobytes())
            self._check_answers(tolerated)

    def _check_answers(self, tolerated: int = 0) -> None:
        """Raise the first error among the answers, which are all there when send returns."""
        while True:
            try:
                answer = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
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


def _named(name: str, mac: bytes) -> bytes:
    return _attribute(_IFLA_IFNAME, name.encode() + b"\0") + _attribute(_IFLA_ADDRESS, mac)


def _attribute(kind: int, value: bytes) -> bytes:
    padding = b"\0" * (-len(value) % 4)
    return struct.pack("=HH", 4 + len(value), kind) + value + padding
