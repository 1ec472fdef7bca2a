"""Run directories with an overlay in them, made by hand, for tests of what reads them."""

import json
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from testbed.run_directory import RECORD_SCHEMA
from topologies.routes import Routes
from topologies.underlay import Underlay
from topologies.underlay_file import save_underlay

Row = tuple[int, str, str, Mapping[str, Any]]
END_US = 20_000_000


class Recorder:
    """What the agents on an underlay recorded, as a test says it."""

    def __init__(self, underlay: Underlay) -> None:
        self.underlay = underlay
        self.routes = Routes(underlay)
        self.rows: list[Row] = []
        self._silent = {router.name for router in underlay.routers if router.anonymous}

    def address(self, name: str) -> int:
        return int(IPv4Address(self.underlay.address[name]))

    def record(self, host: str, what: str, time_us: int = 0, **values: Any) -> None:
        self.rows.append((time_us, host, what, values))

    def add(self, host: str, peer: str, distant: bool = False, time_us: int = 1) -> None:
        """One end's half of an overlay link."""
        delay_us = self.routes.path_delay_us(host, peer)
        values = {"peer": self.address(peer), "delay_us": delay_us, "is_distant": distant}
        self.record(host, "neighbour_added", time_us, **values)

    def join(self, a: str, b: str, distant: bool = False) -> None:
        """Both halves of an overlay link."""
        self.add(a, b, distant)
        self.add(b, a, distant)

    def remove(self, host: str, peer: str, time_us: int = 2) -> None:
        values = {"peer": self.address(peer), "reason": "test"}
        self.record(host, "neighbour_removed", time_us, **values)

    def routers(self, host: str, peer: str) -> str:
        """The true way as an agent would write it."""
        names = self.routes.path(host, peer)[1:-1]
        return " ".join("0" if n in self._silent else str(self.address(n)) for n in names)

    def infer(self, host: str, peer: str, routers: str | None = None, reached: bool = True) -> None:
        seen = self.routers(host, peer) if routers is None else routers
        values = {"peer": self.address(peer), "is_reached": reached, "routers": seen}
        self.record(host, "route_inferred", 1, **values)

    def know(self, host: str, peer: str, routers: str | None = None) -> None:
        seen = self.routers(host, peer) if routers is None else routers
        self.record(host, "route_known", 1, peer=self.address(peer), routers=seen)

    def start(self, hosts: Iterable[str] | None = None) -> None:
        for host in hosts or self.names:
            self.record(host, "agent_started")

    def end(self, hosts: Iterable[str] | None = None, **counts: int) -> None:
        for host in hosts or self.names:
            self.record(host, "agent_ended", END_US, **counts)

    @property
    def names(self) -> list[str]:
        return [host.name for host in self.underlay.hosts]

    def write(self, run: Path) -> Path:
        """A run directory with these records in Parquet."""
        columns = [list(column) for column in zip(*self.rows, strict=True)] or [[], [], [], []]
        columns[3] = [json.dumps(values, sort_keys=True) for values in columns[3]]
        (run / "agents").mkdir(parents=True)
        table = pa.table(dict(zip(RECORD_SCHEMA.names, columns, strict=True)), RECORD_SCHEMA)
        pq.write_table(table, run / "agents" / "records.parquet")
        save_underlay(self.underlay, run / "underlay.json")
        return run

    def write_logs(self, run: Path) -> Path:
        """A run directory as a run that died leaves it, with a log for each host."""
        (run / "agents").mkdir(parents=True)
        save_underlay(self.underlay, run / "underlay.json")
        for host in self.names:
            lines = [
                json.dumps({"time_us": time_us, "host": at, "what": what, "values": values})
                for time_us, at, what, values in self.rows
                if at == host
            ]
            (run / "agents" / f"{host}-1.jsonl").write_text("".join(f"{n}\n" for n in lines))
        return run


def random_overlay(underlay: Underlay, seed: int, links: int = 2, targets: int = 4) -> Recorder:
    """Each peer linked to some that are near and, now and then, to a distant one."""
    recorder = Recorder(underlay)
    names = recorder.names
    delays_us = recorder.routes.host_delays_us().astype(float)
    delays_us = delays_us + delays_us.T
    chance = Random(seed)
    graph = nx.Graph()
    order = np.argsort(delays_us, axis=1, kind="stable")
    for number, name in enumerate(names):
        near = [names[other] for other in order[number] if other != number]
        graph.add_edges_from((name, other) for other in near[:links])
        for other in near[:targets]:
            recorder.infer(name, other)
        if chance.random() < 0.25 and not graph.has_edge(name, near[-1]):
            graph.add_edge(name, chance.choice(near[len(near) // 2 :]), distant=True)
    pieces = [sorted(piece, key=names.index) for piece in nx.connected_components(graph)]
    for piece in pieces[1:]:
        graph.add_edge(pieces[0][0], piece[0])
    recorder.start()
    for a, b, is_distant in graph.edges(data="distant", default=False):
        recorder.join(a, b, is_distant)
    recorder.end(sent=30, sent_Connect=3, sent_Accept=2, sent_Walk=25)
    return recorder
