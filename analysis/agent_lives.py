"""The start and end of each agent of a run, determined once for tables, metrics and checks."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.agent_records import AgentRecord, AgentRecords

_KINDS = ("agent_started", "agent_left", "agent_ended")


@dataclass(frozen=True)
class AgentLives:
    """The lives of the agents of each host.

    `ends` are the times at which agents ended during the run. `reports` are the records
    `agent_ended`, with the counts of agents, of agents that were alive at the end. `at_end` are the
    hosts with an agent at the end; if no agent reported, all hosts with records.
    """

    ends: tuple[tuple[str, int], ...]
    reports: Mapping[str, AgentRecord]
    at_end: frozenset[str]
    lasting: Mapping[str, AgentRecord]
    notes: tuple[str, ...] = ()

    @property
    def ended(self) -> frozenset[str]:
        """The hosts whose agents did not run during the whole run."""
        return frozenset(host for host, _ in self.ends)

    def ends_frame(self) -> pd.DataFrame:
        """`ends` as a frame: `host`, `end_us`."""
        hosts, times = [host for host, _ in self.ends], [end_us for _, end_us in self.ends]
        return pd.DataFrame(
            {"host": pd.array(hosts, dtype=object), "end_us": pd.array(times, dtype="int64")}
        )


def read_lives(records: AgentRecords, planned: Sequence[tuple[int, str]]) -> AgentLives:
    """The lives of all agents; `planned` are the times and hosts of faults that end agents.

    An agent ends by a fault, by a record that it leaves, or before its next start. An agent without
    a known end, while others reported their counts, ended after its last record.
    """
    rows = records.rows(*_KINDS)
    last_us = records.last_us()
    reports = {row.host: row for row in rows if row.what == "agent_ended"}
    starts = Counter(row.host for row in rows if row.what == "agent_started")
    known = {(host, time_us) for time_us, host in planned} | set(_recorded_ends(rows))
    named = {host for host, _ in known}
    silent = set(last_us) - set(reports) - named if reports else set()
    ends = known | {(host, last_us[host]) for host in silent}
    left = _hosts_left(rows)
    lasting = {
        host: row for host, row in reports.items() if starts[host] <= 1 and host not in named
    }
    at_end = frozenset((reports.keys() or last_us.keys()) - left)
    notes = tuple(_notes(last_us, reports, left, starts))
    return AgentLives(tuple(sorted(ends)), reports, at_end, lasting, notes)


def _recorded_ends(rows: Sequence[AgentRecord]) -> Iterator[tuple[str, int]]:
    started: set[str] = set()
    for row in rows:
        if row.what == "agent_left" or (row.what == "agent_started" and row.host in started):
            yield row.host, row.time_us
        if row.what == "agent_started":
            started.add(row.host)


def _hosts_left(rows: Sequence[AgentRecord]) -> set[str]:
    """The hosts whose agents left and did not start again."""
    left: set[str] = set()
    for row in rows:
        if row.what == "agent_left":
            left.add(row.host)
        elif row.what == "agent_started":
            left.discard(row.host)
    return left


def _notes(
    last_us: Mapping[str, int],
    reports: Mapping[str, AgentRecord],
    left: set[str],
    starts: Mapping[str, int],
) -> Iterator[str]:
    """Notes for metrics about the peers at the end."""
    if not reports:
        yield "no agent recorded its end: every host with records counts as a peer"
        return
    dead = last_us.keys() - reports.keys()
    if dead:
        yield (
            f"{_agents(len(dead))} ended before the end of the run: not peers of the overlay, and "
            "their messages are not counted"
        )
    if left:
        yield f"{_agents(len(left))} left before the end of the run: not peers of the overlay"
    again = sum(count > 1 for count in starts.values())
    if again:
        yield f"{_agents(again)} restarted: messages sent before are not counted"


def _agents(count: int) -> str:
    return "1 agent" if count == 1 else f"{count:,} agents"
