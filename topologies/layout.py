"""Positions of nodes in a picture of an underlay that show its structure.

Plain networks keep their coordinates, or get a force-directed layout without coordinates.
Coordinates of transit-stub networks are not used, because their domains overlap. They are
drawn as rings of rings: the transit domains around the middle, the transit routers of a
domain around its centre, and around each transit router its stub domains.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.spatial import cKDTree

from topologies.underlay import Underlay

Point = NDArray[np.float64]
Positions = dict[str, Point]

# Maps of countries and continents are wider than high; wider pictures are not readable.
_WIDEST = 1.5
_SMALL_GRAPH = 120
_STEPS = 100
_GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
_TRANSIT_DOMAIN = re.compile(r"T:(\d+)\.")


@dataclass(frozen=True)
class _Disc:
    """Nodes within a radius around the origin."""

    positions: Positions
    radius: float


def place_nodes(underlay: Underlay) -> Positions:
    """The position of every router and host."""
    routers = _place_routers(underlay)
    if len(routers) == 1:
        return routers | _place_around_exchange(underlay)
    routers = _separate(_fit_box(routers))
    return routers | _place_hosts(underlay, routers)


def typical_gap(positions: Positions) -> float:
    """The median distance from a node to the nearest other."""
    points = np.array(list(positions.values()))
    if len(points) == 1:
        return 1.0
    distances, _ = cKDTree(points).query(points, k=2)
    return float(np.median(distances[:, 1]))


def _place_routers(underlay: Underlay) -> Positions:
    if any(router.role == "transit" for router in underlay.routers):
        return _place_domains(underlay)
    points = {router.name: np.array([router.x, router.y]) for router in underlay.routers}
    corners = np.array(list(points.values()))
    has_coordinates = bool(np.ptp(corners, axis=0).max() > 0)
    return points if has_coordinates else _place_by_force(_router_graph(underlay))


def _router_graph(underlay: Underlay) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(router.name for router in underlay.routers)
    graph.add_edges_from((link.a, link.b) for link in underlay.router_links)
    return graph


def _place_by_force(graph: nx.Graph) -> Positions:
    """A layout from the links alone: neighbours near each other."""
    if len(graph) == 1:
        return {name: np.zeros(2) for name in graph}
    if len(graph) <= _SMALL_GRAPH:
        return _place_by_hops(graph)
    iterations = max(15, 30_000 // len(graph))
    large: Positions = nx.spring_layout(graph, seed=1, iterations=iterations, method="force")
    return large


def _place_by_hops(graph: nx.Graph) -> Positions:
    """A layout in which distances are like numbers of hops (de Leeuw's SMACOF).

    NetworkX's Kamada-Kawai layout has the same aim; on the hundreds of small domains of one
    network its general optimiser takes a hundred times longer.
    """
    names = list(graph)
    hops = shortest_path(nx.to_scipy_sparse_array(graph, nodelist=names), unweighted=True)
    # The ring separates points that the projection puts in one place.
    points = _projected(hops) + np.array(_ring(len(names), 0.2, 0.0))
    for _ in range(_STEPS):
        distances = np.hypot(*(points[:, None, :] - points[None, :, :]).transpose(2, 0, 1))
        pull = -hops / np.maximum(distances, 1e-9)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        points = pull @ points / len(names)
    return dict(zip(names, points, strict=True))


def _projected(distances: Point) -> Point:
    """Points in the plane whose distances are about the given ones (Torgerson's scaling)."""
    middle = np.eye(len(distances)) - 1 / len(distances)
    values, vectors = np.linalg.eigh(-0.5 * middle @ distances**2 @ middle)
    projected: Point = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    return projected


def _fit_box(points: Positions) -> Positions:
    """The points scaled into a box with one square unit for each, and a limited aspect ratio."""
    corners = np.array(list(points.values()))
    low, extent = corners.min(axis=0), np.maximum(np.ptp(corners, axis=0), 1e-9)
    ratio = min(max(extent[0] / extent[1], 1 / _WIDEST), _WIDEST)
    box = np.sqrt(len(points)) * np.array([math.sqrt(ratio), 1 / math.sqrt(ratio)])
    return {name: (point - low) / extent * box for name, point in points.items()}


def _separate(points: Positions) -> Positions:
    """The points, with equal ones (such as routers of one city) moved to a ring around them."""
    crowds: dict[tuple[float, ...], list[str]] = {}
    for name, point in points.items():
        crowds.setdefault(tuple(np.round(point, 3)), []).append(name)
    separated = dict(points)
    for names in crowds.values():
        if len(names) > 1:
            ring = _ring(len(names), max(0.3, 0.07 * len(names)), 0.0)
            separated |= {n: points[n] + shift for n, shift in zip(names, ring, strict=True)}
    return separated


def _place_hosts(underlay: Underlay, routers: Positions) -> Positions:
    """Hosts in a ring around their router."""
    crowds: dict[str, list[str]] = {}
    for host, router in underlay.access_router.items():
        crowds.setdefault(router, []).append(host)
    away = _free_angles(underlay, routers)
    gap = typical_gap(routers)
    places: Positions = {}
    for router, hosts in crowds.items():
        radius = gap * max(0.55, 0.08 * len(hosts))
        ring = _ring(len(hosts), radius, away[router])
        places |= {name: routers[router] + shift for name, shift in zip(hosts, ring, strict=True)}
    return places


def _free_angles(underlay: Underlay, routers: Positions) -> dict[str, float]:
    """For each router the direction in which it has the most room between its links."""
    angles: dict[str, list[float]] = {name: [] for name in routers}
    for link in underlay.router_links:
        dx, dy = routers[link.b] - routers[link.a]
        angles[link.a].append(math.atan2(dy, dx))
        angles[link.b].append(math.atan2(-dy, -dx))
    return {name: _middle_of_widest_gap(sorted(taken)) for name, taken in angles.items()}


def _middle_of_widest_gap(angles: list[float]) -> float:
    if not angles:
        return 0.0
    following = [*angles[1:], angles[0] + 2 * math.pi]
    gaps = [after - angle for angle, after in zip(angles, following, strict=True)]
    widest = max(range(len(gaps)), key=gaps.__getitem__)
    return angles[widest] + gaps[widest] / 2


def _place_around_exchange(underlay: Underlay) -> Positions:
    """Hosts at distances from their only router that are proportional to their last miles."""
    delays_us = {name: link.ab.delay_us for name, link in underlay.last_mile.items()}
    longest_us = max(delays_us.values(), default=0) or 1
    reach = math.sqrt(len(delays_us) + 1)
    return {
        name: _at_angle(number * _GOLDEN_ANGLE) * reach * (0.1 + delay_us / longest_us)
        for number, (name, delay_us) in enumerate(delays_us.items())
    }


def _place_domains(underlay: Underlay) -> Positions:
    """Transit-stub routers as rings of rings."""
    graph = _router_graph(underlay)
    stubs_of = _stub_domains(underlay, graph)
    domains = [
        _in_a_ring([_around_transit_router(graph, name, stubs_of[name]) for name in names])
        for names in _transit_domains(underlay)
    ]
    return _in_a_ring(domains).positions


def _transit_domains(underlay: Underlay) -> list[list[str]]:
    """The names of transit routers by domain, from their labels (T:domain.number)."""
    domains: dict[str, list[str]] = {}
    for router in underlay.routers:
        if router.role == "transit":
            match = _TRANSIT_DOMAIN.match(router.label)
            domains.setdefault(match[1] if match else "", []).append(router.name)
    return list(domains.values())


def _stub_domains(underlay: Underlay, graph: nx.Graph) -> dict[str, list[list[str]]]:
    """For each transit router the stub domains that are nearest to it."""
    transit = [router.name for router in underlay.routers if router.role == "transit"]
    anchor = dict(zip(transit, transit, strict=True))
    frontier = transit
    while frontier:
        found = []
        for name in frontier:
            for neighbour in graph[name]:
                if neighbour not in anchor:
                    anchor[neighbour] = anchor[name]
                    found.append(neighbour)
        frontier = found
    domains: dict[str, list[list[str]]] = {name: [] for name in transit}
    for name in transit:
        crowd = [other for other in graph if anchor[other] == name and other != name]
        for piece in nx.connected_components(_part(graph, crowd)):
            domains[name].append([other for other in crowd if other in piece])
    return domains


def _part(graph: nx.Graph, nodes: list[str]) -> nx.Graph:
    """A subgraph with its nodes in a given order; that of NetworkX has the order of a set."""
    part = nx.Graph()
    part.add_nodes_from(nodes)
    part.add_edges_from(edge for edge in graph.edges(nodes) if edge[1] in part)
    return part


def _around_transit_router(graph: nx.Graph, transit: str, domains: list[list[str]]) -> _Disc:
    """A transit router with its stub domains around it."""
    ring = _in_a_ring([_stub_disc(graph, transit, domain) for domain in domains], least_radius=2.6)
    return _Disc(ring.positions | {transit: np.zeros(2)}, ring.radius)


def _stub_disc(graph: nx.Graph, transit: str, domain: list[str]) -> _Disc:
    """The routers of a stub domain, with those next to the transit router on the left."""
    radius = 0.75 * math.sqrt(len(domain))
    layout = _place_by_force(_part(graph, domain))
    points = np.array([layout[name] for name in domain])
    points -= points.mean(axis=0)
    points *= radius / max(float(np.hypot(*points.T).max()), 1e-9)
    gateways = [number for number, name in enumerate(domain) if graph.has_edge(name, transit)]
    x, y = points[gateways].mean(axis=0) if gateways else (-1.0, 0.0)
    turned = _turned(points, math.pi - math.atan2(y, x))
    return _Disc(dict(zip(domain, turned, strict=True)), radius + 0.5)


def _in_a_ring(discs: Sequence[_Disc], least_radius: float = 0.0) -> _Disc:
    """Discs side by side in a ring, each rotated so that its left side faces the centre."""
    if len(discs) == 1 and not least_radius:
        return discs[0]
    if not discs:
        return _Disc({}, 0.5)
    ring_radius = max(least_radius, _ring_radius([disc.radius for disc in discs]))
    shares = [math.asin(min(1.0, disc.radius / ring_radius)) for disc in discs]
    gap = (2 * math.pi - 2 * sum(shares)) / len(discs)
    positions: Positions = {}
    angle = math.pi / 2
    for disc, share in zip(discs, shares, strict=True):
        angle += share + gap / 2
        centre = _at_angle(angle) * ring_radius
        for name, point in disc.positions.items():
            positions[name] = centre + _turned(point[None, :], angle)[0]
        angle += share + gap / 2
    return _Disc(positions, ring_radius + max(disc.radius for disc in discs))


def _ring_radius(radii: Sequence[float]) -> float:
    """The radius of the smallest ring on which discs of these radii do not overlap."""
    low, high = max(radii), sum(radii) + max(radii)
    for _ in range(50):
        middle = (low + high) / 2
        fits = sum(math.asin(min(1.0, radius / middle)) for radius in radii) <= math.pi
        low, high = (low, middle) if fits else (middle, high)
    return high


def _ring(count: int, radius: float, start: float) -> list[Point]:
    return [_at_angle(start + 2 * math.pi * n / count) * radius for n in range(count)]


def _at_angle(angle: float) -> Point:
    return np.array([math.cos(angle), math.sin(angle)])


def _turned(points: Point, angle: float) -> Point:
    cosine, sine = math.cos(angle), math.sin(angle)
    turned: Point = points @ np.array([[cosine, sine], [-sine, cosine]])
    return turned
