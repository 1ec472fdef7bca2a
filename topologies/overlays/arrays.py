"""Index arrays that NumPy has no function for."""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def index_ranges(starts: Numbers, sizes: Numbers) -> Numbers:
    """The numbers start, start + 1, ..., start + size - 1 of each range, one after another."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - ends + sizes, sizes) + np.arange(total)
