"""The links of the discovery overlay at any time of a run, for runs in which they change.

The rules are those of `analysis.overlay`: a link is there while both of its ends hold it and the
agents of both run. An agent that starts holds no links; one that ended has none, though its
neighbours may hold theirs until they notice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from analysis.agent_lives import AgentLives
from analysis.agent_records import AgentRecords
from analysis.overlay import PeerLink
from analysis.unicast import Numbers
from topologies.underlay import Underlay

_KINDS = ("agent_started", "neighbour_added", "neighbour_removed")


class LinkChange(NamedTuple):
    """A link that appears, or one that is there and disappears."""

    time_us: int
    link: PeerLink


@dataclass(frozen=True)
class OverlayHistory:
    """All changes of links in the order of their times, beginning without any link.

    A link has its ends in the order of the hosts.
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
    underlay: Underlay, records: AgentRecords, lives: AgentLives
) -> OverlayHistory | None:
    """The links over time; None if none can change after the first event is published."""
    if not _may_change(records, lives):
        return None
    order = {host.name: number for number, host in enumerate(underlay.hosts)}
    host_at = {int(IPv4Address(at)): name for at, name in underlay.name_at.items()}
    folding = _Folding(order)
    ends = sorted(lives.ends, key=lambda end: end[1], reverse=True)
    for record in records.rows(*_KINDS):
        # An agent that starts again ended before, at the latest at the same time.
        while ends and ends[-1][1] <= record.time_us:
            folding.end(*ends.pop())
        peer = host_at.get(record.values.get("peer", 0))
        if record.what == "agent_started":
            folding.start(record.host, record.time_us)
        elif peer in order:
            folding.hold(record.host, peer, record.what == "neighbour_added", record.time_us)
    for end in reversed(ends):
        folding.end(*end)
    return OverlayHistory(tuple(folding.changes))


def _may_change(records: AgentRecords, lives: AgentLives) -> bool:
    """Whether anything that changes links is as late as the first event or later."""
    what, time_us = records.table["what"], records.table["time_us"]
    first_us = pc.min(time_us.filter(pc.equal(what, "event_published"))).as_py()
    if first_us is None:
        return False
    is_late = pc.greater_equal(time_us, first_us)
    late = set(what.filter(is_late).unique().to_pylist())
    return bool(late & set(_KINDS)) or any(end_us >= first_us for _, end_us in lives.ends)


class _Folding:
    """Who holds which links after some of the records."""

    def __init__(self, order: dict[str, int]) -> None:
        self._order = order
        self._views: dict[str, set[str]] = {host: set() for host in order}
        self._ended: set[str] = set()
        self.changes: list[LinkChange] = []

    def start(self, host: str, time_us: int) -> None:
        """An agent starts, with no links."""
        self._drop_all(host, time_us)
        self._ended.discard(host)

    def end(self, host: str, time_us: int) -> None:
        """An agent ends; what is recorded of it until it starts again does not count."""
        self._drop_all(host, time_us)
        self._ended.add(host)

    def hold(self, host: str, peer: str, is_held: bool, time_us: int) -> None:
        """An agent gets a neighbour, or loses it."""
        view = self._views.get(host)
        if view is None or host in self._ended or (peer in view) == is_held:
            return
        view ^= {peer}
        if host in self._views[peer]:
            pair = (host, peer) if self._order[host] < self._order[peer] else (peer, host)
            self.changes.append(LinkChange(time_us, pair))

    def _drop_all(self, host: str, time_us: int) -> None:
        for peer in sorted(self._views.get(host, ())):
            self.hold(host, peer, is_held=False, time_us=time_us)
