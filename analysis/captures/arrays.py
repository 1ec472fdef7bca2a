"""Fields of many packets at once: bytes at scattered places, gathered into one array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rows = NDArray[np.void]
Values = NDArray[Any]

SLACK = 128  # bytes behind a chunk that may be read without harm, more than any layout is wide


def gather(data: Bytes, at: Ints, layout: np.dtype[np.void]) -> Rows:
    """A copy of the bytes at each place, read by a layout.

    Taking whole items out of an array of overlapping items is the quickest gather NumPy has.
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
    """The big-endian 16 bits at each place."""
    return gather(data, at, _BE16)["value"].astype(np.int64)
