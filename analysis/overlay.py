"""The discovery overlay that a run ended with, folded from what its agents recorded.

A peer records every neighbour it gets and loses, and every route it finds out. An overlay link
is one that both of its ends hold (the TDO paper, section 2, takes links as symmetric), and the
peers are the hosts whose agents lived to the end of the run and had not left.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path

from analysis.agent_records import AgentRecord, AgentRecords, read_agent_records
from topologies.underlay import Underlay

PeerLink = tuple[str, str]

_KINDS = frozenset(
    {
        "agent_started",
        "agent_ended",
        "agent_left",
        "neighbour_added",
        "neighbour_removed",
        "route_inferred",
        "route_known",
    }
)
_CHANGES_OF_TRUTH = frozenset(
    {"link-down", "link-up", "router-down", "router-up", "partition", "delay"}
)


@dataclass(frozen=True, slots=True)
class FoundRoute:
    """The routers from one host to another, as an agent found them; 0 is a silent one."""

    source: str
    target: str
    routers: tuple[int, ...]
    is_reached: bool = True


@dataclass(frozen=True)
class Overlay:
    """The peers that were alive at the end, their links, and what was found out on the way.

    A link has its ends in the order of the peers. It is distant if neither end holds it as
    a near one. `one_sided` counts links between peers that only one end holds, and
    `stale` those to hosts that are no longer peers.
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

    @property
    def links(self) -> frozenset[PeerLink]:
        """All links, near and distant."""
        return self.near | self.distant


def read_overlay(run: Path, underlay: Underlay) -> Overlay:
    """The overlay of a run, as far as the run went."""
    records = read_agent_records(run, _KINDS)
    overlay = fold_records(underlay, records)
    return replace(overlay, notes=(*_notes_on_run(run), *overlay.notes))


def fold_records(underlay: Underlay, records: AgentRecords) -> Overlay:
    """The overlay at the end of some records, which are in the order of their times."""
    folding = _Folding({int(IPv4Address(at)): name for at, name in underlay.name_at.items()})
    for record in records.rows:
        folding.take(record)
    alive = (folding.sent.keys() or folding.hosts) - folding.left
    peers = tuple(host.name for host in underlay.hosts if host.name in alive)
    near, distant, one_sided, stale = _match_views(peers, folding.views)
    return Overlay(
        peers,
        near,
        distant,
        one_sided,
        stale,
        tuple(folding.inferred),
        tuple(folding.known),
        _total_by_kind(folding.sent.values()),
        folding.is_recorded,
        (*records.notes, *folding.notes()),
    )


class _Folding:
    """What is known of every host after some of the records."""

    def __init__(self, host_at: Mapping[int, str]) -> None:
        self._host_at = host_at
        self.hosts: set[str] = set()
        self.left: set[str] = set()
        self.views: dict[str, dict[str, bool]] = {}
        self.sent: dict[str, Mapping[str, int]] = {}
        self.inferred: list[FoundRoute] = []
        self.known: list[FoundRoute] = []
        self.is_recorded = False
        self._lives: Counter[str] = Counter()

    def take(self, record: AgentRecord) -> None:
        host, values = record.host, record.values
        self.hosts.add(host)
        match record.what:
            case "agent_started":
                self._lives[host] += 1
                self.views[host] = {}
                self.left.discard(host)
            case "agent_left":
                self.left.add(host)
            case "agent_ended":
                self.sent[host] = values
            case "neighbour_added":
                view = self.views.setdefault(host, {})
                view[self._name(values["peer"])] = bool(values["is_distant"])
            case "neighbour_removed":
                self.views.setdefault(host, {}).pop(self._name(values["peer"]), None)
            case "route_inferred":
                self.inferred.append(self._route(host, values["peer"], values))
            case "route_known":
                self.known.append(self._route(host, values["peer"], values))
        self.is_recorded |= not record.what.startswith("agent_")

    def notes(self) -> Iterable[str]:
        """What a reader of the figures should know about these records."""
        if not self.sent:
            yield "no agent lived to say that it ended: every host that recorded counts as a peer"
            return
        dead = self.hosts - self.sent.keys()
        if dead:
            yield (
                f"{len(dead)} agents did not live to the end: they are no peers of the overlay, "
                f"and what they sent is not counted"
            )
        if self.left:
            yield f"{len(self.left)} agents left before the end: they are no peers of the overlay"
        again = sum(lives > 1 for lives in self._lives.values())
        if again:
            yield f"{again} agents were restarted: what they sent before is not counted"

    def _name(self, address: int) -> str:
        return self._host_at.get(address) or str(IPv4Address(address))

    def _route(self, host: str, peer: int, values: Mapping[str, object]) -> FoundRoute:
        routers = tuple(int(address) for address in str(values["routers"]).split())
        return FoundRoute(host, self._name(peer), routers, bool(values.get("is_reached", True)))


def _match_views(
    peers: tuple[str, ...], views: Mapping[str, Mapping[str, bool]]
) -> tuple[frozenset[PeerLink], frozenset[PeerLink], int, int]:
    """The near links, the distant ones, and the numbers of one-sided and of stale ones."""
    order = {name: number for number, name in enumerate(peers)}
    held: Counter[PeerLink] = Counter()
    near: set[PeerLink] = set()
    stale = 0
    for peer in peers:
        for other, is_distant in views.get(peer, {}).items():
            if other not in order:
                stale += 1
                continue
            link = (peer, other) if order[peer] < order[other] else (other, peer)
            held[link] += 1
            if not is_distant:
                near.add(link)
    links = {link for link, ends in held.items() if ends == 2}
    return frozenset(links & near), frozenset(links - near), len(held) - len(links), stale


def _total_by_kind(figures: Iterable[Mapping[str, int]]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for counts in figures:
        for name, count in counts.items():
            if name.startswith("sent_"):
                totals[name.removeprefix("sent_")] += count
    return dict(sorted(totals.items()))


def _notes_on_run(run: Path) -> Iterable[str]:
    if run.resolve().name.endswith(".partial"):
        yield "the run is not complete: these figures are of as much of it as there is"
    try:
        faults = json.loads((run / "run.json").read_text())["experiment"]["fault"]
        changes = {fault["action"] for fault in faults} & _CHANGES_OF_TRUTH
    except (OSError, ValueError, KeyError, TypeError):
        return
    if changes:
        yield (
            f"faults changed the network ({', '.join(sorted(changes))}): routes and delays are "
            f"compared with those of the network as it was built"
        )
