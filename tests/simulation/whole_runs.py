"""Runs with all layers of an agent in the simulator, whose deliveries are accounted for."""

from collections import Counter
from dataclasses import replace
from typing import Any

from agents.runtime.simulator import Simulator
from agents.workload import make_workload
from testbed.delivery import Delivery, account
from testbed.experiment import Experiment, experiment_from_dict
from testbed.simulation.run import Living
from testbed.stage import cast, make_underlay
from topologies.underlay import Underlay

START_S, RATE_PER_S, SETTLE_US = 20.0, 20.0, 5_000_000


class WholeRun:
    """Some peers that discover, route and publish; what they recorded and sent."""

    def __init__(
        self, peers: int, events: int, seed: int, loss_percent: float = 0.0, **routing: Any
    ) -> None:
        self.experiment = whole_experiment(peers, events, seed, **routing)
        underlay = _lossy(make_underlay(self.experiment), loss_percent)
        self.rows: list[Any] = []
        self.simulator = Simulator(underlay, seed=seed, record=lambda *row: self.rows.append(row))
        self.living = Living(self.experiment, self.simulator)
        self.castings = cast(self.experiment, underlay)
        self.ends: list[tuple[int, str]] = []
        for casting in self.castings:
            self.living.add(casting, is_stillborn=False)

    def kill(self, at_s: float, *hosts: str) -> None:
        """Let agents vanish without a word."""
        for host in hosts:
            self.living.end(int(at_s * 1e6), host, with_goodbye=False)
            self.ends.append((int(at_s * 1e6), host))

    def restart(self, at_s: float, host: str) -> None:
        """Let an agent come back."""
        self.simulator.start_agent(int(at_s * 1e6), host)

    def run(self, until_s: float | None = None) -> "WholeRun":
        """Let time pass, to the end unless told otherwise."""
        end_s = self.experiment.duration_s if until_s is None else until_s
        self.simulator.run(int(end_s * 1e6))
        return self

    def delivery(self) -> Delivery:
        """Who should have got which event, and who did."""
        section = self.experiment.layers["workload"]
        peers = len(self.castings)
        workload = make_workload(
            "zipf", self.experiment.seed, peers, 1, section["events"], section["match"], 5
        )
        hosts = [casting.host for casting in self.castings]
        end_us = self.simulator.now_us
        return account(workload, hosts, self.rows, self.ends, end_us, SETTLE_US)

    @property
    def sent(self) -> Counter[str]:
        """Messages of all living agents by kind."""
        total: Counter[str] = Counter()
        for agent in self.living.agents.values():
            total.update(agent.figures)
        return total

    def recorded(self, what: str) -> list[Any]:
        """The rows of one kind."""
        return [row for row in self.rows if row[2] == what]


def whole_experiment(peers: int, events: int, seed: int, **routing: Any) -> Experiment:
    """Random walks, quick core routing unless told otherwise, and events after 20 s."""
    cores = {
        "cores": 3, "period_us": 500_000, "first_selection_s": 8.0, "settle_s": 3.0, "grace_s": 4.0,
    }  # fmt: skip
    chosen = {"kind": "cores", **routing}
    if chosen["kind"] == "cores":
        chosen = {**cores, **chosen}
    document = {
        "name": "whole",
        "seed": seed,
        "backend": "simulation",
        "duration_s": START_S + events / RATE_PER_S + 30,
        "start_over_s": 2,
        "topology": {"routers": 40, "hosts": peers},
        "overlay": {"kind": "tdo-walk", "degree_limit": "lg2", "heartbeat_us": 1_000_000},
        "routing": chosen,
        "workload": {
            "kind": "content-zipf",
            "events": events,
            "rate_per_s": RATE_PER_S,
            "start_s": START_S,
            "match": 0.1,
        },
    }
    return experiment_from_dict(document, "test")


def _lossy(underlay: Underlay, percent: float) -> Underlay:
    def lose(channel: Any) -> Any:
        return replace(channel, loss_percent=percent)

    links = tuple(replace(link, ab=lose(link.ab), ba=lose(link.ba)) for link in underlay.links)
    return replace(underlay, links=links) if percent else underlay
