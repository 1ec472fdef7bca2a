"""The tables of agents when all were ready, as an overlay on which topics are connected or not.

The definitions are those of `tdo overlay build` (`topologies.overlays.metrics`): the support ratio
follows Chen and Tock (Middleware Industry 2015). In a directed overlay, the degree of a node is the
number of its own links.
"""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.agent_tables import AgentTables
from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Metric, Part
from topologies.overlays.metrics import OverlayMetrics, describe_overlay

_US_PER_MS = 1e3


def described(evidence: Evidence) -> OverlayMetrics:
    """The metrics of the overlay; the weight of a link is its mean delay of both ways, in ms."""
    if "overlay metrics" not in evidence.kept:
        weights = link_weights_ms(evidence)
        evidence.kept["overlay metrics"] = describe_overlay(evidence.table_overlay, weights)
    found: OverlayMetrics = evidence.kept["overlay metrics"]
    return found


def link_weights_ms(evidence: Evidence) -> NDArray[np.float64]:
    """The delay of the unicast routes between all pairs of nodes, the mean of both ways."""
    unicast = evidence.run.unicast
    nodes = [unicast.number[host] for host in evidence.agent_tables.hosts]
    delay_us = unicast.delay_us[np.ix_(nodes, nodes)]
    return (delay_us + delay_us.T) / 2 / _US_PER_MS


def tables_when_ready(evidence: Evidence) -> dict[str, Any]:
    """The time of the tables, and the size of their overlay."""
    tables = evidence.agent_tables
    return {
        "at_s": tables.at_us / 1e6,
        "all_ready": tables.is_ready,
        "nodes": len(tables.hosts),
        "edges": len(evidence.table_overlay.edges),
    }


def table_entries(evidence: Evidence) -> dict[str, Any]:
    """Entries in the table of an agent: all, different peers, and by the role of the entry."""
    tables, count = evidence.agent_tables, len(evidence.agent_tables.hosts)
    entries = Counter(entry.owner for entry in tables.entries)
    peers = Counter(owner for owner, _ in {(e.owner, e.peer) for e in tables.entries})
    roles = Counter(entry.role for entry in tables.entries)
    return {
        "mean": len(tables.entries) / count,
        "max": max(entries.values(), default=0),
        "peers_mean": sum(peers.values()) / count,
        "peers_max": max(peers.values(), default=0),
        "by_role": {role or "neighbour": n / count for role, n in sorted(roles.items())},
        "pubsub": _entries_of_pubsub(tables),
    }


def _entries_of_pubsub(tables: AgentTables) -> dict[str, float] | None:
    """The same of the publish/subscribe layer; None if it does not count its entries."""
    if not tables.pubsub:
        return None
    entries, peers = zip(*tables.pubsub.values(), strict=True)
    count = len(tables.hosts)
    return {
        "mean": sum(entries) / count,
        "max": max(entries),
        "peers_mean": sum(peers) / count,
        "peers_max": max(peers),
    }


def weighted_degree(evidence: Evidence) -> dict[str, Any]:
    """The delays of the links of a node, added up: mean and maximum over nodes."""
    found = described(evidence)
    return {"mean": found.weighted_degree, "max": found.weighted_degree_max}


def _note(evidence: Evidence) -> str:
    tables = evidence.agent_tables
    return "" if tables.is_ready else "no time at which all agents were ready is known"


_NOT_CONNECTED = "the subscribers of a topic are not connected among themselves"
_TOPICS = (Input.TABLES, Input.TOPICS)
METRICS = (
    Metric(
        "tables",
        "",
        "Tables of agents",
        "The time (at s) of the tables in `analysis/overlay.json`, whether all agents were ready "
        "then (else it is the end of the run), and the nodes and edges of the overlay.",
        Group.TOPICS,
        (Input.TABLES,),
        tables_when_ready,
        note=_note,
        parts=(
            Part("at_s", "Tables of agents, time", "s"),
            Part("nodes", "Tables of agents, nodes", "nodes"),
            Part("edges", "Tables of agents, edges", "edges"),
        ),
    ),
    Metric(
        "table_entries",
        "entries",
        "Routing-table entries",
        "Entries of an agent's routing table in the layer overlay when all agents were ready: "
        "mean and maximum of all entries, of different peers only (without repeats), and the mean "
        "by role. An entry is a peer that messages are routed to, once for each of its roles. "
        "`pubsub` has the values of the layer pubsub, null if it does not count its entries. "
        "There, an entry is a topic and a peer: with `scribe` parent and children, with `iscribe` "
        "the peers above and below on branches, with `nsmf` and `beaconvey` the nearest subscriber "
        "and the fingers that subscribe.",
        Group.TOPICS,
        (Input.TABLES,),
        table_entries,
        summary=(Part("mean", "Routing-table entries, mean"),),
        parts=(
            Part("peers_mean", "Routing-table entries, different peers, mean", "peers"),
            Part("peers_max", "Routing-table entries, different peers, maximum", "peers"),
            Part("pubsub.peers_mean", "Routing-table entries, pubsub, different peers, mean"),
            Part("pubsub.peers_max", "Routing-table entries, pubsub, different peers, maximum"),
        ),
    ),
    Metric(
        "weighted_degree",
        "ms",
        "Weighted degree",
        "Unicast delays of a node's links, added up, when all agents were ready: mean and maximum "
        "over nodes. The delay of a link is the mean of both ways.",
        Group.TOPICS,
        (Input.TABLES,),
        weighted_degree,
    ),
    Metric(
        "tco_support",
        "share",
        "TCO support",
        "Share of the connections required for topic-connectivity that the overlay has: (TCC(∅) - "
        "TCC(E)) / (TCC(∅) - TCC(K)), where TCC(E) is the number of connected components among "
        "the subscribers of each topic, summed over topics, and K has all edges. Direction does "
        "not count.",
        Group.TOPICS,
        _TOPICS,
        lambda evidence: described(evidence).tco_support,
        summary=(Part("", "TCO support"),),
    ),
    Metric(
        "topic_connected",
        "share",
        "Topic-connectivity",
        "Share of topics whose subscribers are connected among themselves; topics with "
        "at most one subscriber count as connected.",
        Group.TOPICS,
        _TOPICS,
        lambda evidence: described(evidence).topic_connected,
        summary=(Part("", "Topic-connectivity"),),
    ),
    Metric(
        "topic_diameter",
        "hops",
        "Topic diameter",
        "Largest distance between two subscribers of a topic over its subscribers only, mean over "
        "topics with a subscriber.",
        Group.TOPICS,
        _TOPICS,
        lambda evidence: described(evidence).topic_diameter,
        why_null=_NOT_CONNECTED,
    ),
    Metric(
        "topic_diameter_weighted",
        "ms",
        "Weighted topic diameter",
        "Topic diameter with the delays of links as distances.",
        Group.TOPICS,
        _TOPICS,
        lambda evidence: described(evidence).topic_diameter_weighted,
        why_null=_NOT_CONNECTED,
    ),
)
