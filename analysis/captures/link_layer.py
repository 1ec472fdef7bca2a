"""The offset and the protocol of the network layer of packets, by link type.

Link types are numbered as in https://www.tcpdump.org/linktypes.html.
"""

from dataclasses import dataclass

import numpy as np

from analysis.captures.encapsulations import (
    CUT,
    DLCI,
    EITHER_IP,
    ETHERNET,
    FAMILY,
    HDLC_TYPE,
    IPV4,
    IPV6,
    LINUX_TYPE,
    LLC,
    NLPID,
    NOT_IP,
    PPP,
    UNKNOWN,
    Finder,
    Found,
    Headers,
    describe,
    ether_types,
    find,
    is_header,
    is_unknown,
    pass_headers,
    snap,
    translate,
)
from analysis.captures.frames import Frames
from analysis.captures.layouts import Flags, Ints
from analysis.captures.problems import UNKNOWN_LINK_TYPE, Problem

# Each BSD has its own number for IPv6; OSI, AppleTalk and IPX never carry IP.
_FAMILIES = {2: IPV4, 7: NOT_IP, 10: IPV6, 16: NOT_IP, 23: NOT_IP, 24: IPV6, 28: IPV6, 30: IPV6}
# IEEE 802.3 frames without LLC are IPX; CAN has two numbers.
_LINUX_TYPES = {1: NOT_IP, 3: ETHERNET, 4: LLC, 12: NOT_IP, 13: NOT_IP}
_PPP_ADDRESS = 0xFF03
_HDLC_ADDRESSES = (0x0F00, 0x8F00)
# Discovery of Cisco, spanning tree, OSI.
_HDLC_TYPES = {0x2000: NOT_IP, 0x4242: NOT_IP, 0xFEFE: NOT_IP}
_UNNUMBERED, _IDENTIFICATION = 0x03, 0xAF
_NLPID_SNAP, _MOST_ADDRESS_BYTES = 0x80, 4
# Signalling, management, OSI.
_NLPIDS = {0x08: NOT_IP, 0x09: NOT_IP, 0x81: NOT_IP, 0x82: NOT_IP, 0x83: NOT_IP}
_NLPIDS |= {0x8E: IPV6, 0xCC: IPV4, 0xCF: PPP}


@dataclass(frozen=True)
class LinkLayer:
    """What follows the link layer of some packets."""

    at: Ints  # its offset; undefined where the packet is cut
    end: Ints  # end of the captured part of the packet
    protocol: Ints  # an EtherType or a code of `encapsulations`
    is_plain: bool  # all packets are IP

    @property
    def is_cut(self) -> Flags:
        """Which packets end within the link layer."""
        is_cut: Flags = self.protocol == CUT
        return is_cut

    @property
    def too_many(self) -> Flags:
        """Which packets have more headers than the reader follows."""
        return np.zeros(len(self.at), np.bool_) if self.is_plain else is_header(self.protocol)

    @property
    def is_unknown(self) -> Flags:
        """Which packets have a captured payload that is not followed and may be IP."""
        if self.is_plain:
            return np.zeros(len(self.at), np.bool_)
        return is_unknown(self.protocol) & (self.at < self.end)

    def describe(self, index: int) -> str:
        """The name of a packet's payload."""
        return describe(int(self.protocol[index]))


def _ethernet(headers: Headers) -> Found:
    return 14, headers.be16(12)


def _raw(headers: Headers) -> Found:
    return 0, np.full(len(headers), EITHER_IP)


def _raw_ipv4(headers: Headers) -> Found:
    return 0, np.full(len(headers), IPV4)


def _raw_ipv6(headers: Headers) -> Found:
    return 0, np.full(len(headers), IPV6)


def _linux_protocol(numbers: Ints) -> Ints:
    """Small numbers are Linux types here, not lengths."""
    others = ether_types(numbers, LINUX_TYPE)
    return numbers if (others == numbers).all() else translate(numbers, _LINUX_TYPES, others)


def _cooked(headers: Headers) -> Found:
    return 16, _linux_protocol(headers.be16(14))


def _cooked_2(headers: Headers) -> Found:
    return 20, _linux_protocol(headers.be16(0))


def _bsd_loopback(headers: Headers) -> Found:
    # The byte order is that of the machine that captured; the numbers are small.
    family = np.maximum(headers.byte(0), headers.byte(3))
    return 4, translate(family, _FAMILIES, family | FAMILY)


def _hdlc(headers: Headers) -> Found:
    """HDLC of Cisco (RFC 1547)."""
    return 4, _hdlc_protocol(headers.be16(2))


def _hdlc_protocol(numbers: Ints) -> Ints:
    return translate(numbers, _HDLC_TYPES, ether_types(numbers, HDLC_TYPE))


def _point_to_point(headers: Headers) -> Found:
    """PPP after an optional address; other addresses are those of HDLC."""
    address = headers.be16(0)
    is_hdlc = np.isin(address, _HDLC_ADDRESSES)
    size = np.select([is_hdlc, address == _PPP_ADDRESS], [4, 2], 0)
    return size, np.where(is_hdlc, _hdlc_protocol(headers.be16(2)), PPP)


def _frame_relay(headers: Headers) -> Found:
    """Frame Relay (RFC 2427), or the encapsulation of Cisco, which has no control field."""
    size = _address_bytes(headers)
    control = headers.byte(size)
    nlpid_bytes, by_nlpid = _behind_nlpid(headers, size + 1)
    is_plain = control == _UNNUMBERED
    without_ip = _is_signalling(headers, size) | (control == _IDENTIFICATION)
    by_type = np.where(without_ip, NOT_IP, _hdlc_protocol(headers.be16(size)))
    protocol = np.where(is_plain, by_nlpid, by_type)
    has_end = headers.byte(size - 1) & 1 == 1
    protocol = np.where(has_end, protocol, headers.byte(0) | DLCI)
    return size + np.where(is_plain, 1 + nlpid_bytes, 2), protocol


def _address_bytes(headers: Headers) -> Ints:
    """The length of the address; its last byte has the lowest bit set."""
    size = np.full(len(headers), _MOST_ADDRESS_BYTES)
    for last in reversed(range(_MOST_ADDRESS_BYTES - 1)):
        size[headers.byte(last) & 1 == 1] = last + 1
    return size


def _is_signalling(headers: Headers, size: Ints) -> Flags:
    """Whether frames are on circuit 0, which is for signalling."""
    upper, lower = headers.byte(0) >> 2, np.where(size == 1, 0, headers.byte(1) >> 4)
    is_signalling: Flags = (upper == 0) & (lower == 0) & (size <= 2)
    return is_signalling


def _behind_nlpid(headers: Headers, offset: Ints) -> tuple[Ints, Ints]:
    """The length of a protocol identifier with padding and SNAP, and the protocol after it."""
    padding = np.where(headers.byte(offset) == 0, 1, 0)
    nlpid = headers.byte(offset + padding)
    has_snap = nlpid == _NLPID_SNAP
    protocol = translate(nlpid, _NLPIDS, nlpid | NLPID)
    protocol = np.where(has_snap, snap(headers, offset + padding + 1), protocol)
    return padding + np.where(has_snap, 6, 1), protocol


_FINDERS: dict[int, Finder] = {
    0: _bsd_loopback,
    1: _ethernet,
    9: _point_to_point,
    12: _raw,
    14: _raw,
    50: _point_to_point,
    101: _raw,
    104: _hdlc,
    107: _frame_relay,
    108: _bsd_loopback,
    113: _cooked,
    228: _raw_ipv4,
    229: _raw_ipv6,
    276: _cooked_2,
}


def link_type_problem(link_type: int, offset: int) -> Problem | None:
    """The problem to report for an interface with an unknown link type."""
    if link_type in _FINDERS:
        return None
    known = ", ".join(map(str, sorted(_FINDERS)))
    text = f"expected one of {known}, found {link_type}; its packets have no fields"
    return Problem(offset, UNKNOWN_LINK_TYPE, text)


def read_link_layer(frames: Frames) -> LinkLayer:
    """Read the link layer of all packets."""
    records = frames.records
    end = records.start + records.captured
    link_types = frames.table.link_types
    everything = Headers(frames.data, records.start, end)
    if records.interface is None or (link_types == link_types[0]).all():
        at, protocol = _find(int(link_types[0]), everything)
    else:
        at, protocol = np.zeros_like(end), np.full(len(end), UNKNOWN)
        of_packet = link_types[records.interface]
        for link_type in np.unique(of_packet).tolist():
            mine = np.flatnonzero(of_packet == link_type)
            headers = Headers(frames.data, records.start[mine], end[mine])
            at[mine], protocol[mine] = _find(link_type, headers)
    # The fastest case: all packets are IP.
    is_plain = bool((protocol == IPV4).all() or (protocol == EITHER_IP).all())
    if not is_plain:
        pass_headers(frames.data, at, end, protocol)
    return LinkLayer(at, end, protocol, is_plain)


def _find(link_type: int, headers: Headers) -> tuple[Ints, Ints]:
    finder = _FINDERS.get(link_type)
    if finder is None:
        return headers.at, np.full(len(headers), UNKNOWN)
    return find(finder, headers)
