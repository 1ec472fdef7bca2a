"""Waxman networks as BRITE grows them (Medina et al., BRITE, 2001; Waxman, JSAC 6(9), 1988).

Routers are placed at random on a plane and join one after another. A new router draws earlier
routers until it has its links, and takes a drawn router at distance d with probability

    P(d) = link_share * exp(-d / (distance_scale * L))

where L is the diagonal of the plane. Waxman and BRITE call `link_share` alpha and
`distance_scale` beta; NetworkX swaps the two letters, so neither is used here.
"""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from topologies.parameters import check_parameter, check_seed
from topologies.plane import Places, distances, place_apart
from topologies.topology import Topology, TopologySettings
from topologies.underlay import Link, Router, Underlay

PLANE_KM = 1000
# In BRITE, lengths are kilometres, and signals travel at the speed of light.
_KM_PER_US = 0.299792458


class Waxman(Topology):
    """A flat Waxman network as BRITE grows it."""

    @classmethod
    def make(cls, settings: TopologySettings, seed: int, folder: Path) -> Underlay:
        """A generated underlay without hosts."""
        del folder
        return generate_waxman(settings.routers, seed=seed)


def generate_waxman(
    routers: int = 1640,
    links_per_router: int = 2,
    *,
    seed: int,
    link_share: float = 0.15,
    distance_scale: float = 0.2,
) -> Underlay:
    """A random Waxman network with `links_per_router` links for each router.

    `link_share` is only recorded: a new router draws until it has its links, so
    a smaller share would cost more draws and give the same networks.

    In the smallest networks one of the first routers may already be linked to nearly all
    others; it then makes fewer links of its own, as in BRITE.
    """
    check_waxman(link_share, distance_scale)
    check_counts("routers", routers, "links_per_router", links_per_router)
    check_seed(seed)
    rng = np.random.default_rng(seed)
    places = place_apart(rng, routers, PLANE_KM)
    ends = grow_links(rng, places, links_per_router, distance_scale)
    return Underlay(
        tuple(Router(f"r{i + 1}", float(x), float(y)) for i, (x, y) in enumerate(places)),
        tuple(make_links(places, ends)),
        source={
            "generator": "waxman",
            "routers": routers,
            "links_per_router": links_per_router,
            "link_share": link_share,
            "distance_scale": distance_scale,
            "seed": seed,
        },
    )


def check_waxman(link_share: float, distance_scale: float) -> None:
    """Raise a TopologyError unless these are parameters of Waxman's model."""
    check_parameter("link_share", link_share, "above 0, up to 1", 0 < link_share <= 1)
    check_parameter("distance_scale", distance_scale, "above 0", 0 < distance_scale < math.inf)


def check_counts(nodes_name: str, nodes: int, links_name: str, links: int) -> None:
    """Raise a TopologyError unless the nodes fit on the plane and can have the given links."""
    check_parameter(links_name, links, "1 or more", links >= 1)
    expected = f"more {nodes_name} than {links_name}, which is {links}"
    check_parameter(nodes_name, nodes, expected, nodes > links)
    expected = f"at most {PLANE_KM**2}, one on each square kilometre"
    check_parameter(nodes_name, nodes, expected, nodes <= PLANE_KM**2)


def grow_links(
    rng: np.random.Generator, places: Places, links_per_router: int, distance_scale: float
) -> list[tuple[int, int]]:
    """The two ends of every link, in the order in which links are made."""
    reach_km = distance_scale * PLANE_KM * math.sqrt(2)
    everyone = np.arange(len(places))
    ends: list[tuple[int, int]] = []
    for maker in range(links_per_router, len(places)):
        chosen = _choose_near(rng, places, maker, everyone[:maker], links_per_router, reach_km)
        ends += [(maker, other) for other in chosen]
    # The first routers have no earlier ones; they make their links after all others.
    for maker in range(links_per_router):
        linked = [newcomer for newcomer, other in ends if other == maker]
        others = np.setdiff1d(everyone[links_per_router:], linked)
        chosen = _choose_near(rng, places, maker, others, links_per_router, reach_km)
        ends += [(maker, other) for other in chosen]
    return ends


def _choose_near(
    rng: np.random.Generator,
    places: Places,
    maker: int,
    others: NDArray[np.int64],
    count: int,
    reach_km: float,
) -> list[int]:
    """`count` of the other routers, near ones more likely; all of them if there are fewer.

    Drawing uniformly and accepting with probability P is drawing with weights P. The ones that
    come first after waiting times with rates P are such a draw without repetition (Efraimidis and
    Spirakis, 2006). Logarithms distinguish far ones, whose rates are almost 0.
    """
    waiting = np.log(rng.standard_exponential(len(others)))
    waiting += distances(places[maker], places[others]) / reach_km
    if len(others) > count:
        first = np.argpartition(waiting, count)[:count]
        others, waiting = others[first], waiting[first]
    return [int(other) for other in others[np.argsort(waiting)]]


def make_links(places: Places, ends: list[tuple[int, int]]) -> list[Link]:
    """The links with the delay of light over their length, at least 1 µs."""
    makers, others = np.array(ends).T
    lengths_km = distances(places[makers], places[others])
    return [
        Link.symmetric(f"r{maker + 1}", f"r{other + 1}", max(1, round(length_km / _KM_PER_US)))
        for (maker, other), length_km in zip(ends, lengths_km.tolist(), strict=True)
    ]
