"""What can stand between the link layer and IP: VLAN tags and MPLS labels, several of each."""

import numpy as np

from analysis.captures.arrays import Bytes, Flags, Ints, be16

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
