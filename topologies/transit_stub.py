"""Transit-stub networks as GT-ITM makes them (Zegura, Calvert, Bhattacharjee, INFOCOM 1996).

Transit domains form a random connected graph, and so do the transit routers of each domain. On
each transit router there are stub domains, each a random connected graph of routers, attached
by one link. Sizes are averages: single domains are larger or smaller, the number of routers
is exact.

Three properties of GT-ITM's networks come from its program and not from its paper. We follow the
program, because published results use its networks:

- two neighbouring transit domains are joined by two links, each between random routers;
- only the first transit domain has the link probability meant for transit domains, the
  others have the one meant for stub domains;
- only the first transit domain has the width that the header of GT-ITM's files states. The
  others are as narrow as a stub domain, and lie in the lower left corner of the square that
  the stated width gives them. Domains are therefore nearer to each other than the header says.

We depart from the program in two ways: two routers never get a second link, and some stub
domains are one router larger if the number of routers requires it.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from topologies.domain_sizes import PAPER_SIZES, DomainSizes, choose_domain_sizes
from topologies.errors import TopologyError
from topologies.parameters import check_parameter, check_seed
from topologies.plane import Places, distances, place_apart
from topologies.topology import Topology, TopologySettings
from topologies.underlay import Link, Role, Router, Underlay

# To vary the sizes of n domains, a router is moved from one to another 3n times.
_MOVES_PER_DOMAIN = 3
_LINKS_BETWEEN_DOMAINS = 2
_TRIES = 1000

_Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Chances:
    """The probability of a link between two domains, or two routers of one domain."""

    domain_link_probability: float
    transit_link_probability: float
    stub_link_probability: float


@dataclass(frozen=True, slots=True)
class _Widths:
    """The sides of the squares of the network, of a transit domain and of a stub domain."""

    plane: int
    transit: int
    stub: int


@dataclass(frozen=True, slots=True)
class _Stub:
    """A stub domain and the transit router that it is attached to, by position."""

    transit_router: int
    routers: range


class TransitStub(Topology):
    """A transit-stub network as GT-ITM makes it, with domain sizes in the paper's proportions."""

    @classmethod
    def make(cls, settings: TopologySettings, seed: int, folder: Path) -> Underlay:
        """A generated underlay without hosts."""
        del folder
        return generate_transit_stub(choose_domain_sizes(settings.routers), seed=seed)


def generate_transit_stub(
    sizes: DomainSizes = PAPER_SIZES,
    *,
    seed: int,
    domain_link_probability: float = 0.5,
    transit_link_probability: float = 0.6,
    stub_link_probability: float = 0.42,
    extra_transit_stub_links: int = 0,
    extra_stub_stub_links: int = 0,
    delay_us_per_unit: float = 100.0,
) -> Underlay:
    """A random transit-stub network of `sizes.routers` routers.

    Delays follow from distances on the plane. At 100 us a unit, a link inside a stub domain
    takes some 3 ms, and one between transit domains some 10 to 20 ms.
    """
    chances = _Chances(domain_link_probability, transit_link_probability, stub_link_probability)
    extras = {
        "extra_transit_stub_links": extra_transit_stub_links,
        "extra_stub_stub_links": extra_stub_stub_links,
    }
    _check_parameters(seed, chances, extras, delay_us_per_unit)
    draft = _Draft(np.random.default_rng(seed), chances, _choose_widths(sizes))
    draft.add_domains(sizes)
    draft.add_extra_links(extra_transit_stub_links, extra_stub_stub_links)
    source = {"generator": "transit-stub", "routers": sizes.routers, "seed": seed}
    source |= asdict(sizes) | asdict(chances) | extras | {"delay_us_per_unit": delay_us_per_unit}
    return Underlay(tuple(draft.routers), draft.finish_links(delay_us_per_unit), source=source)


def _check_parameters(
    seed: int, chances: _Chances, extras: dict[str, int], delay_us_per_unit: float
) -> None:
    check_seed(seed)
    for name, probability in asdict(chances).items():
        check_parameter(name, probability, "above 0, up to 1", 0 < probability <= 1)
    for name, count in extras.items():
        check_parameter(name, count, "0 or more", count >= 0)
    is_good = 0 < delay_us_per_unit < math.inf
    check_parameter("delay_us_per_unit", delay_us_per_unit, "above 0", is_good)


def _choose_widths(sizes: DomainSizes) -> _Widths:
    """The squares of GT-ITM: 356, 178 and 64 units wide for the paper's 1,584 routers.

    The plane has 80 square units for each router, and a transit domain half its width, made
    even. A stub domain has 16 square units for each router of the largest one that GT-ITM
    allows for.
    """
    plane = round(math.sqrt(80 * sizes.routers))
    transit = round(plane / 2)
    transit += transit % 2
    most_transit = sizes.routers_per_transit_domain + _MOVES_PER_DOMAIN * sizes.transit_domains
    most_stubs = sizes.stub_domains_per_transit_router + _MOVES_PER_DOMAIN * most_transit
    most_routers = sizes.routers_per_stub_domain + _MOVES_PER_DOMAIN * most_stubs
    stub = round(math.sqrt(16 * most_routers))
    # In small networks that would be wider than the plane, which GT-ITM does not handle.
    return _Widths(plane, transit, min(stub, transit))


class _Draft:
    """A network under construction; routers are known by their position."""

    def __init__(self, rng: np.random.Generator, chances: _Chances, widths: _Widths) -> None:
        self.routers: list[Router] = []
        self._rng = rng
        self._chances = chances
        self._widths = widths
        # A dictionary as a set with an order.
        self._links: dict[_Pair, None] = {}
        self._transit_domains: list[range] = []
        self._stub_of: dict[int, _Stub] = {}

    def add_domains(self, sizes: DomainSizes) -> None:
        """Add all domains with their routers and links, and the links between them."""
        probability = self._chances.domain_link_probability
        neighbours = _draw_connected_graph(self._rng, sizes.transit_domains, probability)
        for stub_sizes in _draw_sizes(self._rng, sizes):
            self._add_transit_domain(stub_sizes)
        for a, b in neighbours:
            self._join_domains(self._transit_domains[a], self._transit_domains[b])

    def add_extra_links(self, transit_stub: int, stub_stub: int) -> None:
        """Add links from transit routers to stubs of others, then between different stubs."""
        for _ in range(transit_stub):
            self._add_extra_link("extra_transit_stub_links", self._draw_transit_and_stub)
        for _ in range(stub_stub):
            self._add_extra_link("extra_stub_stub_links", self._draw_stub_and_stub)

    def finish_links(self, delay_us_per_unit: float) -> tuple[Link, ...]:
        """All links, each with the delay of its length, which is at least one unit."""
        places = np.array([(router.x, router.y) for router in self.routers])
        first, second = np.array(list(self._links)).reshape(-1, 2).T
        lengths = np.maximum(1, distances(places[first], places[second]))
        delays_us = np.maximum(1, np.rint(lengths * delay_us_per_unit)).astype(int).tolist()
        return tuple(
            Link.symmetric(self.routers[a].name, self.routers[b].name, delay_us)
            for (a, b), delay_us in zip(self._links, delays_us, strict=True)
        )

    def _add_transit_domain(self, stub_sizes: list[list[int]]) -> None:
        """Add a transit domain with a router for each entry, and stubs of these sizes on it."""
        number, widths, chances = len(self._transit_domains), self._widths, self._chances
        middle = self._rng.integers(widths.plane, size=2)
        corner = np.clip(middle - widths.transit // 2, 0, widths.plane - widths.transit)
        # GT-ITM makes all transit domains but the first with the parameters of stub domains.
        width = widths.stub if number else widths.transit
        probability = chances.stub_link_probability if number else chances.transit_link_probability
        places = corner + place_apart(self._rng, len(stub_sizes), width)
        routers = self._add_domain("transit", f"T:{number}", places, probability)
        self._transit_domains.append(routers)
        for router, sizes in zip(routers, stub_sizes, strict=True):
            for stub_number, size in enumerate(sizes):
                self._add_stub_domain(router, stub_number, size)

    def _add_stub_domain(self, transit_router: int, number: int, size: int) -> None:
        """Add a stub domain near its transit router, and the link between them."""
        owner, widths = self.routers[transit_router], self._widths
        middle = np.array((owner.x, owner.y), dtype=np.int64)
        lowest = np.maximum(middle - widths.stub, 0)
        highest = np.minimum(middle, widths.plane - widths.stub)
        corner = self._rng.integers(lowest, highest, endpoint=True)
        places = corner + place_apart(self._rng, size, widths.stub)
        label = f"S:{owner.label.removeprefix('T:')}/{number}"
        probability = self._chances.stub_link_probability
        routers = self._add_domain("stub", label, places, probability)
        self._stub_of |= dict.fromkeys(routers, _Stub(transit_router, routers))
        self._links[transit_router, routers[self._rng.integers(size)]] = None

    def _add_domain(self, role: Role, label: str, places: Places, probability: float) -> range:
        """The routers of a new domain, at these places and connected at random."""
        first = len(self.routers)
        for number, (x, y) in enumerate(places.tolist()):
            name = f"r{first + number + 1}"
            self.routers.append(Router(name, x, y, role, label=f"{label}.{number}"))
        for a, b in _draw_connected_graph(self._rng, len(places), probability):
            self._links[first + a, first + b] = None
        return range(first, len(self.routers))

    def _join_domains(self, one: range, other: range) -> None:
        """Link two transit domains at random routers, twice if they have more than one."""
        pairs = len(one) * len(other)
        count = min(_LINKS_BETWEEN_DOMAINS, pairs)
        for pair in self._rng.choice(pairs, size=count, replace=False):
            self._links[one[pair // len(other)], other[pair % len(other)]] = None

    def _draw_transit_and_stub(self) -> _Pair | None:
        """A random transit router and stub router, unless the stub is attached to that router."""
        domain = self._transit_domains[self._rng.integers(len(self._transit_domains))]
        transit_router = domain[self._rng.integers(len(domain))]
        router = int(self._rng.integers(len(self.routers)))
        stub = self._stub_of.get(router)
        if stub is None or stub.transit_router == transit_router:
            return None
        return min(transit_router, router), max(transit_router, router)

    def _draw_stub_and_stub(self) -> _Pair | None:
        """Two random stub routers, if they are of different stubs."""
        a, b = sorted(self._rng.integers(len(self.routers), size=2).tolist())
        if a in self._stub_of and b in self._stub_of and self._stub_of[a] != self._stub_of[b]:
            return a, b
        return None

    def _add_extra_link(self, name: str, draw: Callable[[], _Pair | None]) -> None:
        for _ in range(_TRIES):
            pair = draw()
            if pair is not None and pair not in self._links:
                self._links[pair] = None
                return
        raise TopologyError(
            f"{name}: expected pairs of routers without a link, found none in "
            f"{_TRIES} draws; ask for fewer"
        )


def _draw_sizes(rng: np.random.Generator, sizes: DomainSizes) -> list[list[list[int]]]:
    """The sizes of the stubs on each router of each transit domain."""
    large = rng.choice(sizes.stub_domains, size=sizes.spare_stub_routers, replace=False)
    averages = np.full(sizes.stub_domains, sizes.routers_per_stub_domain)
    averages[large] += 1
    per_domain = [sizes.routers_per_transit_domain] * sizes.transit_domains
    unused = iter(averages.tolist())
    return [
        [_vary_sizes(rng, list(islice(unused, stubs))) for stubs in _vary_sizes(rng, per_router)]
        for transit_routers in _vary_sizes(rng, per_domain)
        for per_router in [[sizes.stub_domains_per_transit_router] * transit_routers]
    ]


def _vary_sizes(rng: np.random.Generator, averages: list[int]) -> list[int]:
    """Sizes of 1 or more around the averages, with the same sum."""
    sizes = list(averages)
    moves = rng.integers(len(sizes), size=(_MOVES_PER_DOMAIN * len(sizes), 2))
    for giver, taker in moves.tolist():
        if sizes[giver] > 1:
            sizes[giver] -= 1
            sizes[taker] += 1
    return sizes


def _draw_connected_graph(rng: np.random.Generator, nodes: int, probability: float) -> list[_Pair]:
    """The edges of a random graph, drawn again until it is connected."""
    first, second = np.triu_indices(nodes, 1)
    for _ in range(_TRIES):
        taken = np.flatnonzero(rng.random(len(first)) < probability)
        a, b = first[taken], second[taken]
        graph = coo_array((np.ones(len(a)), (a, b)), shape=(nodes, nodes))
        if connected_components(graph, directed=False, return_labels=False) == 1:
            return list(zip(a.tolist(), b.tolist(), strict=True))
    raise TopologyError(
        f"link probability {probability}: expected a connected graph of {nodes} nodes, found none "
        f"in {_TRIES} draws; use a larger probability"
    )
