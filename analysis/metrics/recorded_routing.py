"""The figures of event routing of one run, without Spark: sweeps measure runs inside Spark's tasks.

The definitions are those of `analysis/metrics/routing.py`, which a test holds both to. What is here
beside: figures for the tree of the last selection alone, and a series over the events of the run,
for runs whose tree or peers change (section 6.2.3 of Tariq, Koldehofe and Rothermel, DEBS 2013).
"""

import csv
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from analysis.agent_records import AgentRecord, read_agent_records
from analysis.metrics.file import merge_metrics
from analysis.metrics.overlay import add_metrics
from analysis.metrics.overlay_paths import find_paths
from analysis.overlay import PeerLink, read_overlay
from analysis.run_directory import RunFiles, open_run
from analysis.unicast import Unicast
from topologies.underlay import Underlay

Metrics = dict[str, Any]

EVENTS_PER_STEP = 100
SERIES = "routing_series.csv"
_SUBJECT = "routing"
_KINDS = frozenset(
    {"event_published", "event_received", "delivered", "cores_selected", "agent_ended"}
)
_ABOVE_OVERLAY = range(80, 160)  # the kinds of messages of routing and content
_PERIODIC = {"TreeHello", "LinkHello"}


class DeliveryPath(NamedTuple):
    """To one of those an event was delivered to: as taken, the shortest on the overlay, by IP."""

    taken_us: int
    shortest_us: int | None
    unicast_us: int


@dataclass(slots=True)
class Event:
    """An event: where and when it was published, on the tree of which selection."""

    publisher: str
    published_us: int
    version: int
    selection: int = 0
    received: int = 0
    false_positives: int = 0
    crossings: int = 0  # of physical links, on the way to those who received it
    delivered: int = 0
    ways: list[DeliveryPath] = field(default_factory=list)


class PeerPaths:
    """From host to host: over IP, and along shortest paths over overlay links."""

    def __init__(self, underlay: Underlay, links: Iterable[PeerLink]) -> None:
        unicast = Unicast(underlay, [host.name for host in underlay.hosts])
        self._number = unicast.number
        self._unicast_us, self._crossings = unicast.delay_us, unicast.crossings
        self._shortest = find_paths(unicast, links)

    def unicast(self, source: str, target: str) -> tuple[int, int]:
        """The delay of the way that IP takes, and how many links it crosses."""
        at = self._number[source], self._number[target]
        return int(self._unicast_us[at]), int(self._crossings[at])

    def shortest_us(self, source: str, target: str) -> int | None:
        """The delay of the shortest overlay path, if there is one."""
        at = self._number[source], self._number[target]
        return int(self._shortest.delay_us[at]) if self._shortest.is_reached[at] else None


def measure_run(path: Path) -> Metrics:
    """All metrics of a run that can be told without Spark, which `metrics.json` then has."""
    run = open_run(path)
    overlay = read_overlay(path, run.underlay)
    return add_metrics(path, run.underlay, overlay) | measure_routing(run, overlay.links)


def measure_routing(run: RunFiles, links: Iterable[PeerLink]) -> Metrics:
    """The metrics of event routing, added to `metrics.json`; none where nothing was published.

    `links` are those of the overlay, on which shortest paths are the optimum.
    """
    rows = read_agent_records(run.path, _KINDS).rows
    if all(row.what != "event_published" for row in rows):
        return {}
    events = follow_events(rows, run.underlay, PeerPaths(run.underlay, links))
    in_order = [event for _, event in sorted(events.items())]
    last = max(event.selection for event in in_order)
    found = {
        **_summary(in_order),
        **_control(rows, run.kinds, in_order),
        "last_tree": _summary([event for event in in_order if event.selection == last]),
    }
    notes = {
        "last_tree": "of the events published on the tree of the last selection",
        "control_efficiency": "of what agents counted that lived to the end",
    }
    merge_metrics(run.path, _SUBJECT, found, notes)
    _write_series(run, in_order)
    return found


def follow_events(
    rows: Iterable[AgentRecord], underlay: Underlay, ways: PeerPaths
) -> dict[int, Event]:
    """What became of each event, by its number."""
    by_kind: dict[str, list[AgentRecord]] = {kind: [] for kind in _KINDS}
    for row in rows:
        by_kind[row.what].append(row)
    events: dict[int, Event] = {}
    for time_us, host, _, values in by_kind["event_published"]:
        events.setdefault(values["event_id"], Event(host, time_us, values["version"]))
    selections = sorted({row.values["version"] for row in by_kind["cores_selected"]})
    for event in events.values() if selections else ():
        # All versions that are built for one list of cores are numbered up to that of the list.
        event.selection = selections[
            min(bisect_left(selections, event.version), len(selections) - 1)
        ]
    ways_us = _follow_ways(by_kind["event_received"], events, underlay, ways)
    _deliver(by_kind["delivered"], events, ways_us, ways)
    return events


def _follow_ways(
    received: Iterable[AgentRecord],
    events: Mapping[int, Event],
    underlay: Underlay,
    ways: PeerPaths,
) -> dict[tuple[int, str], int]:
    """How long the way was that each event took to each host: its sender's, and one link more."""
    name_of = {int(IPv4Address(at)): name for at, name in underlay.name_at.items()}
    ways_us = {(number, event.publisher): 0 for number, event in events.items()}
    first: dict[tuple[int, str], AgentRecord] = {}
    for row in received:
        first.setdefault((row.values["event_id"], row.host), row)
    for (number, host), row in sorted(first.items(), key=lambda item: item[1].values["hop_count"]):
        event = events.get(number)
        if event is None or host == event.publisher:
            continue
        event.received += 1
        event.false_positives += not row.values["is_match"]
        sender = name_of[row.values["from"]]
        delay_us, crossings = ways.unicast(sender, host)
        event.crossings += crossings
        before_us = ways_us.get((number, sender))
        if before_us is not None:
            ways_us[number, host] = before_us + delay_us
    return ways_us


def _deliver(
    delivered: Iterable[AgentRecord],
    events: Mapping[int, Event],
    ways_us: Mapping[tuple[int, str], int],
    ways: PeerPaths,
) -> None:
    seen: set[tuple[int, str]] = set()
    for row in delivered:
        key = (row.values["event_id"], row.host)
        event = events.get(key[0])
        if event is None or key in seen or row.host == event.publisher:
            continue
        seen.add(key)
        event.delivered += 1
        if key in ways_us:
            pair = event.publisher, row.host
            event.ways.append(
                DeliveryPath(ways_us[key], ways.shortest_us(*pair), ways.unicast(*pair)[0])
            )


def _summary(events: list[Event]) -> Metrics:
    delivered = sum(event.delivered for event in events)
    ways = [way for event in events for way in event.ways]
    comparable = [way for way in ways if way.shortest_us is not None]
    taken_us = sum(way.taken_us for way in ways)
    shortest_us = sum(way.shortest_us or 0 for way in comparable)
    penalties = [way.taken_us / way.unicast_us for way in ways if way.unicast_us]
    in_vain = sum(event.false_positives for event in events)
    return {
        "events": {
            "published": len(events),
            "received": sum(event.received for event in events),
            "delivered": delivered,
            "in_vain": in_vain,
            "crossings": sum(event.crossings for event in events),
        },
        "false_positives": _ratio(in_vain, delivered),
        "rdp_of_paths": {"mean": fmean(penalties), "max": max(penalties)} if penalties else None,
        "routing_cost": taken_us / 1e6 if ways else None,
        "routing_cost_per_delivery": _ratio(taken_us / 1e6, len(ways)),
        "routing_cost_opt": shortest_us / 1e6 if comparable else None,
        "routing_efficiency": _ratio(sum(way.taken_us for way in comparable), shortest_us),
    }


def _control(rows: Iterable[AgentRecord], kinds: Mapping[int, str], events: list[Event]) -> Metrics:
    """Messages sent for each matching event that came to a peer.

    `control_efficiency` is of everything that is sent, `control_efficiency_of_routing` only of
    what trees, subscriptions and events take, each message once and without periodic hellos.
    """
    totals: Counter[str] = Counter()
    for row in rows:
        if row.what == "agent_ended":
            totals.update({name: n for name, n in row.values.items() if isinstance(n, int)})
    matching = sum(event.received - event.false_positives for event in events)
    everything = totals["sent"] + totals["resent"] - totals["unsent"]
    above = {name for number, name in kinds.items() if number in _ABOVE_OVERLAY} - _PERIODIC
    return {
        "control_efficiency": _ratio(everything, matching),
        "control_efficiency_of_routing": _ratio(
            sum(totals[f"sent_{name}"] for name in above), matching
        ),
    }


def _write_series(run: RunFiles, events: list[Event]) -> None:
    """Write the figures of each hundred events, in the order in which they were published."""
    by_second = run.figures.get("messages_by_second", [])
    rows: list[Metrics] = []
    for at in range(0, len(events), EVENTS_PER_STEP):
        some = events[at : at + EVENTS_PER_STEP]
        last = events[min(at + EVENTS_PER_STEP, len(events) - 1)]
        seconds = slice(some[0].published_us // 1_000_000, last.published_us // 1_000_000)
        summary = _summary(some)
        rows.append(
            {
                "event": at + len(some),
                "selection": max(event.selection for event in some),
                "messages": sum(by_second[seconds]) or None,
                **summary.pop("events"),
                **{key: value for key, value in summary.items() if key != "rdp_of_paths"},
            }
        )
    with (run.path / "analysis" / SERIES).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
