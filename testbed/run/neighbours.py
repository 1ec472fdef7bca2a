"""The similarity of the interests of overlay neighbours, recorded with the outcome of a run.

Routing by interests can save traffic only if neighbours are similar. Claims about workloads with
hotspots should be compared with this value.
"""

import json
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address
from pathlib import Path

import pyarrow.parquet as pq

from topologies.underlay import Underlay
from workloads.similarity import mean_of_links, mean_of_pairs, similarities
from workloads.workload import Workload

_KINDS = ["agent_started", "neighbour_added", "neighbour_removed"]
Change = tuple[str, str, int]  # host, what, address of the neighbour


def similarity_figures(
    records: Path, underlay: Underlay, workload: Workload | None
) -> dict[str, float | None]:
    """The mean similarity of overlay neighbours at the end, and of all pairs of peers."""
    if workload is None or not len(workload.publications):
        return {}
    names = [host.name for host in underlay.hosts]
    found = similarities(workload, len(names))
    links = last_links(_changes(records), names, underlay)
    return {
        "similarity_of_neighbours": _rounded(mean_of_links(found, links)),
        "similarity_of_pairs": _rounded(mean_of_pairs(found)),
    }


def last_links(
    changes: Iterable[Change], names: Sequence[str], underlay: Underlay
) -> set[tuple[int, int]]:
    """The links that both ends held last, as pairs of numbers of hosts."""
    number = {name: at for at, name in enumerate(names)}
    at_address = {int(IPv4Address(underlay.address[name])): number[name] for name in names}
    held: dict[int, set[int]] = {}
    for host, what, address in changes:
        own = held.setdefault(number[host], set())
        if what == "agent_started":
            own.clear()
        elif what == "neighbour_added":
            own.add(at_address[address])
        else:
            own.discard(at_address[address])
    return {(a, b) for a, others in held.items() for b in others if a < b and a in held.get(b, ())}


def _changes(records: Path) -> Iterable[Change]:
    columns = ["host", "what", "values"]
    rows = pq.read_table(records, columns=columns, filters=[("what", "in", _KINDS)]).to_pylist()
    return (
        (row["host"], row["what"], int(json.loads(row["values"]).get("peer", 0))) for row in rows
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
