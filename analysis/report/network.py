"""The map of a report: nodes, links with their load, the overlay and the routing trees.

Nodes are numbered and columns are lists, so that the data of thousands of nodes stay small.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from ipaddress import IPv4Address
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from analysis.report.reported_run import ReportedRun
from topologies.layout import place_nodes
from topologies.routes import Routes
from topologies.underlay import Host, Router, Underlay

Columns = dict[str, Any]
Pair = tuple[str, str]

_ROUTER, _TRANSIT, _HOST = range(3)
_OF_EVENTS = ("max_stress", "mean_stress", "event_packets")
_LOADS = ("max_stress", "event_packets", "packets", "bytes")


class Measure(NamedTuple):
    """A value of links that the map can show; `short` is the title of a column."""

    key: str
    label: str
    short: str


_MEASURES = (
    Measure("max_stress", "highest link stress", "highest stress"),
    Measure("mean_stress", "mean link stress", "mean stress"),
    Measure("event_packets", "packets with events", "event packets"),
    Measure("packets", "packets", "packets"),
    Measure("bytes", "bytes", "bytes"),
    Measure("overlay_links", "overlay links across it", "overlay links"),
)


def node_columns(underlay: Underlay) -> Columns:
    """All nodes, routers first; y grows downwards, as on screens."""
    positions = place_nodes(underlay)
    kinds = [_TRANSIT if router.role == "transit" else _ROUTER for router in underlay.routers]
    nodes: tuple[Router | Host, ...] = (*underlay.routers, *underlay.hosts)
    names = [node.name for node in nodes]
    return {
        "name": names,
        "x": [round(float(positions[name][0]), 3) for name in names],
        "y": [round(-float(positions[name][1]), 3) for name in names],
        "kind": kinds + [_HOST] * len(underlay.hosts),
        "silent": [int(getattr(node, "anonymous", False)) for node in nodes],
        "address": [underlay.address[name] for name in names],
        "label": [node.label for node in nodes],
    }


def link_columns(run: ReportedRun, underlay: Underlay) -> Columns:
    """All links with their delays and, for each measure that the run gives, two columns."""
    number = {name: index for index, name in enumerate(underlay.node_names)}
    found = _loads(run, underlay) | _mean_stress(run, underlay) | _overlay_links(run, underlay)
    has_events = any(found.get("event_packets_ab", ())) or any(found.get("event_packets_ba", ()))
    measures = [
        measure
        for measure in _MEASURES
        if f"{measure.key}_ab" in found and (has_events or measure.key not in _OF_EVENTS)
    ]
    kept = {f"{measure.key}_{way}" for measure in measures for way in ("ab", "ba")}
    return {
        "a": [number[link.a] for link in underlay.links],
        "b": [number[link.b] for link in underlay.links],
        "delay_ab": [link.ab.delay_us for link in underlay.links],
        "delay_ba": [link.ba.delay_us for link in underlay.links],
        **{name: column for name, column in found.items() if name in kept},
        "measures": [measure._asdict() for measure in measures],
        "missing": "The run has no packets and no overlay, so its links have no load.",
    }


def _loads(run: ReportedRun, underlay: Underlay) -> Columns:
    table = run.table("link_loads", ("link", "direction", *_LOADS))
    if table is None or not table.num_rows:
        return {}
    columns: Columns = {}
    for key in _LOADS:
        columns |= _spread(underlay, table, key)
    return columns


def _mean_stress(run: ReportedRun, underlay: Underlay) -> Columns:
    table = run.table("stress", ("link", "direction", "copies"))
    if table is None or not table.num_rows:
        return {}
    means = table.group_by(["link", "direction"]).aggregate([("copies", "mean")])
    rounded = pc.round(means["copies_mean"], 4)
    return _spread(underlay, means.append_column("mean_stress", rounded), "mean_stress")


def _spread(underlay: Underlay, table: pa.Table, key: str) -> Columns:
    """A column of a table by link and direction as two columns in the order of the links."""
    columns = (table[name].to_pylist() for name in ("link", "direction", key))
    value = {(link, way): value for link, way, value in zip(*columns, strict=True)}
    return {
        f"{key}_{way}": [value.get((link.name, way)) or 0 for link in underlay.links]
        for way in ("ab", "ba")
    }


def _overlay_links(run: ReportedRun, underlay: Underlay) -> Columns:
    """The number of overlay links across each link, along the routes of both directions."""
    edges = overlay_edges(run)
    if edges is None:
        return {}
    routes = run.unicast.routes if run.unicast is not None else Routes(underlay)
    is_directed = run.overlay is not None and run.overlay.is_directed
    crossed = Counter(
        step
        for a, b, _ in edges
        for ends in (((a, b),) if is_directed else ((a, b), (b, a)))
        for step in pairwise(routes.path(*ends))
    )
    return {
        "overlay_links_ab": [crossed[link.a, link.b] for link in underlay.links],
        "overlay_links_ba": [crossed[link.b, link.a] for link in underlay.links],
    }


def overlay_edges(run: ReportedRun) -> list[tuple[str, str, bool]] | None:
    """The overlay at the end of a run: both ends, and whether the link is a distant one."""
    table = run.table("overlay_edges", ("a", "b", "is_distant"))
    if table is not None and table.num_rows:
        return sorted(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))
    if run.overlay is None or not run.overlay.links:
        return None
    return sorted((a, b, (a, b) in run.overlay.distant) for a, b in run.overlay.links)


def overlay_pairs(run: ReportedRun, underlay: Underlay) -> dict[str, list[int]] | None:
    """The overlay as pairs of node numbers, one after another; opposite links are one line."""
    edges = overlay_edges(run)
    if edges is None:
        return None
    if run.overlay is not None and run.overlay.is_directed:
        edges = sorted({(min(a, b), max(a, b), is_distant) for a, b, is_distant in edges})
    return {
        "near": _flat(underlay, ((a, b) for a, b, is_distant in edges if not is_distant)),
        "distant": _flat(underlay, ((a, b) for a, b, is_distant in edges if is_distant)),
    }


def tree_list(run: ReportedRun, underlay: Underlay) -> list[Columns]:
    """Every version of the routing tree that has links."""
    table = run.table("tree_edges", ("version", "a", "b", "added_us", "removed_us"))
    rows = table.to_pylist() if table is not None else []
    cores = _cores(run, underlay)
    trees = []
    for version in sorted({row["version"] for row in rows if row["version"] is not None}):
        pairs = list(_standing([row for row in rows if row["version"] == version]))
        named = cores.get(version, [])
        words = f"version {version}: {len(pairs):,} links"
        trees.append(
            {
                "version": version,
                "links": _flat(underlay, pairs),
                "cores": named,
                "root": named[0] if named else None,
                "label": f"{words}, {len(named)} cores" if named else words,
            }
        )
    return trees


def _standing(rows: Sequence[Columns]) -> Iterator[Pair]:
    """The links of a version at the end; of a dropped version, when it had most links."""
    last = [row for row in rows if row["removed_us"] is None]
    if not last:
        moment = max(
            (row["added_us"] for row in rows),
            key=lambda at_us: (sum(_is_there(row, at_us) for row in rows), at_us),
        )
        last = [row for row in rows if _is_there(row, moment)]
    yield from sorted({(row["a"], row["b"]) for row in last})


def _is_there(row: Columns, at_us: int) -> bool:
    return bool(row["added_us"] <= at_us < row["removed_us"])


def _cores(run: ReportedRun, underlay: Underlay) -> dict[int, list[int]]:
    """The cores of each version, the root first, as far as agents recorded them."""
    number = {name: index for index, name in enumerate(underlay.node_names)}
    found: dict[int, list[int]] = {}
    for record in run.records("cores_selected"):
        addresses = [str(record.values["root"]), *str(record.values["cores"]).split()]
        names = [underlay.name_at.get(str(IPv4Address(int(at)))) for at in addresses]
        some = [number[name] for name in names if name is not None]
        found[int(record.values["version"])] = list(dict.fromkeys(some))
    return found


def _flat(underlay: Underlay, pairs: Iterable[Pair]) -> list[int]:
    number = {name: index for index, name in enumerate(underlay.node_names)}
    return [number[end] for a, b in pairs if a in number and b in number for end in (a, b)]
