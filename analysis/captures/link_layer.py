"""Where the network layer of packets begins, and which protocol it is.

Link types are numbered as in https://www.tcpdump.org/linktypes.html. Between the link layer and IP
there may be VLAN tags and MPLS labels, several of each.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.captures.frames import Frames
from analysis.captures.layouts import Bytes, Flags, Ints, be16
from analysis.captures.problems import UNKNOWN_LINK_TYPE, Problem

IPV4, IPV6, EITHER_IP, UNKNOWN, CUT = 0x0800, 0x86DD, -1, -2, -3
MPLS = 0x8847
_MPLS_ANY = (MPLS, 0x8848)
_VLAN = (0x8100, 0x88A8, 0x9100, 0x9200)
_TAGS = (*_VLAN, *_MPLS_ANY)
_TAG_BYTES, _MOST_TAGS = 4, 64
_LAST_LABEL = 1


def has_tag(protocol: Ints) -> Flags:
    """Which protocols are tags."""
    return np.isin(protocol, _TAGS)


def pass_tags(data: Bytes, at: Ints, end: Ints, protocol: Ints) -> None:
    """Go behind tags, in place."""
    # Nothing is quicker than to find that there are none.
    if (protocol == IPV4).all() or (protocol == EITHER_IP).all():
        return
    for _ in range(_MOST_TAGS):
        tagged = np.flatnonzero(has_tag(protocol))
        if not len(tagged):
            return
        cut = at[tagged] + _TAG_BYTES > end[tagged]
        protocol[tagged[cut]] = CUT
        tagged = tagged[~cut]
        is_label = np.isin(protocol[tagged], _MPLS_ANY)
        _pass_vlan(data, at, protocol, tagged[~is_label])
        _pass_label(data, at, end, protocol, tagged[is_label])


def _pass_vlan(data: Bytes, at: Ints, protocol: Ints, which: Ints) -> None:
    protocol[which] = be16(data, at[which] + 2)
    at[which] += _TAG_BYTES


def _pass_label(data: Bytes, at: Ints, end: Ints, protocol: Ints, which: Ints) -> None:
    """Labels do not say what they are put on, so behind the last the IP version tells."""
    is_last = data[at[which] + 2] & _LAST_LABEL != 0
    at[which] += _TAG_BYTES
    last = which[is_last]
    version = data[at[last]] >> 4
    found = np.select([version == 4, version == 6], [IPV4, IPV6], UNKNOWN)
    protocol[last] = np.where(at[last] < end[last], found, CUT)


_BSD_IPV4, _BSD_IPV6 = 2, (10, 24, 28, 30)  # each BSD has a number of its own for IPv6
_PPP_ADDRESS = 0xFF03
_PPP = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS, 0x0283: MPLS}


@dataclass(frozen=True)
class LinkLayer:
    """What follows the link layer of some packets."""

    at: Ints  # where it begins; meaningless where the protocol is UNKNOWN or CUT
    end: Ints  # where what was captured of the packet ends
    protocol: Ints  # an EtherType, EITHER_IP, UNKNOWN or CUT

    @property
    def is_cut(self) -> Flags:
        """Which packets end within the link layer."""
        is_cut: Flags = self.protocol == CUT
        return is_cut

    @property
    def too_many(self) -> Flags:
        """Which packets have more tags than we follow."""
        return has_tag(self.protocol)


Header = tuple[int | Ints, Ints]  # how long it is, and what follows
Finder = Callable[[Bytes, Ints], Header]


def _ethernet(data: Bytes, start: Ints) -> Header:
    return 14, be16(data, start + 12)


def _raw(_: Bytes, start: Ints) -> Header:
    return 0, np.full(len(start), EITHER_IP)


def _raw_ipv4(_: Bytes, start: Ints) -> Header:
    return 0, np.full(len(start), IPV4)


def _raw_ipv6(_: Bytes, start: Ints) -> Header:
    return 0, np.full(len(start), IPV6)


def _cooked(data: Bytes, start: Ints) -> Header:
    return 16, be16(data, start + 14)


def _cooked_2(data: Bytes, start: Ints) -> Header:
    return 20, be16(data, start)


def _bsd_loopback(data: Bytes, start: Ints) -> Header:
    # The byte order is that of the machine that captured; the numbers are small.
    family = np.maximum(data[start], data[start + 3]).astype(np.int64)
    protocol = np.full(len(start), UNKNOWN)
    protocol[family == _BSD_IPV4] = IPV4
    protocol[np.isin(family, _BSD_IPV6)] = IPV6
    return 4, protocol


def _point_to_point(data: Bytes, start: Ints) -> Header:
    """PPP: an address that may be left out, and a protocol whose first zero may be left out."""
    address = np.where(be16(data, start) == _PPP_ADDRESS, 2, 0)
    first = data[start + address].astype(np.int64)
    is_short = first & 1 == 1
    number = np.where(is_short, first, be16(data, start + address))
    protocol = np.full(len(start), UNKNOWN)
    for code, meaning in _PPP.items():
        protocol[number == code] = meaning
    return address + np.where(is_short, 1, 2), protocol


_FINDERS: dict[int, Finder] = {
    0: _bsd_loopback,
    1: _ethernet,
    9: _point_to_point,
    12: _raw,
    14: _raw,
    50: _point_to_point,
    101: _raw,
    108: _bsd_loopback,
    113: _cooked,
    228: _raw_ipv4,
    229: _raw_ipv6,
    276: _cooked_2,
}


def link_type_problem(link_type: int, offset: int) -> Problem | None:
    """What to report about an interface of a link type that we cannot look into."""
    if link_type in _FINDERS:
        return None
    known = ", ".join(map(str, sorted(_FINDERS)))
    text = f"expected one of {known}, found {link_type}; its packets have no fields"
    return Problem(offset, UNKNOWN_LINK_TYPE, text)


def read_link_layer(frames: Frames) -> LinkLayer:
    """Look behind the link layer of all packets."""
    records = frames.records
    end = records.start + records.captured
    link_types = frames.table.link_types
    if records.interface is None or (link_types == link_types[0]).all():
        at, protocol = _find(int(link_types[0]), frames.data, records.start, end)
    else:
        at, protocol = np.zeros_like(end), np.full(len(end), UNKNOWN)
        of_packet = link_types[records.interface]
        for link_type in np.unique(of_packet).tolist():
            mine = np.flatnonzero(of_packet == link_type)
            at[mine], protocol[mine] = _find(link_type, frames.data, records.start[mine], end[mine])
    pass_tags(frames.data, at, end, protocol)
    return LinkLayer(at, end, protocol)


def _find(link_type: int, data: Bytes, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    finder = _FINDERS.get(link_type)
    if finder is None:
        return start, np.full(len(start), UNKNOWN)
    header_bytes, protocol = finder(data, start)
    at = start + header_bytes
    protocol[at > end] = CUT
    return at, protocol
