"""Statistics of generated networks, on which the claims about generators are decided."""

from typing import Any

import numpy as np

from topologies.domain_sizes import choose_domain_sizes
from topologies.statistics import hop_matrix
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman


def measure_waxman(seed: int, routers: int) -> dict[str, Any]:
    """The size, degrees and hops of a Waxman network with two links for each router."""
    return _measure(generate_waxman(routers, seed=seed))


def measure_transit_stub(seed: int, routers: int) -> dict[str, Any]:
    """The size, degrees and hops of a transit-stub network in the paper's proportions."""
    return _measure(generate_transit_stub(choose_domain_sizes(routers), seed=seed))


def _measure(underlay: Underlay) -> dict[str, Any]:
    index = underlay.router_index
    ends = [index[name] for link in underlay.router_links for name in (link.a, link.b)]
    degrees = np.bincount(ends, minlength=len(underlay.routers))
    hops = hop_matrix(underlay, np.arange(len(underlay.routers)))
    return {
        "network": {"routers": len(underlay.routers), "links": len(underlay.router_links)},
        "degree": {"mean": float(degrees.mean()), "max": int(degrees.max())},
        "hops": {
            "mean": float(hops.sum(dtype=np.int64) / (hops.size - len(hops))),
            "max": int(hops.max()),
        },
    }
