"""Scribe on Pastry and skip-net: messages of the offline computation, and delivery under churn."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

from agents.overlays.identifiers import identifier_of
from agents.runtime.simulator import Simulator
from testbed.experiment.file import experiment_from_dict
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.run.workload import make_workload
from testbed.simulation.running_agents import RunningAgents
from tests.fixtures.keyed_overlays import S, lossy
from topologies.overlays.interests import make_interests
from topologies.overlays.overlay import Overlay, distinct_edges
from topologies.overlays.scribe import Scribe, ScribeSettings

KINDS = ("pastry", "skip-net")
PEERS, TOPICS, START_S = 24, 12, 22.0


class ScribeRun:
    """Peers with an overlay and Scribe, and all their records."""

    def __init__(self, kind: str, seed: int, loss_percent: float = 0.0, events: int = 80) -> None:
        document = {
            "name": "scribe",
            "seed": seed,
            "backend": "simulation",
            "duration_s": 75,
            "start_over_s": 2,
            "topology": {"routers": 20, "hosts": PEERS},
            "overlay": {"kind": kind},
            "pubsub": {"kind": "scribe"},
            "workload": {
                "kind": "topics-zipf",
                "topics": TOPICS,
                "topics_per_peer": 3,
                "events": events,
                "rate_per_s": 10,
                "start_s": START_S,
            },
        }
        self.experiment = experiment_from_dict(document, "test")
        underlay = make_underlay(self.experiment)
        self.workload = make_workload(self.experiment, underlay)
        assert self.workload is not None
        self.rows: list[tuple[int, str, str, Mapping[str, Any]]] = []
        self.simulator = Simulator(
            lossy(underlay, loss_percent), seed=seed, record=lambda *row: self.rows.append(row)
        )
        self.running = RunningAgents(self.experiment, self.simulator)
        self.specs = assign_agents(self.experiment, underlay, self.workload)
        for spec in self.specs:
            self.running.add(spec, starts_by_fault=False)

    def run(self, until_s: float) -> "ScribeRun":
        """Advance the time."""
        self.simulator.run(int(until_s * S))
        return self

    def recorded(self, *names: str) -> list[tuple[str, Mapping[str, Any]]]:
        """Hosts and values of some kinds of records."""
        return [(host, values) for _, host, what, values in self.rows if what in names]

    def overlay(self) -> Overlay:
        """The current links and topics of all agents."""
        number = {spec.address: at for at, spec in enumerate(self.specs)}
        at_host = {spec.host: at for at, spec in enumerate(self.specs)}
        links: dict[tuple[int, int], str] = {}
        for host, values in self.recorded("neighbour_added", "neighbour_removed"):
            link = at_host[host], number[values["peer"]]
            if "reason" not in values:
                links[link] = values["role"]
            elif links[link] == values["role"]:
                del links[link]
        wanted = [
            (at, interest.content)
            for at, spec in enumerate(self.specs)
            for interest in spec.workload.interests
        ]
        kind = self.experiment.overlay["kind"]
        is_directed = kind == "pastry"
        in_order = sorted(links, key=lambda link: links[link] != "table")
        addresses = np.array([spec.address for spec in self.specs], dtype=np.uint64)
        return Overlay(
            make_interests(len(number), TOPICS, wanted),
            distinct_edges(in_order, len(number), is_directed),
            is_directed,
            None if is_directed else addresses,
            ids=np.array([identifier_of(spec.address) for spec in self.specs], dtype=np.uint64),
            kind=kind,
        )

    def published(self) -> dict[int, tuple[int, int]]:
        """Number of publisher and topic of each event."""
        at_host = {spec.host: at for at, spec in enumerate(self.specs)}
        return {
            values["event_id"]: (at_host[host], values["topic"])
            for host, values in self.recorded("event_published")
        }


SEEDS = [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_events_take_the_messages_of_the_offline_computation(kind: str, seed: int) -> None:
    run = ScribeRun(kind, seed).run(START_S - 0.1)
    assert len(run.recorded("ready")) == PEERS
    overlay = run.overlay()
    run.run(START_S + 10)
    published = np.array([run.published()[event] for event in sorted(run.published())])
    offline = Scribe.disseminate(overlay, published, ScribeSettings())
    delivered = [values for _, values in run.recorded("delivered") if "from" in values]
    assert len(published) == 80
    assert offline.missed == 0
    assert offline.messages == len(run.recorded("event_received", "event_repeated"))
    assert offline.deliveries == len(delivered)
    assert offline.hops == sum(values["hop_count"] for values in delivered)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", SEEDS)
def test_peers_that_stay_get_every_event_once_under_churn(kind: str, seed: int) -> None:
    check_churn(ScribeRun(kind, seed, events=240), seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_peers_that_stay_get_every_event_once_under_churn_with_loss(kind: str, seed: int) -> None:
    check_churn(ScribeRun(kind, seed, loss_percent=1.0, events=240), seed)


def check_churn(run: ScribeRun, seed: int) -> None:
    """A third of the peers crash and restart, one after another, while all publish."""
    chance, hosts = Random(seed), [spec.host for spec in run.specs]
    movers = chance.sample(hosts, PEERS // 3)
    for number, host in enumerate(movers):
        at_s = START_S + 2 + 3 * number
        run.running.end(int(at_s * S), host, with_goodbye=number % 4 == 3)
        run.simulator.start_agent(int((at_s + chance.uniform(1, 12)) * S), host)
    run.run(75)
    got = Counter((host, values["event_id"]) for host, values in run.recorded("delivered"))
    done = {values["event_id"] for _, values in run.recorded("event_done")}
    stay = [spec for spec in run.specs if spec.host not in movers]
    publishers = {spec.host for spec in stay}
    faults = []
    for event, (publisher, topic) in run.published().items():
        if hosts[publisher] not in publishers:
            continue
        assert event in done
        for spec in stay:
            is_wanted = any(interest.content == topic for interest in spec.workload.interests)
            if got[spec.host, event] != is_wanted:
                faults.append((event, spec.host, got[spec.host, event]))
    assert len(run.published()) > 150
    assert faults == []
