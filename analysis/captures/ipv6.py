"""IPv6 headers and the extension headers behind them, for the few packets that have them."""

from dataclasses import dataclass

import numpy as np

from analysis.captures.arrays import Bytes, Flags, Ints, Values, gather, layout

HEADER_BYTES = 40
_LAYOUT = layout(
    HEADER_BYTES,
    payload=(">u2", 4),
    next=("u1", 6),
    ttl=("u1", 7),
    source=("V16", 8),
    target=("V16", 24),
)
_EXTENSION = layout(8, next=("u1", 0), length=("u1", 1), fragment=(">u2", 2), id=(">u4", 4))
_FRAGMENT, _AUTHENTICATION = 44, 51
# Hop-by-hop, routing, destination, mobility, host identity, shim6: all of one form.
_COMMON = (0, 43, 60, 135, 139, 140)
_PASSED = (*_COMMON, _FRAGMENT, _AUTHENTICATION)
_MOST_EXTENSIONS = 32


@dataclass(frozen=True)
class Ipv6:
    """The IPv6 packets among some packets."""

    index: Ints  # which of the packets they are
    source: Values
    target: Values
    ttl: Ints
    protocol: Ints  # behind all extension headers
    id: Ints
    fragment_offset: Ints
    more_fragments: Flags
    is_fragment: Flags
    carried_at: Ints
    carried_end: Ints
    is_cut: Flags  # ends within the extension headers
    too_many: Flags


def read_ipv6(data: Bytes, index: Ints, at: Ints, end: Ints) -> Ipv6:
    """Read the headers of packets whose fixed header was captured as a whole."""
    rows = gather(data, at, _LAYOUT)
    payload = rows["payload"].astype(np.int64)
    behind = at + HEADER_BYTES
    # No length means a jumbogram, or a packet caught before the network card cut it up.
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
    """Go behind extension headers, in place; behind a fragment that is not the first is nothing."""
    for _ in range(_MOST_EXTENSIONS):
        goes_on = np.isin(found.protocol, _PASSED) & ~found.is_cut & (found.fragment_offset == 0)
        which = np.flatnonzero(goes_on)
        if not len(which):
            return
        cut = found.carried_at[which] + _EXTENSION.itemsize > found.carried_end[which]
        found.is_cut[which[cut]] = True
        which = which[~cut]
        rows = gather(data, found.carried_at[which], _EXTENSION)
        kind = found.protocol[which]
        _note_fragments(found, which[kind == _FRAGMENT], rows[kind == _FRAGMENT])
        length = (rows["length"].astype(np.int64) + 1) * 8
        length[kind == _FRAGMENT] = 8
        authentication = kind == _AUTHENTICATION
        length[authentication] = (rows["length"][authentication].astype(np.int64) + 2) * 4
        found.carried_at[which] += length
        found.protocol[which] = rows["next"]
        # So that no place lies far behind the data.
        beyond = found.carried_at[which] > found.carried_end[which]
        found.is_cut[which[beyond]] = True
        found.carried_at[which[beyond]] = found.carried_end[which[beyond]]
    found.too_many[np.isin(found.protocol, _PASSED) & ~found.is_cut] = True


def _note_fragments(found: Ipv6, which: Ints, rows: Values) -> None:
    found.is_fragment[which] = True
    found.fragment_offset[which] = rows["fragment"] & 0xFFF8
    found.more_fragments[which] = rows["fragment"] & 1
    found.id[which] = rows["id"]
