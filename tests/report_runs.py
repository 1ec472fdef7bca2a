"""Run directories with events, packets and a routing tree in their tables, made by hand.

The tables follow docs/tables.md, so a report can be tested without a run and without Spark.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import pyarrow as pa
import pyarrow.parquet as pq

from tests.overlay_runs import Recorder, random_overlay
from topologies.underlay import Underlay

DURATION_S = 30
FAULTS = [
    {"at_s": 14.0, "action": "kill-agent", "target": "h3"},
    {"at_s": 14.0, "action": "kill-agent", "target": "h5"},
    {"at_s": 20.0, "action": "link-down", "target": "r1-r2"},
    {"at_s": 24.5, "action": "link-up", "target": "r1-r2"},
]
RECOVERY = {
    "due_after_s": 0.25, "late": 61, "missing": 2, "longest_s": None,
    "faults": [
        {"at_s": 14.0, "what": ["kill-agent h3", "kill-agent h5"], "recovery_s": 3.456789,
         "late": 17, "missing": 0, "deliveries": 70},
        {"at_s": 20.0, "what": ["link-down r1-r2"], "recovery_s": None, "late": 44, "missing": 2,
         "deliveries": 81, "note": "not recovered before the end"},
    ],
}  # fmt: skip
Table = list[dict[str, Any]]


def write_table(run: Path, name: str, rows: Table, columns: Iterable[str] = ()) -> None:
    """A table as Spark leaves it: a folder with a file of data and one that says it is whole."""
    folder = run / "analysis" / "tables" / name
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows) if rows else pa.table({c: pa.nulls(0) for c in columns})
    pq.write_table(table, folder / "part-00000.parquet")
    (folder / "_SUCCESS").touch()


def write_documents(run: Path, experiment: Mapping[str, Any], verdict: str = "valid") -> None:
    """`run.json`, `experiment.toml` and `verdict.json`."""
    run.mkdir(parents=True, exist_ok=True)
    reasons = [] if verdict == "valid" else ["cpu: expected below 90 %, found 97 %"]
    document = {
        "experiment": dict(experiment),
        "command": ["tdo", "run", "experiments/<hand-made> & \"quoted\".toml"],
        "versions": {"tdo-testbed": "0.1.0", "numpy": "2.0"},
        "python": "3.11.2",
        "kernel": "6.1.0",
        "commit": "0123456789abcdef",
        "phases_s": {"stage": 0.41, "run": 30.2, "records": 0.3},
    }  # fmt: skip
    (run / "run.json").write_text(json.dumps(document))
    (run / "experiment.toml").write_text('name = "hand-made"\nseed = 1\n')
    figures = {"messages": 1_234, "lateness_us": {"p50": 31.5, "p99": 180.0}}
    text = json.dumps({"verdict": verdict, "reasons": reasons, "figures": figures})
    (run / "verdict.json").write_text(text)


def experiment(seed: int = 1, **changes: Any) -> dict[str, Any]:
    """A resolved experiment as `run.json` has it."""
    return {
        "name": "hand-made",
        "seed": seed,
        "backend": "simulation",
        "duration_s": DURATION_S,
        "time_scale": 1.0,
        "folder": "/somewhere",
        "topology": {"kind": "waxman", "routers": 20, "hosts": 12},
        "overlay": {"kind": "tdo-walk", "heuristic": "mlink"},
        "routing": {"kind": "cores", "strategy": "spotent", "cores": 3},
        "workload": {"kind": "content-zipf", "events": 200},
        "fault": FAULTS,
    } | changes


class Play:
    """Events that go over a tree on an overlay, and all that the tables say about it."""

    def __init__(self, underlay: Underlay, seed: int, events: int) -> None:
        self.underlay = underlay
        self.recorder: Recorder = random_overlay(underlay, seed)
        self.chance = Random(seed)
        self.number = {name: n for n, name in enumerate(self.recorder.names)}
        self.overlay = self._overlay()
        self.trees = [
            nx.minimum_spanning_tree(self.overlay, weight="hops"),
            nx.minimum_spanning_tree(self.overlay, weight="delay_us"),
        ]
        self.stress: Counter[tuple[int, str, str]] = Counter()
        self.deliveries: Table = []
        self.events: Table = []
        for number in range(events):
            self._publish(number + 1, 2_000_000 + number * 25_000_000 // events)

    def _overlay(self) -> nx.Graph:
        graph = nx.Graph()
        host_at = {self.recorder.address(name): name for name in self.recorder.names}
        for _, host, what, values in self.recorder.rows:
            if what == "neighbour_added":
                peer = host_at[values["peer"]]
                if self.number[host] < self.number[peer]:
                    delay_us = self.recorder.routes.path_delay_us(host, peer)
                    hops = len(self.recorder.routes.path(host, peer))
                    graph.add_edge(host, peer, delay_us=delay_us, hops=hops,
                                   is_distant=values["is_distant"])  # fmt: skip
        return graph

    def _publish(self, event_id: int, time_us: int) -> None:
        publisher, *subscribers = self.chance.sample(
            self.recorder.names, max(7, len(self.recorder.names) // 5)
        )
        tree = self.trees[1]
        crossed: set[tuple[str, str]] = set()
        for host in subscribers:
            way = list(pairwise(nx.shortest_path(tree, publisher, host)))
            crossed |= set(way)
            delay_us = sum(self.recorder.routes.path_delay_us(*step) + 90 for step in way)
            unicast_us = self.recorder.routes.path_delay_us(publisher, host)
            self.deliveries.append(
                {"event_id": event_id, "host": host, "publisher": publisher, "copy": 1,
                 "published_us": time_us, "time_us": time_us + delay_us, "is_own": False,
                 "unicast_us": unicast_us, "rdp": delay_us / unicast_us, "hops": len(way)}
            )  # fmt: skip
        for step in crossed:
            for a, b in pairwise(self.recorder.routes.path(*step)):
                self.stress[event_id, *self._direction(a, b)] += 1
        self.events.append({"event_id": event_id, "publisher": publisher, "published_us": time_us})

    def _direction(self, a: str, b: str) -> tuple[str, str]:
        name = f"{a}-{b}"
        return (name, "ab") if name in self._link_names else (f"{b}-{a}", "ba")

    @property
    def _link_names(self) -> set[str]:
        found: set[str] = self.__dict__.setdefault(
            "_names", {link.name for link in self.underlay.links}
        )
        return found

    def link_loads(self) -> Table:
        by_link: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for (_, link, way), copies in self.stress.items():
            by_link[link, way].append(copies)
        return [
            {"link": link.name, "direction": way, "from_node": ends[0], "to_node": ends[1],
             "packets": sum(found) * 3 + self.chance.randrange(40), "bytes": 90 * sum(found),
             "event_packets": sum(found), "max_stress": max(found, default=0)}
            for link in self.underlay.links
            for way, ends in (("ab", (link.a, link.b)), ("ba", (link.b, link.a)))
            for found in [by_link[link.name, way]]
        ]  # fmt: skip

    def traffic(self) -> Table:
        kinds = ("Walk", "Acknowledgement", "Heartbeat", "Ping", "Pong", "CoreSpt", "TreeHello",
                 "SubscriptionUpdate", "probe", "icmp")  # fmt: skip
        scale = len(self.recorder.names)
        rows = [
            {"second": second, "what": kind,
             "packets": int(scale * (9 - number) * (3.0 / (1 + second / 4) + 0.3))}
            for second in range(DURATION_S)
            for number, kind in enumerate(kinds[:9])
        ]  # fmt: skip
        sent = Counter(row["time_us"] // 1_000_000 for row in self.deliveries)
        return rows + [
            {"second": s, "what": "Event", "packets": n} for s, n in sorted(sent.items())
        ]

    def metrics(self) -> dict[str, Any]:
        copies, rdp = list(self.stress.values()), [row["rdp"] for row in self.deliveries]
        return {
            "link_stress": {"mean": sum(copies) / len(copies), "max": max(copies),
                            "distribution": {str(n): c for n, c in Counter(copies).items()}},
            "rdp": {"mean": sum(rdp) / len(rdp), "p50": sorted(rdp)[len(rdp) // 2],
                    "p90": sorted(rdp)[9 * len(rdp) // 10], "max": max(rdp), "count": len(rdp)},
            "delivery": {"expected": len(rdp) + 2, "delivered": len(rdp), "duplicates": 0},
            "events": {"published": len(self.events), "delivered": len(rdp)},
            "recovery": RECOVERY,
            "false_positives": 0.3141592653589793,
            "routing_efficiency": 1.0625,
            "routing_cost": 12345.6789,
            "control_efficiency": None,
            "stress_ratio": 0.8793774319066148,
            "peers": len(self.recorder.names),
            "overlay_links": self.overlay.number_of_edges(),
            "discovered_links": 0.97,
            "checks": {"routes_whole": {"ok": True, "expected": 100, "found": 100}},
            "something_new": 7,
            "notes": {"control_efficiency": "no <message> was counted"},
        }  # fmt: skip

    def edges(self) -> Table:
        order = self.number.__getitem__
        return [
            dict(zip("ab", sorted((a, b), key=order), strict=True)) | {"is_distant": is_distant}
            for a, b, is_distant in self.overlay.edges(data="is_distant")
        ]

    def tree_edges(self) -> Table:
        order = self.number.__getitem__
        return [
            {"version": version, "added_us": 10 * version, "ends": 2,
             "removed_us": 9_000_000 + 10 * number if version == 1 else None}
            | dict(zip("ab", sorted(link, key=order), strict=True))
            for version, tree in enumerate(self.trees, start=1)
            for number, link in enumerate(tree.edges)
        ]  # fmt: skip

    def select_cores(self) -> None:
        for version in (1, 2):
            cores = [str(int(IPv4Address(self.underlay.address[n]))) for n in ("h1", "h2", "h4")]
            values = {"version": version, "cores": " ".join(cores), "root": int(cores[1])}
            self.recorder.record("h1", "cores_selected", 10 * version, **values)


def write_run(
    run: Path, underlay: Underlay, seed: int = 1, events: int = 60, verdict: str = "valid"
) -> Path:
    """A run directory with everything that a report can show."""
    play = Play(underlay, seed, events)
    play.select_cores()
    play.recorder.write(run)
    write_documents(run, experiment(seed), verdict)
    stress = [
        {"event_id": event, "link": link, "direction": way, "copies": copies}
        for (event, link, way), copies in sorted(play.stress.items())
    ]
    tables = {
        "events": play.events,
        "deliveries": play.deliveries,
        "stress": stress,
        "link_loads": play.link_loads(),
        "traffic": play.traffic(),
        "overlay_edges": play.edges(),
        "tree_edges": play.tree_edges(),
    }
    for name, rows in tables.items():
        write_table(run, name, rows)
    (run / "analysis" / "metrics.json").write_text(json.dumps(play.metrics(), indent=1))
    return run
