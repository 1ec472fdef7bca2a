"""The overlay at the end of a run, from the records of its agents.

A peer records every neighbour that it gets or loses, and every route that it finds. An overlay link
is one that both of its ends hold (the TDO paper, section 2, assumes symmetric links); in a directed
overlay it exists while its owner holds it. The peers are the hosts whose agents ran to the end of
the run and had not left.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from analysis.agent_lives import AgentLives
from analysis.agent_records import AgentRecord, AgentRecords
from analysis.held_links import KINDS, HeldLinks, Roles
from topologies.underlay import Underlay

PeerLink = tuple[str, str]

_KINDS = (*KINDS, "route_inferred", "route_known")


@dataclass(frozen=True, slots=True)
class FoundRoute:
    """The routers from one host to another, as an agent found them; 0 is a silent one."""

    source: str
    target: str
    routers: tuple[int, ...]
    is_reached: bool = True


@dataclass(frozen=True)
class Overlay:
    """The peers at the end, their links, and the routes found during the run.

    A link has its ends in the order of the peers, in a directed overlay its owner first. It is
    distant if neither end holds it as a near one. `one_sided` counts links between peers that only
    one end holds, and `stale` those to hosts that are no longer peers.
    """

    peers: tuple[str, ...]
    near: frozenset[PeerLink] = frozenset()
    distant: frozenset[PeerLink] = frozenset()
    one_sided: int = 0
    stale: int = 0
    inferred: tuple[FoundRoute, ...] = ()
    known: tuple[FoundRoute, ...] = ()
    sent_by_kind: Mapping[str, int] = field(default_factory=dict)
    is_recorded: bool = True
    notes: tuple[str, ...] = ()
    is_directed: bool = False

    @property
    def links(self) -> frozenset[PeerLink]:
        """All links, near and distant."""
        return self.near | self.distant


def fold_overlay(
    underlay: Underlay,
    records: AgentRecords,
    lives: AgentLives,
    notes: Iterable[str] = (),
    is_directed: bool = False,
) -> Overlay:
    """The overlay at the end of a run; `notes` are notes for readers."""
    folding = _Folding({int(IPv4Address(at)): name for at, name in underlay.name_at.items()})
    for record in records.rows(*_KINDS):
        folding.take(record)
    peers = tuple(host.name for host in underlay.hosts if host.name in lives.at_end)
    near, distant, one_sided, stale = _match_views(peers, folding.held.of, is_directed)
    return Overlay(
        peers,
        near,
        distant,
        one_sided,
        stale,
        tuple(folding.inferred),
        tuple(folding.known),
        _total_by_kind(report.values for report in lives.reports.values()),
        folding.is_recorded,
        (*notes, *records.notes, *lives.notes),
        is_directed,
    )


class _Folding:
    """The state of every host after some of the records."""

    def __init__(self, host_at: Mapping[int, str]) -> None:
        self._host_at = host_at
        self.held = HeldLinks(host_at)
        self.inferred: list[FoundRoute] = []
        self.known: list[FoundRoute] = []
        self.is_recorded = False

    def take(self, record: AgentRecord) -> None:
        host, values = record.host, record.values
        match record.what:
            case "route_inferred":
                self.inferred.append(self._route(host, values["peer"], values))
            case "route_known":
                self.known.append(self._route(host, values["peer"], values))
            case _:
                self.held.take(record)
        self.is_recorded |= record.what != "agent_started"

    def _name(self, address: int) -> str:
        return self._host_at.get(address) or str(IPv4Address(address))

    def _route(self, host: str, peer: int, values: Mapping[str, object]) -> FoundRoute:
        routers = tuple(int(address) for address in str(values["routers"]).split())
        return FoundRoute(host, self._name(peer), routers, bool(values.get("is_reached", True)))


def _match_views(
    peers: tuple[str, ...], views: Mapping[str, Mapping[str, Roles]], is_directed: bool
) -> tuple[frozenset[PeerLink], frozenset[PeerLink], int, int]:
    """The near links, the distant ones, and the numbers of one-sided and of stale ones."""
    order = {name: number for number, name in enumerate(peers)}
    held: Counter[PeerLink] = Counter()
    near: set[PeerLink] = set()
    stale = 0
    for peer in peers:
        for other, roles in views.get(peer, {}).items():
            if other not in order:
                stale += 1
                continue
            is_in_order = is_directed or order[peer] < order[other]
            link = (peer, other) if is_in_order else (other, peer)
            held[link] += 1
            if not all(roles.values()):
                near.add(link)
    links = {link for link, ends in held.items() if is_directed or ends == 2}
    return frozenset(links & near), frozenset(links - near), len(held) - len(links), stale


def _total_by_kind(figures: Iterable[Mapping[str, int]]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for counts in figures:
        for name, count in counts.items():
            if name.startswith("sent_"):
                totals[name.removeprefix("sent_")] += count
    return dict(sorted(totals.items()))
