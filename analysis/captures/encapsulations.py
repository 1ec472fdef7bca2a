"""Headers between the link layer and IP: tags, labels, and encapsulated frames.

An EtherType, or one of the codes below, identifies what follows a header. An EtherType below
0x0600 is the length of an IEEE 802.3 frame, which begins with a header of IEEE 802.2 (LLC).
See https://www.iana.org/assignments/ieee-802-numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from analysis.captures.layouts import Bytes, Flags, Ints, be16

IPV4, IPV6, MPLS, PPP, LLC, ETHERNET = 0x0800, 0x86DD, 0x8847, 0x880B, 0x8870, 0x6558
_NSH = 0x894F
# The packet is IP of either version; its link type is unknown; it ends within a header; it is of a
# protocol that never carries IP.
EITHER_IP, UNKNOWN, CUT, NOT_IP = -1, -2, -3, -4

# Codes that are not EtherTypes: the upper byte has their kind.
PPP_PROTOCOL, FAMILY, NLPID, DLCI, LINUX_TYPE, HDLC_TYPE = (kind << 24 for kind in range(1, 7))
_SAP, _OUI, _NEXT, _LABELLED, _MACSEC = (kind << 24 for kind in range(7, 12))
_NAMES = {
    0: "EtherType {:#06x}",
    PPP_PROTOCOL: "PPP protocol {:#06x}",
    FAMILY: "address family {}",
    NLPID: "NLPID {:#04x}",
    DLCI: "an unterminated Frame Relay address, first byte {:#04x}",
    LINUX_TYPE: "Linux packet type {:#06x}",
    HDLC_TYPE: "HDLC protocol {:#06x}",
    _SAP: "LLC service access point {:#04x}",
    _OUI: "SNAP organisation {:#08x}",
    _NEXT: "NSH next protocol {}",
    _LABELLED: "an MPLS payload that begins with {:#04x}",
    _MACSEC: "MACsec that is encrypted or of another version (TCI {:#04x})",
}

_LEAST_ETHER_TYPE, _MOST_LENGTH = 0x0600, 1_500
_MOST_HEADERS = 64
_LAST_LABEL = 1
_SNAP, _UNNUMBERED = 0xAAAA, 3
_LLC_IPV4 = 0x0606
_MACSEC_HAS_CHANNEL = 0x20
_MACSEC_UNREADABLE = 0x8C  # of another version, encrypted, changed
_PPP_CONTROL = 0x8000  # protocols from here on configure links
_PPP = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS, 0x0283: MPLS}
_NSH_NEXT = {0: NOT_IP, 1: IPV4, 2: IPV6, 3: ETHERNET, 4: _NSH, 5: MPLS}
# Tests, SNA, spanning tree, VINES, IPX, NetBIOS, network management, OSI, raw IPX.
_SAPS_WITHOUT_IP = (0x00, 0x04, 0x08, 0x0C, 0x42, 0xBC, 0xE0, 0xF0, 0xF4, 0xF8, 0xFC, 0xFE, 0xFF)
_OUIS_OF_ETHER_TYPES = (0x000000, 0x0000F8)
_OUIS_WITHOUT_IP = (0x00000C, 0x080007)  # discovery and trunks of Cisco; AppleTalk
# Ethernet frames behind SNAP (RFC 2427), with their check sequence and without.
_BRIDGED = (0x0080C2_0001, 0x0080C2_0007)
_WITHOUT_IP = (
    *(0x0806, 0x8035, 0x80F3),  # ARP, RARP, AARP
    *(0x6002, 0x6003, 0x6004, 0x809B, 0x8137),  # DEC, AppleTalk, IPX
    *(0x8808, 0x8809, 0x88CC, 0x8902, 0x9000),  # pause, LACP, LLDP, CFM, loopback
    *(0x888E, 0x88C7, 0x8863, 0x893A, 0x890D),  # 802.1X, PPPoE discovery, 1905.1, TDLS
    *(0x88F5, 0x88F6, 0x22EA, 0x22F0, 0x88F7),  # MVRP, MMRP, SRP, AVTP, PTP
    *(0x88FB, 0x8892, 0x88B8, 0x88BA, 0x88E1),  # PRP, PROFINET, GOOSE, sampled values, HomePlug
    *(0x88A2, 0x8906, 0x8914, 0x0842),  # ATA, FCoE, FIP, wake-on-LAN
)


@dataclass(frozen=True, slots=True)
class Headers:
    """Headers of one kind, at offsets in the data."""

    data: Bytes
    at: Ints
    end: Ints  # end of the captured part of each packet

    def __len__(self) -> int:
        return len(self.at)

    def byte(self, offset: int | Ints) -> Ints:
        """The byte at an offset into each header."""
        values: Ints = self.data[self.at + offset].astype(np.int64)
        return values

    def be16(self, offset: int | Ints) -> Ints:
        """The big-endian 16 bits at an offset into each header."""
        return be16(self.data, self.at + offset)


Found = tuple[int | Ints, Ints]  # lengths of headers, and the protocols that follow
Finder = Callable[[Headers], Found]


def translate(numbers: Ints, meanings: dict[int, int], others: Ints) -> Ints:
    """The codes of numbers; numbers without a code get that of `others`."""
    meant = others.copy()
    for number, meaning in meanings.items():
        meant[numbers == number] = meaning
    return meant


def ether_types(numbers: Ints, space: int) -> Ints:
    """Numbers as EtherTypes; those below 0x0600 become codes of `space`."""
    return np.where(numbers < _LEAST_ETHER_TYPE, numbers | space, numbers)


def snap(headers: Headers, offset: int | Ints) -> Ints:
    """The protocol after a SNAP header of 5 bytes at an offset."""
    organisation = headers.byte(offset) << 16 | headers.be16(offset + 1)
    number = headers.be16(offset + 3)
    other = np.where(np.isin(organisation, _OUIS_WITHOUT_IP), NOT_IP, organisation | _OUI)
    other[np.isin(organisation << 16 | number, _BRIDGED)] = ETHERNET
    is_type = np.isin(organisation, _OUIS_OF_ETHER_TYPES)
    return np.where(is_type, ether_types(number, _OUI), other)


def _tag(size: int, headers: Headers) -> Found:
    """A tag of a fixed size that ends with an EtherType."""
    return size, headers.be16(size - 2)


def _label(headers: Headers) -> Found:
    """MPLS labels name no protocol; the IP version after the last label identifies it."""
    first = headers.byte(4)
    version = first >> 4
    payload = np.select([version == 4, version == 6], [IPV4, IPV6], first | _LABELLED)
    payload[headers.at + 4 >= headers.end] = CUT
    return 4, np.where(headers.byte(2) & _LAST_LABEL != 0, payload, MPLS)


def _service_header(headers: Headers) -> Found:
    """NSH (RFC 8300): metadata of type 1 has a fixed size, whatever the length says."""
    kind, size = headers.byte(2), (headers.be16(0) & 0x3F) * 4
    size = np.select([kind == 1, kind == 2], [24, np.maximum(size, 8)], np.maximum(size, 4))
    following = headers.byte(3)
    return size, translate(following, _NSH_NEXT, following | _NEXT)


def _macsec(headers: Headers) -> Found:
    """MACsec (IEEE 802.1AE): payloads that are authenticated but not encrypted are read."""
    tci = headers.byte(0)
    size = np.where(tci & _MACSEC_HAS_CHANNEL != 0, 16, 8)
    return size, np.where(tci & _MACSEC_UNREADABLE != 0, tci | _MACSEC, headers.be16(size - 2))


def _ppp(headers: Headers) -> Found:
    """A PPP protocol number; its first byte may be omitted if it is zero."""
    first = headers.byte(0)
    is_short = first & 1 == 1
    number = np.where(is_short, first, headers.be16(0))
    protocol = translate(number, _PPP, number | PPP_PROTOCOL)
    protocol[number >= _PPP_CONTROL] = NOT_IP
    return np.where(is_short, 1, 2), protocol


def _ppp_over_ethernet(headers: Headers) -> Found:
    return 6, np.full(len(headers), PPP)


def _llc(headers: Headers) -> Found:
    points, is_plain = headers.be16(0), headers.byte(2) == _UNNUMBERED
    target = points >> 8
    other = np.where(np.isin(target, _SAPS_WITHOUT_IP), NOT_IP, target | _SAP)
    has_snap, has_ip = is_plain & (points == _SNAP), is_plain & (points == _LLC_IPV4)
    protocol = np.select([has_snap, has_ip], [snap(headers, 3), IPV4], other)
    return np.where(has_snap, 8, 3), protocol


_FINDERS: list[tuple[Finder, tuple[int, ...]]] = [
    (partial(_tag, 4), (0x8100, 0x88A8, 0x9100, 0x9200)),  # VLAN
    (_label, (MPLS, 0x8848)),
    (_llc, (LLC, *range(_MOST_LENGTH + 1))),
    (_ppp_over_ethernet, (0x8864,)),
    (_ppp, (PPP,)),
    (_service_header, (_NSH,)),
    (_macsec, (0x88E5,)),
    (partial(_tag, 6), (0xF1C1, 0x892F, 0x8926)),  # 802.1CB, HSR, VN-Tag
    (partial(_tag, 8), (0x893F, 0x8909)),  # 802.1BR, Cisco metadata
    (partial(_tag, 14), (ETHERNET,)),
    (partial(_tag, 18), (0x88E7,)),  # 802.1ah: a tag before an Ethernet frame
]
_UNKNOWN_TYPE, _TYPE_WITHOUT_IP, _FIRST_FINDER = 0, 1, 2


def _table_of_roles() -> Bytes:
    """For each EtherType: unknown, never carries IP, or the number of its finder."""
    roles = np.full(1 << 16, _UNKNOWN_TYPE, np.uint8)
    roles[list(_WITHOUT_IP)] = _TYPE_WITHOUT_IP
    for number, (_, ether_types_of_it) in enumerate(_FINDERS, _FIRST_FINDER):
        roles[list(ether_types_of_it)] = number
    return roles


_ROLES = _table_of_roles()


def _roles(protocol: Ints) -> Bytes:
    return np.where(protocol >> 16 == 0, _ROLES[protocol & 0xFFFF], np.uint8(_UNKNOWN_TYPE))


def is_header(protocol: Ints) -> Flags:
    """Whether protocols are headers that the reader follows."""
    return _roles(protocol) >= _FIRST_FINDER


def is_unknown(protocol: Ints) -> Flags:
    """Whether protocols may carry IP and are not followed."""
    is_other = (protocol >= 0) & (protocol != IPV4) & (protocol != IPV6)
    is_unknown: Flags = is_other & (_roles(protocol) == _UNKNOWN_TYPE)
    return is_unknown


def describe(protocol: int) -> str:
    """The name of a protocol that is not followed."""
    return _NAMES[protocol >> 24 << 24].format(protocol & 0xFF_FFFF)


def find(finder: Finder, headers: Headers) -> tuple[Ints, Ints]:
    """The offset after some headers, and the protocol there."""
    size, protocol = finder(headers)
    at = headers.at + size
    protocol[at > headers.end] = CUT
    return at, protocol


def pass_headers(data: Bytes, at: Ints, end: Ints, protocol: Ints) -> None:
    """Skip all headers that the reader follows, in place."""
    which = np.flatnonzero((protocol >= 0) & (protocol != IPV4) & (protocol != IPV6))
    for _ in range(_MOST_HEADERS):
        roles = _roles(protocol[which])
        protocol[which[roles == _TYPE_WITHOUT_IP]] = NOT_IP
        is_followed = roles >= _FIRST_FINDER
        which, roles = which[is_followed], roles[is_followed]
        if not len(which):
            return
        for role in np.flatnonzero(np.bincount(roles)).tolist():
            mine = which[roles == role]
            headers = Headers(data, at[mine], end[mine])
            at[mine], protocol[mine] = find(_FINDERS[role - _FIRST_FINDER][0], headers)
