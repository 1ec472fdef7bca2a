"""The tables about the overlay and the true network; small enough to be computed without Spark."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.overlay import FoundRoute, Overlay
from analysis.tables.events import host_names
from analysis.tables.host_paths import HostPaths
from analysis.unicast import Unicast

_SILENT = "*"
_TEXTS = pa.list_(pa.string())


def unicast_table(unicast: Unicast, paths: HostPaths) -> pa.Table:
    """Every ordered pair of hosts: the route's delay and links, and the shortest overlay path."""
    source, target = np.nonzero(~np.eye(len(unicast.number), dtype=bool))
    hosts = pa.array(list(unicast.number), pa.string())
    return pa.table(
        {
            "source": hosts.take(pa.array(source)),
            "target": hosts.take(pa.array(target)),
            "delay_us": pa.array(unicast.delay_us[source, target], pa.int64()),
            "crossings": pa.array(unicast.crossings[source, target], pa.int64()),
            "overlay_us": pa.array(
                paths.overlay_us[source, target], pa.int64(), mask=~paths.is_reached[source, target]
            ),
        }
    )


def overlay_edges_table(truth: Unicast, overlay: Overlay | None) -> pa.Table:
    """The links of the overlay."""
    rows = []
    for a, b in sorted(overlay.links, key=_ends_in(truth)) if overlay else ():
        there, back = truth.number[a], truth.number[b]
        rows.append(
            {
                "a": a,
                "b": b,
                "is_distant": overlay is not None and (a, b) in overlay.distant,
                "delay_us": int(truth.delay_us[there, back]),
                "delay_back_us": int(truth.delay_us[back, there]),
                "crossings": int(truth.crossings[there, back]),
            }
        )
    fields = {"a": pa.string(), "b": pa.string(), "is_distant": pa.bool_()}
    numbers = dict.fromkeys(("delay_us", "delay_back_us", "crossings"), pa.int64())
    return pa.Table.from_pylist(rows, pa.schema({**fields, **numbers}))


def routes_table(truth: Unicast, overlay: Overlay | None) -> pa.Table:
    """The routes that agents found, and the true ones."""
    name_at = host_names(truth.underlay)
    rows: list[dict[str, Any]] = []
    if overlay is not None:
        for how, routes in (("inferred", overlay.inferred), ("known", overlay.known)):
            rows += _route_rows(truth, name_at, how, routes)
    fields = {"source": pa.string(), "target": pa.string(), "how": pa.string(), "routers": _TEXTS}
    rest = {"is_reached": pa.bool_(), "true_routers": _TEXTS, "is_true": pa.bool_()}
    return pa.Table.from_pylist(rows, pa.schema({**fields, **rest}))


def route_links(truth: Unicast, pairs: Iterable[tuple[str, str]]) -> pa.Table:
    """The links that packets cross from the first host of each pair to the second."""
    links = truth.underlay.links
    way = {(link.a, link.b): (link.name, "ab") for link in links}
    way |= {(link.b, link.a): (link.name, "ba") for link in links}
    rows = []
    for source, target in sorted(set(pairs)):
        path = truth.routes.path(source, target)
        for here, there in pairwise(path):
            link, direction = way[here, there]
            rows.append((source, target, link, direction))
    columns = list(zip(*rows, strict=True)) or [()] * 4
    names = ("from_host", "host", "link", "direction")
    return pa.table({n: pa.array(c, pa.string()) for n, c in zip(names, columns, strict=True)})


def _route_rows(
    truth: Unicast,
    name_at: Mapping[int, str],
    how: str,
    routes: Iterable[FoundRoute],
) -> Iterable[dict[str, Any]]:
    for route in routes:
        found = [
            _SILENT if not at else name_at.get(at) or str(IPv4Address(at)) for at in route.routers
        ]
        is_known = route.source in truth.number and route.target in truth.number
        true = truth.routes.path(route.source, route.target)[1:-1] if is_known else None
        yield {
            "source": route.source,
            "target": route.target,
            "how": how,
            "routers": found,
            "is_reached": route.is_reached,
            "true_routers": true,
            "is_true": true is not None and route.is_reached and _agrees(found, true),
        }


def _agrees(found: list[str], true: list[str]) -> bool:
    """Whether a route has the right routers, and silent ones only where there is some router."""
    return len(found) == len(true) and all(
        one in (_SILENT, other) for one, other in zip(found, true, strict=True)
    )


def _ends_in(truth: Unicast) -> Any:
    return lambda link: tuple(truth.number[end] for end in link)
