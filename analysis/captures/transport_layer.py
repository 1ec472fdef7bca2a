"""The payload of IP packets: ports, ICMP with the packet it quotes, and our own header."""

from dataclasses import dataclass

import numpy as np

from analysis.captures.ip_layer import IpLayer
from analysis.captures.layouts import (
    ICMP_BYTES,
    IPV4_BYTES,
    IPV4_LAYOUT,
    OFFSET_BITS,
    OWN_BYTES,
    OWN_MAGIC,
    OWN_PORT,
    OWN_VERSION,
    TRANSPORT,
    UDP_BYTES,
    Bytes,
    Flags,
    Ints,
    Rows,
    gather,
)

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
# Unreachable, quench, redirect, time exceeded, bad parameter: they quote the packet.
_ICMP_ERRORS = (3, 4, 5, 11, 12)


@dataclass(frozen=True)
class TransportLayer:
    """The transport layer of some packets; a value of `rows` is valid where its flag is set."""

    rows: Rows
    has_ports: Flags
    has_udp_length: Flags
    has_icmp: Flags
    is_own: Flags  # has our header in the current version
    is_foreign: Flags  # has our magic number and another version
    is_cut: Flags  # the packet ends within a header


@dataclass(frozen=True)
class Quoted:
    """The IPv4 headers that ICMP errors quote; a value is valid where its flag is set."""

    rows: Rows
    has_header: Flags
    ports: Rows
    has_ports: Flags


def read_transport_layer(data: Bytes, ip: IpLayer) -> TransportLayer:
    """Read the payloads of IP packets."""
    rows = ip.carried if ip.carried is not None else gather(data, ip.carried_at, TRANSPORT)
    length = np.where(ip.is_first, ip.carried_end - ip.carried_at, 0)
    protocol = ip.protocol
    is_udp = ip.is_first & (protocol == UDP)
    has_ports = is_udp | (ip.is_first & (protocol == TCP))
    is_icmp = ip.is_first & ~has_ports
    if is_icmp.any():
        is_icmp &= np.where(ip.is_v4, protocol == ICMP, protocol == ICMPV6)
    is_cut = (has_ports & (length < UDP_BYTES)) | (is_icmp & (length < 2))
    is_marked = (
        is_udp
        & (length >= UDP_BYTES + OWN_BYTES)
        & (rows["magic"] == OWN_MAGIC)
        & ((rows["target_port"] == OWN_PORT) | (rows["source_port"] == OWN_PORT))
    )
    is_own = is_marked & (rows["version"] == OWN_VERSION)
    return TransportLayer(
        rows=rows,
        has_ports=has_ports & (length >= 4),
        has_udp_length=is_udp & (length >= 6),
        has_icmp=is_icmp & (length >= 2),
        is_own=is_own,
        is_foreign=is_marked & ~is_own,
        is_cut=is_cut,
    )


def read_quoted(data: Bytes, ip: IpLayer, transport: TransportLayer) -> Quoted | None:
    """The headers that ICMP errors quote, or None if there are none."""
    kind = transport.rows["icmp_type"]
    is_error = transport.has_icmp & ip.is_v4 & np.isin(kind, _ICMP_ERRORS)
    if not is_error.any():
        return None
    at = np.where(is_error, ip.carried_at + ICMP_BYTES, 0)
    fits = is_error & (at + IPV4_BYTES <= ip.carried_end)
    at = np.where(fits, at, 0)
    rows = gather(data, at, IPV4_LAYOUT)
    header = (rows["version"] & 0x0F).astype(np.int64) * 4
    has_header = fits & (rows["version"] >> 4 == 4) & (header >= IPV4_BYTES)
    ports_at = np.where(has_header, at + header, 0)
    is_first = (rows["fragment"] & OFFSET_BITS) == 0
    carries_ports = (rows["protocol"] == UDP) | (rows["protocol"] == TCP)
    has_ports = has_header & is_first & carries_ports & (ports_at + 4 <= ip.carried_end)
    return Quoted(rows, has_header, _ports(data, np.where(has_ports, ports_at, 0)), has_ports)


def _ports(data: Bytes, at: Ints) -> Rows:
    return gather(data, at, TRANSPORT)
