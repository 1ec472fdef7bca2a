"""Two-level Waxman networks as BRITE's top-down mode makes them (Medina et al., BRITE, 2001).

Autonomous systems form a Waxman graph, and so do the routers of each system. For each link
between two autonomous systems, a border router of one is linked to one of the other.

As in BRITE, every autonomous system covers the whole plane: the place of an autonomous system
decides only which others it is linked to. A link between two of them is as long as the distance
of its border routers, and the degree of a router counts the links that were made so far.

We depart from BRITE where no router has the degree that the edge-connection method requires: the
border router is then the one with the largest degree.
"""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from topologies.hierarchy import PAPER_HIERARCHY, EdgeConnection, Hierarchy, choose_systems
from topologies.parameters import check_seed
from topologies.plane import Places, place_apart
from topologies.topology import Topology, TopologySettings
from topologies.underlay import Router, Underlay
from topologies.waxman import PLANE_KM, grow_links, make_links

_Ends = list[tuple[int, int]]


class HierarchySettings(TopologySettings, frozen=True, kw_only=True):
    """The settings of a two-level network."""

    edge_connection: Annotated[
        EdgeConnection,
        Meta(description="which border routers link two autonomous systems"),
    ] = PAPER_HIERARCHY.edge_connection
    border_degree: Annotated[
        int, Meta(ge=1, description="least degree of a border router, with smallest-k-degree")
    ] = PAPER_HIERARCHY.border_degree


class WaxmanHierarchical(Topology):
    """A Waxman network on two levels, as BRITE's top-down mode makes it."""

    Settings: ClassVar[type[TopologySettings]] = HierarchySettings

    @classmethod
    def make(cls, settings: HierarchySettings, seed: int, folder: Path) -> Underlay:
        """A generated underlay without hosts."""
        del folder
        hierarchy = Hierarchy(
            settings.routers,
            choose_systems(settings.routers),
            edge_connection=settings.edge_connection,
            border_degree=settings.border_degree,
        )
        return generate_waxman_hierarchical(hierarchy, seed=seed)


def generate_waxman_hierarchical(hierarchy: Hierarchy = PAPER_HIERARCHY, *, seed: int) -> Underlay:
    """A random two-level Waxman network; the label of router 7 of system 2 is `AS2.7`."""
    check_seed(seed)
    rng = np.random.default_rng(seed)
    system_links = _link_systems(rng, hierarchy)
    starts = accumulate(hierarchy.system_sizes, initial=0)
    systems = [range(start, end) for start, end in pairwise(starts)]
    places, ends = _fill_systems(rng, hierarchy, systems)
    ends += _join_systems(rng, hierarchy, systems, system_links, ends)
    return Underlay(
        tuple(_name_routers(systems, places)),
        tuple(make_links(places, ends)),
        source={"generator": "waxman-hierarchical", **asdict(hierarchy), "seed": seed},
    )


def _link_systems(rng: np.random.Generator, hierarchy: Hierarchy) -> _Ends:
    """The pairs of autonomous systems that are linked."""
    places = place_apart(rng, hierarchy.autonomous_systems, PLANE_KM)
    return grow_links(rng, places, hierarchy.links_per_system, hierarchy.distance_scale)


def _fill_systems(
    rng: np.random.Generator, hierarchy: Hierarchy, systems: list[range]
) -> tuple[Places, _Ends]:
    """The places of all routers, and the links inside autonomous systems."""
    places = np.concatenate([place_apart(rng, len(system), PLANE_KM) for system in systems])
    ends: _Ends = []
    for system in systems:
        inside = places[system.start : system.stop]
        links = grow_links(rng, inside, hierarchy.links_per_router, hierarchy.distance_scale)
        ends += [(system[maker], system[other]) for maker, other in links]
    return places, ends


def _join_systems(
    rng: np.random.Generator,
    hierarchy: Hierarchy,
    systems: list[range],
    system_links: _Ends,
    ends: _Ends,
) -> Iterator[tuple[int, int]]:
    """The links between autonomous systems, one for each pair that is linked."""
    degrees = np.bincount(np.array(ends).ravel(), minlength=hierarchy.routers)
    least = hierarchy.least_border_degree
    for pair in system_links:
        one, other = (
            system[_choose_border(rng, degrees[system.start : system.stop], least)]
            for system in (systems[number] for number in pair)
        )
        degrees[[one, other]] += 1
        yield one, other


def _choose_border(rng: np.random.Generator, degrees: NDArray[np.int64], least: int | None) -> int:
    """The position of a border router: random, or the first with the smallest degree allowed."""
    if least is None:
        return int(rng.integers(len(degrees)))
    allowed = np.flatnonzero(degrees >= least)
    return int(allowed[degrees[allowed].argmin()] if len(allowed) else degrees.argmax())


def _name_routers(systems: list[range], places: Places) -> Iterator[Router]:
    for number, system in enumerate(systems):
        for position in system:
            x, y = places[position].tolist()
            label = f"AS{number}.{position - system.start}"
            yield Router(f"r{position + 1}", x, y, label=label)
