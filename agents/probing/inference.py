"""The underlay inferred from routes, and its precision and recall.

A silent router is a hop without an address. Without further rules, it is a separate router in each
route. Silent routers are merged by two ideas:

- Gunes and Sarac ("Resolving anonymous routers in Internet topology measurement studies", INFOCOM
  2008) merge silent stretches of the same length between the same two known nodes.
- Yao et al. ("Topology inference in the presence of anonymous routers", INFOCOM 2003) merge only
  if measured distances are preserved.

Here, two silent stretches are the same routers if they have the same known nodes at both ends, in
either direction, the same number of hops, and the round trip grows by the same amount across them,
within a tolerance.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import pairwise

from agents.probing.route import Route
from topologies.routes import Routes
from topologies.underlay import Underlay

_TOLERANCE_US = 1_000
_TOLERANCE_SHARE = 0.1


@dataclass(frozen=True, slots=True, order=True)
class SilentRouter:
    """A router without an address, identified by a number."""

    number: int


@dataclass(frozen=True, slots=True)
class Sighting:
    """A silent hop in one route."""

    source: int
    target: int
    ttl: int


Node = int | SilentRouter
InferredLink = frozenset[Node]
TrueLink = frozenset[int]


@dataclass(frozen=True)
class InferredUnderlay:
    """Routers and links, last miles included, and the sightings of each silent router."""

    routers: frozenset[Node]
    links: frozenset[InferredLink]
    sightings: Mapping[SilentRouter, frozenset[Sighting]]


@dataclass(frozen=True)
class Truth:
    """Routers and links by address, and the true route of each probed pair, with both ends."""

    routers: frozenset[int]
    links: frozenset[TrueLink]
    paths: Mapping[tuple[int, int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class InferenceScore:
    """Precision and recall of routers and links."""

    router_precision: float
    router_recall: float
    link_precision: float
    link_recall: float


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Consecutive silent hops between two known nodes, ordered from the smaller address."""

    ends: tuple[int, int]
    sightings: tuple[Sighting, ...]
    length_us: int


def infer_underlay(
    routes: Iterable[tuple[int, Route]], merge_silent: bool = False
) -> InferredUnderlay:
    """The graph of all routes, each given with the address of its source.

    Without `merge_silent`, every silent hop of every route is a separate router.
    """
    observed = list(routes)
    stretches = [stretch for source, route in observed for stretch in _stretches(source, route)]
    groups = _merge(stretches) if merge_silent else [[stretch] for stretch in stretches]
    silent = _number(groups)
    links = {link for source, route in observed for link in _links(source, route, silent)}
    ends = {source for source, _ in observed}
    ends |= {route.target for _, route in observed if route.is_reached}
    sightings: defaultdict[SilentRouter, set[Sighting]] = defaultdict(set)
    for sighting, router in silent.items():
        sightings[router].add(sighting)
    nodes = frozenset(node for link in links for node in link)
    return InferredUnderlay(
        nodes - ends,
        frozenset(links),
        {router: frozenset(seen) for router, seen in sightings.items()},
    )


def truth_on_routes(routes: Routes, pairs: Iterable[tuple[str, str]]) -> Truth:
    """The routers and links on the true routes of the named pairs of hosts."""
    paths = dict(_address_path(routes, source, target) for source, target in pairs)
    links = {frozenset(link) for path in paths.values() for link in pairwise(path)}
    routers = {node for path in paths.values() for node in path[1:-1]}
    return Truth(frozenset(routers), frozenset(links), paths)


def truth_of_underlay(
    underlay: Underlay, routes: Routes, pairs: Iterable[tuple[str, str]]
) -> Truth:
    """All routers and links of an underlay, whether or not they are on a route of the pairs."""
    address = {name: int(IPv4Address(at)) for name, at in underlay.address.items()}
    return Truth(
        frozenset(address[router.name] for router in underlay.routers),
        frozenset(frozenset((address[link.a], address[link.b])) for link in underlay.links),
        truth_on_routes(routes, pairs).paths,
    )


def score(inferred: InferredUnderlay, truth: Truth) -> InferenceScore:
    """Precision and recall of routers and links.

    A silent router is compared with the true router at the place where it was seen most often. If
    two are compared with the same true router, the one seen less often is wrong, and so are its
    links.
    """
    identity = _identify(inferred, truth)
    routers = {identity[node] for node in inferred.routers if node in identity} & truth.routers
    links = {
        frozenset(identity[node] for node in link)
        for link in inferred.links
        if all(node in identity for node in link)
    } & truth.links
    return InferenceScore(
        _share(len(routers), len(inferred.routers)),
        _share(len(routers), len(truth.routers)),
        _share(len(links), len(inferred.links)),
        _share(len(links), len(truth.links)),
    )


def _stretches(source: int, route: Route) -> Iterator[_Stretch]:
    """The silent stretches of a route."""
    last_ttl, last_address, last_us = 0, source, 0
    for ttl, hop in enumerate(route.hops, start=1):
        if hop.address is None:
            continue
        here_us = min(hop.round_trips_us, default=last_us)
        if ttl - last_ttl > 1:
            seen = tuple(Sighting(source, route.target, at) for at in range(last_ttl + 1, ttl))
            yield _stretch((last_address, hop.address), seen, here_us - last_us)
        last_ttl, last_address, last_us = ttl, hop.address, here_us


def _stretch(ends: tuple[int, int], seen: tuple[Sighting, ...], length_us: int) -> _Stretch:
    if ends[0] <= ends[1]:
        return _Stretch(ends, seen, length_us)
    return _Stretch((ends[1], ends[0]), seen[::-1], length_us)


def _merge(stretches: Iterable[_Stretch]) -> list[list[_Stretch]]:
    """Groups of stretches that are the same routers."""
    alike: defaultdict[tuple[tuple[int, int], int], list[_Stretch]] = defaultdict(list)
    for stretch in stretches:
        alike[stretch.ends, len(stretch.sightings)].append(stretch)
    return [group for candidates in alike.values() for group in _of_equal_length(candidates)]


def _of_equal_length(stretches: list[_Stretch]) -> Iterator[list[_Stretch]]:
    """Groups of stretches whose lengths are within the tolerance of the shortest in the group."""
    group: list[_Stretch] = []
    for stretch in sorted(stretches, key=lambda one: one.length_us):
        if group and stretch.length_us > _longest_us(group[0].length_us):
            yield group
            group = []
        group.append(stretch)
    yield group


def _longest_us(shortest_us: int) -> float:
    return shortest_us + max(_TOLERANCE_US, abs(shortest_us) * _TOLERANCE_SHARE)


def _number(groups: Iterable[Sequence[_Stretch]]) -> dict[Sighting, SilentRouter]:
    """The router at every silent hop: the first of a stretch, the second, and so on."""
    numbered: dict[Sighting, SilentRouter] = {}
    count = 0
    for group in groups:
        for stretch in group:
            for place, sighting in enumerate(stretch.sightings):
                numbered[sighting] = SilentRouter(count + place)
        count += len(group[0].sightings)
    return numbered


def _links(
    source: int, route: Route, silent: Mapping[Sighting, SilentRouter]
) -> Iterator[InferredLink]:
    nodes: list[Node] = [source]
    for ttl, hop in enumerate(route.hops, start=1):
        known = hop.address
        nodes.append(silent[Sighting(source, route.target, ttl)] if known is None else known)
    # While routes change, a router may answer at two consecutive TTLs; that is no link to itself.
    return (frozenset(link) for link in pairwise(nodes) if link[0] != link[1])


def _address_path(
    routes: Routes, source: str, target: str
) -> tuple[tuple[int, int], tuple[int, ...]]:
    address = routes.underlay.address
    path = tuple(int(IPv4Address(address[name])) for name in routes.path(source, target))
    return (path[0], path[-1]), path


def _identify(inferred: InferredUnderlay, truth: Truth) -> dict[Node, int]:
    """The true node of each inferred one, where there is one."""
    known = {node for link in inferred.links for node in link if isinstance(node, int)}
    identity: dict[Node, int] = {node: node for node in known}
    claims: list[tuple[int, SilentRouter, int]] = []
    for silent, sightings in inferred.sightings.items():
        true = Counter(router for seen in sightings for router in _standing_at(truth, seen))
        if true:
            router, count = min(true.items(), key=lambda item: (-item[1], item[0]))
            claims.append((-count, silent, router))
    taken = set(known)
    for _, silent, router in sorted(claims):
        if router not in taken:
            taken.add(router)
            identity[silent] = router
    return identity


def _standing_at(truth: Truth, seen: Sighting) -> tuple[int, ...]:
    """The true router at the place of a sighting, if the true route is as long as that."""
    return truth.paths.get((seen.source, seen.target), ())[seen.ttl : seen.ttl + 1]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
