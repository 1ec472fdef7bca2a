"""The IP headers of packets, of both versions, and where what they carry begins and ends."""

from dataclasses import dataclass, replace

import numpy as np

from analysis.captures.arrays import Bytes, Flags, Ints, Rows, Values, gather, layout
from analysis.captures.ipv6 import HEADER_BYTES as IPV6_BYTES
from analysis.captures.ipv6 import Ipv6, read_ipv6
from analysis.captures.link_layer import LinkLayer
from analysis.captures.link_tags import EITHER_IP, IPV4, IPV6
from analysis.captures.transport_layouts import TRANSPORT

IPV4_BYTES = 20
_PLAIN = 0x45  # version 4, a header of 5 words: no options
OFFSET_BITS, _MORE_BIT = 0x1FFF, 0x2000
IPV4_LAYOUT = layout(
    IPV4_BYTES + TRANSPORT.itemsize,
    version=("u1", 0),
    total=(">u2", 2),
    id=(">u2", 4),
    fragment=(">u2", 6),
    ttl=("u1", 8),
    protocol=("u1", 9),
    source=(">u4", 12),
    target=(">u4", 16),
    # What follows a header without options, which is nearly every header.
    carried=(TRANSPORT, IPV4_BYTES),
)


@dataclass(frozen=True)
class IpLayer:
    """The network layer of some packets; a value counts only where its flag is set."""

    version: Values
    has_version: Flags
    is_v4: Flags  # has an IPv4 header, which `source` and `target` are from
    has_header: Flags  # has a header of either version
    source: Values
    target: Values
    ttl: Values
    protocol: Values
    id: Values
    fragment_offset: Values  # in bytes
    more_fragments: Flags
    has_fragment: Flags  # every IPv4 header says so, and IPv6 in an extension header
    carried_at: Ints  # a place in the data, whatever the flags
    carried_end: Ints
    is_first: Flags  # what it carries begins in this packet
    carried: Rows | None  # what is at `carried_at`, if that was read already
    ipv6: Ipv6 | None
    bad_version: Flags
    bad_length: Flags
    is_cut: Flags  # ends within a header
    too_many: Flags  # more headers than we follow


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
    # No length means a packet caught before the network card cut it up.
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
        # Where nothing is IPv4, whatever lies there is not looked at either.
        carried=rows["carried"] if is_plain else None,
        ipv6=None,
        bad_version=~v4,
        bad_length=bad_total | (fits & ~is_v4),
        is_cut=v4 & ~fits,
        too_many=np.zeros(len(at), np.bool_),
    )


def _with_ipv6(layer: IpLayer, data: Bytes, at: Ints, end: Ints, v6: Flags) -> IpLayer:
    """Put the fields of IPv6 headers where there is no IPv4 header."""
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
