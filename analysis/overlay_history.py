"""The links of the overlay at any time of a run, for runs in which they change.

The rules are those of `analysis.overlay`: a link is there while both of its ends hold it (in a
directed overlay, its owner) and the agents of both run. An agent that starts holds no links; one
that ended has none, though its neighbours may hold theirs until they notice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from analysis.agent_lives import AgentLives
from analysis.agent_records import AgentRecords
from analysis.held_links import KINDS, HeldLinks
from analysis.overlay import PeerLink
from analysis.unicast import Numbers
from topologies.underlay import Underlay


class LinkChange(NamedTuple):
    """A link that appears, or one that is there and disappears."""

    time_us: int
    link: PeerLink


@dataclass(frozen=True)
class OverlayHistory:
    """All changes of links in the order of their times, beginning without any link.

    A link has its ends in the order of the hosts, in a directed overlay its owner first.
    """

    changes: tuple[LinkChange, ...]

    def steps(self, times_us: Numbers) -> Iterator[tuple[Numbers, frozenset[PeerLink]]]:
        """Places of times between which no link changes, with the links that there are then.

        A change counts from its own time on.
        """
        changed_us = np.array([change.time_us for change in self.changes], dtype=np.int64)
        counts = np.searchsorted(changed_us, times_us, side="right")
        links: set[PeerLink] = set()
        done = 0
        for count in np.unique(counts).tolist():
            for change in self.changes[done:count]:
                links ^= {change.link}
            done = count
            yield np.flatnonzero(counts == count), frozenset(links)


def fold_history(
    underlay: Underlay, records: AgentRecords, lives: AgentLives, is_directed: bool = False
) -> OverlayHistory | None:
    """The links over time; None if none can change after the first event is published."""
    if not _may_change(records, lives):
        return None
    host_at = {int(IPv4Address(at)): name for at, name in underlay.name_at.items()}
    held = HeldLinks(host_at)
    folding = _Folding([host.name for host in underlay.hosts], is_directed)
    ends = sorted(lives.ends, key=lambda end: end[1], reverse=True)
    for record in records.rows(*KINDS):
        # An agent that starts again ended before, at the latest at the same time.
        while ends and ends[-1][1] <= record.time_us:
            folding.end(*ends.pop())
        held.take(record)
        peer = host_at.get(record.values.get("peer", 0), "")
        if record.what == "agent_started":
            folding.start(record.host, record.time_us)
        else:
            folding.hold(record.host, peer, peer in held.of[record.host], record.time_us)
    for end in reversed(ends):
        folding.end(*end)
    return OverlayHistory(tuple(folding.changes))


def _may_change(records: AgentRecords, lives: AgentLives) -> bool:
    """Whether a record that changes links is not earlier than the first event."""
    what, time_us = records.table["what"], records.table["time_us"]
    first_us = pc.min(time_us.filter(pc.equal(what, "event_published"))).as_py()
    if first_us is None:
        return False
    is_late = pc.greater_equal(time_us, first_us)
    late = set(what.filter(is_late).unique().to_pylist())
    return bool(late & set(KINDS)) or any(end_us >= first_us for _, end_us in lives.ends)


class _Folding:
    """The links of agents after some of the records."""

    def __init__(self, hosts: Sequence[str], is_directed: bool) -> None:
        self._order = {host: number for number, host in enumerate(hosts)}
        self._is_directed = is_directed
        self._views: dict[str, set[str]] = {host: set() for host in hosts}
        self._ended: set[str] = set()
        self._links: set[PeerLink] = set()
        self.changes: list[LinkChange] = []

    def start(self, host: str, time_us: int) -> None:
        """An agent starts, with no links."""
        self._drop_all(host, time_us)
        self._ended.discard(host)
        self._update_incoming(host, time_us)

    def end(self, host: str, time_us: int) -> None:
        """An agent ends; its records until its next start do not count."""
        self._drop_all(host, time_us)
        self._ended.add(host)
        self._update_incoming(host, time_us)

    def hold(self, host: str, peer: str, is_held: bool, time_us: int) -> None:
        """An agent gets a neighbour, or loses it."""
        view = self._views.get(host)
        is_known = peer in self._views and host not in self._ended
        if view is None or not is_known or (peer in view) == is_held:
            return
        view ^= {peer}
        self._update(host, peer, time_us)

    def _drop_all(self, host: str, time_us: int) -> None:
        for peer in sorted(self._views.get(host, ())):
            self.hold(host, peer, is_held=False, time_us=time_us)

    def _update_incoming(self, host: str, time_us: int) -> None:
        """In a directed overlay, update the links to an agent that started or ended."""
        if self._is_directed:
            for owner in sorted(owner for owner, view in self._views.items() if host in view):
                self._update(owner, host, time_us)

    def _update(self, host: str, peer: str, time_us: int) -> None:
        """Record whether the link of two agents appeared or disappeared."""
        is_in_order = self._is_directed or self._order[host] < self._order[peer]
        link = (host, peer) if is_in_order else (peer, host)
        if self._is_there(host, peer) != (link in self._links):
            self._links ^= {link}
            self.changes.append(LinkChange(time_us, link))

    def _is_there(self, host: str, peer: str) -> bool:
        if peer not in self._views[host] or peer in self._ended:
            return False
        return self._is_directed or host in self._views[peer]
