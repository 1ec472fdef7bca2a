"""The plane on which generators place their nodes."""

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.float64]


def place_apart(rng: np.random.Generator, count: int, width: int) -> Places:
    """Different random places (x, y) on the whole units of a square."""
    cells = rng.choice(width * width, size=count, replace=False)
    return np.stack(np.divmod(cells, width), axis=1).astype(np.float64)


def distances(one: Places, others: Places) -> NDArray[np.float64]:
    """The Euclidean distance from one place (or each of several) to each of the others."""
    offset = others - one
    return np.sqrt(offset[..., 0] ** 2 + offset[..., 1] ** 2)
