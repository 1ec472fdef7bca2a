"""The links of the underlay on the routes that agents found, compared with the true ones.

A link is known if two consecutive routers answered, or a router and the host next to it. Next to a
silent router no link is known.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from itertools import pairwise

import numpy as np

from analysis.overlay import FoundRoute
from analysis.unicast import LinkSet, Unicast
from topologies.underlay import Underlay

SILENT = 0


@dataclass(frozen=True)
class FoundLinks:
    """The existing links on some routes, and the number of links on them that do not exist.

    `probed` are the links, and `probed_routers` the routers, on the true routes of the same pairs.
    """

    true: LinkSet
    false: int
    probed: LinkSet
    routers: frozenset[int]
    probed_routers: frozenset[int]


def find_links(unicast: Unicast, routes: Sequence[FoundRoute]) -> FoundLinks:
    """The links on routes, compared with those on the true routes."""
    numbers = _link_numbers(unicast.underlay)
    seen = {link for route in routes for link in _links_of(unicast.underlay, route)}
    true = np.zeros(len(unicast.underlay.links), dtype=np.bool_)
    true[[numbers[link] for link in seen if link in numbers]] = True
    pairs = {(route.source, route.target) for route in routes if _is_possible(unicast, route)}
    return FoundLinks(
        true,
        sum(link not in numbers for link in seen),
        unicast.links_on(pairs),
        frozenset(router for route in routes for router in route.routers if router != SILENT),
        frozenset(router for way in unicast.routers_on(pairs) for router in way),
    )


def count_true_routes(unicast: Unicast, routes: Sequence[FoundRoute]) -> int:
    """The number of routes with the true routers, and silent ones only where there is a router."""
    whole = [route for route in routes if route.is_reached and _is_possible(unicast, route)]
    ways = unicast.routers_on([(route.source, route.target) for route in whole])
    return sum(_agrees(route.routers, way) for route, way in zip(whole, ways, strict=True))


def _agrees(found: tuple[int, ...], true: tuple[int, ...]) -> bool:
    return len(found) == len(true) and all(
        one in (SILENT, other) for one, other in zip(found, true, strict=True)
    )


def _is_possible(unicast: Unicast, route: FoundRoute) -> bool:
    """Whether the ends of a route are two hosts of the underlay."""
    hosts = unicast.underlay.access_router
    return route.source in hosts and route.target in hosts and route.source != route.target


def _links_of(underlay: Underlay, route: FoundRoute) -> Iterator[frozenset[int]]:
    nodes = [_address(underlay, route.source), *route.routers]
    if route.is_reached:
        nodes.append(_address(underlay, route.target))
    for here, there in pairwise(nodes):
        if SILENT not in (here, there) and here != there:
            yield frozenset((here, there))


def _address(underlay: Underlay, host: str) -> int:
    """The address of a host; an unknown host has its address as its name."""
    return int(IPv4Address(underlay.address.get(host, host)))


def _link_numbers(underlay: Underlay) -> dict[frozenset[int], int]:
    at = {name: int(IPv4Address(address)) for name, address in underlay.address.items()}
    return {frozenset((at[link.a], at[link.b])): n for n, link in enumerate(underlay.links)}
