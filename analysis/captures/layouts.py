"""Fields of many packets at once: headers at scattered offsets, gathered by their layouts.

Our own header is laid out in `agents/wire/codec.py`; a test compares the two.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.void]
Values = NDArray[Any]

SLACK = 128  # readable bytes after a chunk; more than the size of any layout


def gather(data: Bytes, at: Ints, layout: np.dtype[np.void]) -> Rows:
    """A copy of the bytes at each offset, interpreted by a layout.

    Indexing an array of overlapping items is NumPy's fastest gather.
    """
    width = layout.itemsize
    overlapping: Rows = np.ndarray(
        shape=(max(len(data) - width + 1, 0),), dtype=f"V{width}", buffer=data, strides=(1,)
    )
    return overlapping[at].view(layout)


def layout(size: int, **fields: tuple[str | np.dtype[np.void], int]) -> np.dtype[np.void]:
    """A record of some size with fields of a format at an offset."""
    formats = [form for form, _ in fields.values()]
    offsets = [offset for _, offset in fields.values()]
    return np.dtype(
        {"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": size}
    )


_BE16 = layout(2, value=(">u2", 0))


def be16(data: Bytes, at: Ints) -> Ints:
    """The big-endian 16 bits at each offset."""
    return gather(data, at, _BE16)["value"].astype(np.int64)


UDP_BYTES, ICMP_BYTES, OWN_BYTES = 8, 8, 40
OWN_MAGIC, OWN_VERSION, OWN_PORT = 0x5444, 1, 7001

TRANSPORT = layout(
    UDP_BYTES + OWN_BYTES,
    source_port=(">u2", 0),
    target_port=(">u2", 2),
    udp_length=(">u2", 4),
    icmp_type=("u1", 0),
    icmp_code=("u1", 1),
    magic=(">u2", 8),
    version=("u1", 10),
    kind=("u1", 11),
    flags=("u1", 12),
    hop_count=("u1", 13),
    run_id=(">u4", 16),
    sender=(">u4", 20),
    receiver=(">u4", 24),
    message_id=(">u4", 28),
    event_id=(">i8", 32),
    sent_us=(">i8", 40),
)

IPV4_BYTES = 20
OFFSET_BITS = 0x1FFF
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
    # The payload of a header without options; nearly every header has none.
    carried=(TRANSPORT, IPV4_BYTES),
)

IPV6_BYTES = 40
IPV6_LAYOUT = layout(
    IPV6_BYTES,
    payload=(">u2", 4),
    next=("u1", 6),
    ttl=("u1", 7),
    source=("V16", 8),
    target=("V16", 24),
)
IPV6_EXTENSION = layout(8, next=("u1", 0), length=("u1", 1), fragment=(">u2", 2), id=(">u4", 4))
