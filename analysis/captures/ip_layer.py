"""The IPv4 and IPv6 headers of packets, and the limits of their payloads."""

from dataclasses import dataclass, replace
from ipaddress import IPv6Address

import numpy as np
import pyarrow as pa

from analysis.captures.encapsulations import EITHER_IP, IPV4, IPV6
from analysis.captures.layouts import (
    IPV4_BYTES,
    IPV4_LAYOUT,
    IPV6_BYTES,
    IPV6_EXTENSION,
    IPV6_LAYOUT,
    OFFSET_BITS,
    Bytes,
    Flags,
    Ints,
    Rows,
    Values,
    gather,
)
from analysis.captures.link_layer import LinkLayer

_PLAIN = 0x45  # version 4, a header of 5 words: no options
_MORE_BIT = 0x2000
_FRAGMENT, _AUTHENTICATION = 44, 51
# Hop-by-hop, routing, destination, mobility, host identity, shim6: all have one format.
_COMMON = (0, 43, 60, 135, 139, 140)
_PASSED = (*_COMMON, _FRAGMENT, _AUTHENTICATION)
_MOST_EXTENSIONS = 32


@dataclass(frozen=True)
class Ipv6:
    """The IPv6 packets among some packets."""

    index: Ints  # their numbers among the packets
    source: Values
    target: Values
    ttl: Ints
    protocol: Ints  # after all extension headers
    id: Ints
    fragment_offset: Ints
    more_fragments: Flags
    is_fragment: Flags
    carried_at: Ints
    carried_end: Ints
    is_cut: Flags  # the packet ends within the extension headers
    too_many: Flags


def read_ipv6(data: Bytes, index: Ints, at: Ints, end: Ints) -> Ipv6:
    """Read the headers of packets whose fixed header was captured completely."""
    rows = gather(data, at, IPV6_LAYOUT)
    payload = rows["payload"].astype(np.int64)
    behind = at + IPV6_BYTES
    # Length 0: a jumbogram, or a packet captured before the network card segmented it.
    carried_end = np.where(payload == 0, end, np.minimum(behind + payload, end))
    count = len(index)
    found = Ipv6(
        index,
        rows["source"],
        rows["target"],
        rows["ttl"].astype(np.int64),
        rows["next"].astype(np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        behind,
        carried_end,
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
    )
    _pass_extensions(data, found)
    return found


def _pass_extensions(data: Bytes, found: Ipv6) -> None:
    """Skip extension headers, in place; a fragment other than the first has no further header."""
    for _ in range(_MOST_EXTENSIONS):
        goes_on = np.isin(found.protocol, _PASSED) & ~found.is_cut & (found.fragment_offset == 0)
        which = np.flatnonzero(goes_on)
        if not len(which):
            return
        cut = found.carried_at[which] + IPV6_EXTENSION.itemsize > found.carried_end[which]
        found.is_cut[which[cut]] = True
        which = which[~cut]
        rows = gather(data, found.carried_at[which], IPV6_EXTENSION)
        kind = found.protocol[which]
        _note_fragments(found, which[kind == _FRAGMENT], rows[kind == _FRAGMENT])
        length = (rows["length"].astype(np.int64) + 1) * 8
        length[kind == _FRAGMENT] = 8
        authentication = kind == _AUTHENTICATION
        length[authentication] = (rows["length"][authentication].astype(np.int64) + 2) * 4
        found.carried_at[which] += length
        found.protocol[which] = rows["next"]
        # Keeps all offsets near the data.
        beyond = found.carried_at[which] > found.carried_end[which]
        found.is_cut[which[beyond]] = True
        found.carried_at[which[beyond]] = found.carried_end[which[beyond]]
    found.too_many[np.isin(found.protocol, _PASSED) & ~found.is_cut] = True


def _note_fragments(found: Ipv6, which: Ints, rows: Values) -> None:
    found.is_fragment[which] = True
    found.fragment_offset[which] = rows["fragment"] & 0xFFF8
    found.more_fragments[which] = rows["fragment"] & 1
    found.id[which] = rows["id"]


@dataclass(frozen=True)
class IpLayer:
    """The network layer of some packets; a value counts only where its flag is set."""

    version: Values
    has_version: Flags
    is_v4: Flags  # has an IPv4 header, with `source` and `target`
    has_header: Flags  # has a header of either version
    source: Values
    target: Values
    ttl: Values
    protocol: Values
    id: Values
    fragment_offset: Values  # in bytes
    more_fragments: Flags
    has_fragment: Flags  # in every IPv4 header, and in an extension header of IPv6
    carried_at: Ints  # an offset in the data, whatever the flags are
    carried_end: Ints
    is_first: Flags  # the payload begins in this packet
    carried: Rows | None  # the bytes at `carried_at`, if they were read already
    ipv6: Ipv6 | None
    bad_version: Flags
    bad_length: Flags
    is_cut: Flags  # the packet ends within a header
    too_many: Flags  # more headers than the reader follows


def read_ip_layer(data: Bytes, link: LinkLayer) -> IpLayer:
    """Read the IP headers of all packets that have one."""
    is_ip = (link.protocol == IPV4) | (link.protocol == IPV6) | (link.protocol == EITHER_IP)
    at = np.where(is_ip, link.at, 0)
    rows = gather(data, at, IPV4_LAYOUT)
    has_byte = is_ip & (at < link.end)
    version = rows["version"] >> 4
    v4 = has_byte & (version == 4) & (link.protocol != IPV6)
    v6 = has_byte & (version == 6) & (link.protocol != IPV4)
    layer = _read_ipv4(rows, at, link.end, v4)
    layer = replace(
        layer,
        version=version,
        has_version=v4 | v6,
        bad_version=has_byte & ~(v4 | v6),
        is_cut=layer.is_cut | (is_ip & ~has_byte),
    )
    return _with_ipv6(layer, data, at, link.end, v6) if v6.any() else layer


def _read_ipv4(rows: Rows, at: Ints, end: Ints, v4: Flags) -> IpLayer:
    is_plain = bool((rows["version"] == _PLAIN).all())
    fits = v4 & (at + IPV4_BYTES <= end)
    header = IPV4_BYTES if is_plain else (rows["version"] & 0x0F).astype(np.int64) * 4
    is_v4 = fits & (header >= IPV4_BYTES)
    total = rows["total"].astype(np.int64)
    # Length 0: a packet captured before the network card segmented it.
    carried_end = np.where(total == 0, end, np.minimum(at + total, end))
    bad_total = is_v4 & (total != 0) & (total < header)
    fragment = rows["fragment"].astype(np.int64)
    offset = (fragment & OFFSET_BITS) << 3
    return IpLayer(
        version=rows["version"],
        has_version=v4,
        is_v4=is_v4,
        has_header=is_v4,
        source=rows["source"],
        target=rows["target"],
        ttl=rows["ttl"],
        protocol=rows["protocol"],
        id=rows["id"],
        fragment_offset=offset,
        more_fragments=(fragment & _MORE_BIT) != 0,
        has_fragment=is_v4,
        carried_at=np.where(is_v4, at + header, 0),
        carried_end=carried_end,
        is_first=is_v4 & (offset == 0) & ~bad_total,
        # Packets without IPv4 have no fields to read.
        carried=rows["carried"] if is_plain else None,
        ipv6=None,
        bad_version=~v4,
        bad_length=bad_total | (fits & ~is_v4),
        is_cut=v4 & ~fits,
        too_many=np.zeros(len(at), np.bool_),
    )


def _with_ipv6(layer: IpLayer, data: Bytes, at: Ints, end: Ints, v6: Flags) -> IpLayer:
    """Add the fields of IPv6 headers for packets without an IPv4 header."""
    index = np.flatnonzero(v6 & (at + IPV6_BYTES <= end))
    found = read_ipv6(data, index, at[index], end[index])
    is_cut = layer.is_cut | v6
    is_cut[index] = found.is_cut
    has_all = ~found.is_cut & ~found.too_many
    return replace(
        layer,
        has_header=_put(layer.has_header, index, np.True_),
        ttl=_put(layer.ttl, index, found.ttl),
        protocol=_put(layer.protocol, index, found.protocol),
        id=_put(layer.id, index, found.id),
        fragment_offset=_put(layer.fragment_offset, index, found.fragment_offset),
        more_fragments=_put(layer.more_fragments, index, found.more_fragments),
        has_fragment=_put(layer.has_fragment, index, found.is_fragment),
        carried_at=_put(layer.carried_at, index, found.carried_at),
        carried_end=_put(layer.carried_end, index, found.carried_end),
        is_first=_put(layer.is_first, index, has_all & (found.fragment_offset == 0)),
        carried=None,
        ipv6=found,
        is_cut=is_cut,
        too_many=_put(layer.too_many, index, found.too_many),
    )


def _put(values: Values, index: Ints, found: Values | np.bool_) -> Values:
    wide = values.copy() if values.dtype == np.bool_ else values.astype(np.int64)
    wide[index] = found
    return wide


def ipv6_texts(addresses: Values) -> pa.Array:
    """The text of each address; a capture has many packets and few addresses."""
    # As pairs of numbers: NumPy cannot sort 16 plain bytes.
    halves = np.ascontiguousarray(addresses).view([("upper", ">u8"), ("lower", ">u8")])
    different, index = np.unique(halves, return_inverse=True)
    texts = [str(IPv6Address(address.tobytes())) for address in different]
    return pa.array(texts, pa.string()).take(pa.array(index.reshape(-1)))
