"""The similarity of the interests of peers: the Jaccard index of the events that they match, over
the whole workload (Tariq, Koldehofe and Rothermel, DEBS 2013, section 5).
"""

from collections.abc import Iterable
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from workloads.workload import Workload

Similarities = NDArray[np.float64]


def similarities(workload: Workload, peers: int) -> Similarities:
    """For each pair of peers, common events divided by events of either; 0 without events."""
    matched = np.zeros((peers, len(workload.publications)), dtype=np.float32)
    owner = workload.interests.peer[workload.matches.interest]
    matched[owner, workload.matches.event_id - 1] = 1
    common = (matched @ matched.T).astype(np.float64)
    counts = np.diagonal(common)
    either = counts[:, None] + counts - common
    return np.divide(common, either, out=np.zeros_like(common), where=either > 0)


def mean_of_pairs(found: Similarities) -> float | None:
    """The mean over all pairs of peers; None for fewer than two peers."""
    peers = len(found)
    if peers < 2:
        return None
    return float((found.sum() - np.trace(found)) / (peers * (peers - 1)))


def mean_of_links(found: Similarities, links: Iterable[tuple[int, int]]) -> float | None:
    """The mean over some pairs, such as neighbours in an overlay; None without pairs."""
    values = [float(found[pair]) for pair in links]
    return fmean(values) if values else None
