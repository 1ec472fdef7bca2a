"""Discovery, cores and events together: every event reaches every subscriber exactly once."""

from dataclasses import replace
from typing import Any

import pytest

from agents.runtime.simulator import Simulator
from testbed.experiment.faults import carry_out
from testbed.experiment.file import Experiment, experiment_from_dict
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.run.workload import make_workload as draw_run_workload
from testbed.run.workload import plan_churn
from testbed.simulation.faults import SimulatedFaults
from testbed.simulation.running_agents import RunningAgents
from tests.fixtures.delivery_oracle import Delivery, account
from topologies.underlay import Underlay
from workloads.content.generator import make_workload

PEERS, EVENTS, RATE_PER_S, START_S = 32, 200, 20.0, 40.0
END_S = START_S + EVENTS / RATE_PER_S + 40
SETTLE_US = 5_000_000


def experiment(seed: int, churn: float = 0.0, **routing: Any) -> Experiment:
    document = {
        "name": "stack",
        "seed": seed,
        "backend": "simulation",
        "duration_s": END_S,
        "start_over_s": 3,
        "topology": {"routers": 60, "hosts": PEERS},
        "overlay": {"kind": "tdo-walk", "degree_limit": "lg2", "heartbeat_us": 2_000_000},
        "routing": {"kind": "cores", "cores": 3, "first_selection_s": 15.0, **routing},
        "workload": {
            "kind": "content-zipf",
            "events": EVENTS,
            "rate_per_s": RATE_PER_S,
            "start_s": START_S,
            "match": 0.1,
            "churn": churn,
        },
    }
    return experiment_from_dict(document, "test")


def lossy(underlay: Underlay, percent: float) -> Underlay:
    def lose(channel: Any) -> Any:
        return replace(channel, loss_percent=percent)

    links = tuple(replace(link, ab=lose(link.ab), ba=lose(link.ba)) for link in underlay.links)
    return replace(underlay, links=links)


def play(wanted: Experiment, loss_percent: float = 0, kill_cores: int = 0) -> Delivery:
    """Run an experiment, crash some cores during it, and compare deliveries with the oracle."""
    underlay = lossy(make_underlay(wanted), loss_percent)
    rows: list[Any] = []
    simulator = Simulator(underlay, seed=wanted.seed, record=lambda *row: rows.append(row))
    drawn = draw_run_workload(wanted, underlay)
    churn = plan_churn(wanted, drawn)
    ends = [(int(f.at_s * 1e6), f.target) for f in churn if f.action == "kill-agent"]
    running, specs = RunningAgents(wanted, simulator), assign_agents(wanted, underlay, drawn)
    for spec in specs:
        running.add(spec, starts_by_fault=False)
    for fault in churn:
        carry_out(SimulatedFaults(simulator, running), fault)
    simulator.run(int((START_S + 3) * 1e6))
    host_of = {spec.address: spec.host for spec in specs}
    cores = next(row[3]["cores"] for row in rows if row[2] == "cores_selected")
    for core in cores.split()[:kill_cores]:
        running.end(simulator.now_us, host_of[int(core)], with_goodbye=False)
        ends.append((simulator.now_us, host_of[int(core)]))
    simulator.run(int(END_S * 1e6))
    workload = make_workload("zipf", wanted.seed, PEERS, 1, EVENTS, 0.1, 5)
    hosts = [spec.host for spec in specs]
    return account(workload, hosts, rows, ends, int(END_S * 1e6), SETTLE_US)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("kind", ["cores", "mst"])
def test_without_failures_every_subscriber_gets_every_event_once(kind: str, seed: int) -> None:
    delivery = play(experiment(seed, kind=kind))
    assert delivery.published == EVENTS
    assert delivery.steady.expected > EVENTS
    assert delivery.steady.is_exact
    assert delivery.unasked == ()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_peers_that_stay_get_every_event_once_under_loss_churn_and_crashed_cores(
    seed: int,
) -> None:
    delivery = play(experiment(seed, churn=0.06), loss_percent=2, kill_cores=2)
    assert delivery.steady.expected > EVENTS
    assert delivery.steady.is_exact
    assert delivery.unsteady.duplicates == {}
    assert len(delivery.unsteady_hosts) >= 3


def test_a_recalculation_loses_and_repeats_no_event() -> None:
    delivery = play(experiment(1, recalculate_s=26.0, settle_s=3.0, grace_s=5.0), loss_percent=1)
    assert delivery.steady.is_exact
