"""The routing tables of all agents at one time: when all were ready, else at the end of the run.

A table has an entry for each link to a running peer, and for each role of the link.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow.compute as pc

from analysis.agent_lives import AgentLives
from analysis.agent_records import AgentRecords
from analysis.held_links import KINDS, HeldLinks
from analysis.readiness import NEVER_US
from analysis.run_directory import RecordedRun
from analysis.tables.events import host_names

RING_BITS = 64
_FULL_RING = f"{1 << RING_BITS:x}"


class TableEntry(NamedTuple):
    """An entry: the agent and the peer as indices of `hosts`, and the role of the link."""

    owner: int
    peer: int
    role: str


class Place(NamedTuple):
    """The place of an agent: a position on a ring, or the identifier of routes."""

    position: int | None
    modulus: int
    id: int | None


@dataclass(frozen=True)
class AgentTables:
    """The tables of agents at one time.

    `hosts` are those whose agents ran then, in the order of the underlay. `is_ready` says whether
    all of them were ready. Entries are in the order of owners, and of each owner in the order in
    which they were made. `places` are of the hosts whose agents recorded one. `pubsub` has the
    entries and the different peers in the tables of the publish/subscribe layer, where it counts
    them.
    """

    at_us: int
    is_ready: bool
    hosts: tuple[str, ...]
    entries: tuple[TableEntry, ...]
    places: Mapping[str, Place]
    is_directed: bool
    pubsub: Mapping[str, tuple[int, int]]


def read_agent_tables(run: RecordedRun) -> AgentTables:
    """The tables of a run at the start of its measured window, or at its end if it has none."""
    start_us = run.window_start_us
    is_ready = start_us is not None and start_us != NEVER_US
    at_us = start_us if start_us is not None and is_ready else end_us(run)
    records = run.records.until(at_us)
    running = _running(records, run.lives, at_us) if is_ready else run.lives.at_end
    hosts = tuple(host.name for host in run.underlay.hosts if host.name in running)
    held = HeldLinks(host_names(run.underlay))
    for record in records.rows(*KINDS):
        held.take(record)
    return AgentTables(
        at_us,
        is_ready,
        hosts,
        tuple(_entries(held, hosts)),
        _places(records, hosts),
        run.has_directed_overlay,
        {
            row.host: (row.values["entries"], row.values["peers"])
            for row in records.rows("table_counted")
            if row.host in running
        },
    )


def end_us(run: RecordedRun) -> int:
    """The planned end of a run, or the time of its last record."""
    return run.duration_us or max(run.records.last_us().values(), default=0)


def last_change_us(records: AgentRecords) -> int | None:
    """When an agent last changed its table; None if none ever did."""
    table = records.table
    is_change = pc.is_in(table["what"], value_set=pc.cast(list(KINDS), table["what"].type))
    last: int | None = pc.max(table["time_us"].filter(is_change)).as_py()
    return last


def _running(records: AgentRecords, lives: AgentLives, at_us: int) -> set[str]:
    """The hosts with running agents at a time, from all records until then."""
    started_us = {row.host: row.time_us for row in records.rows("agent_started")}
    ended_us: dict[str, int] = {}
    for host, time_us in lives.ends:
        if time_us <= at_us:
            ended_us[host] = max(time_us, ended_us.get(host, 0))
    hosts = records.last_us()
    # An agent that starts again ended before, at the latest at the same time.
    return {h for h in hosts if h not in ended_us or started_us.get(h, -1) >= ended_us[h]}


def _entries(held: HeldLinks, hosts: Sequence[str]) -> Iterator[TableEntry]:
    number = {host: place for place, host in enumerate(hosts)}
    for host in hosts:
        for peer, roles in held.of.get(host, {}).items():
            if peer in number and peer != host:
                yield from (TableEntry(number[host], number[peer], role) for role in roles)


def _places(records: AgentRecords, hosts: Sequence[str]) -> dict[str, Place]:
    """The last place that each agent recorded."""
    wanted = set(hosts)
    found = {}
    for row in records.rows("placed"):
        position, number = (row.values.get(name) for name in ("position", "id"))
        if row.host in wanted:
            found[row.host] = Place(
                None if position is None else int(position, 16),
                int(row.values.get("modulus", _FULL_RING), 16),
                None if number is None else int(number, 16),
            )
    return found
