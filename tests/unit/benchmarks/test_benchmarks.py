"""Benchmarks: compared tools do the same work, and missing answers are errors."""

from pathlib import Path

import pytest

from agents.records import RecordLog, read_records
from benchmarks import greedy_overlays, pastry, topic_agents
from benchmarks.agents import delays_longer, last_answer_s
from benchmarks.greedy_overlays import Made, fit_exponent, make_once
from benchmarks.offline_overlays import KINDS, walk_once
from benchmarks.simulate import make_crowd, race
from testbed.errors import EmulationError
from testbed.experiment.file import Experiment
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.simulation.run import simulate
from topologies.routes import Routes
from topologies.topology import TopologySettings


def test_all_simulators_carry_the_same_messages() -> None:
    nodes, rounds = 30, 4
    paces = race(make_crowd(nodes, rounds, routers=20))
    messages = nodes * rounds * 2  # a push and a pull
    assert {name: pace.messages for name, pace in paces.items()} == dict.fromkeys(paces, messages)


def test_an_agent_without_an_answer_is_an_error() -> None:
    answered = {"h1": 0.5, "h3": 2.5}
    assert last_answer_s(answered, ["h1", "h3"]) == 2.5
    with pytest.raises(EmulationError, match="all 3 .* found 1 without an answer, among them h2"):
        last_answer_s(answered, ["h1", "h2", "h3"])


def test_round_trips_are_compared_with_exact_ones(tmp_path: Path) -> None:
    wanted = TopologySettings(routers=10, hosts=6, asymmetry=0.5)
    experiment = Experiment("exact", capture="none", topology=wanted, overlay={"kind": "hello"})
    underlay = make_underlay(experiment)
    simulate(
        experiment,
        underlay,
        assign_agents(experiment, underlay, None),
        tmp_path,
        say=lambda _: None,
    )
    assert delays_longer(tmp_path, Routes(underlay)) == 0
    measured = [
        row for row in read_records(tmp_path / "simulation.jsonl") if row.what == "delay_measured"
    ]
    with (tmp_path / "simulation.jsonl").open("w") as file:
        for row in measured:
            longer_us = row.values.get("median_us", 0) * 1.04
            values = {**row.values, "median_us": longer_us}
            RecordLog(file).write(row.time_us, row.host, row.what, values)
    assert delays_longer(tmp_path, Routes(underlay)) == pytest.approx(0.04)


@pytest.mark.parametrize("kind", KINDS)
def test_offline_dissemination_is_measured(kind: str) -> None:
    small, large = (walk_once(kind, nodes) for nodes in (100, 400))
    assert 0 < small.tables_mb < large.tables_mb < large.peak_mb
    assert 0 < small.messages < large.messages


@pytest.mark.parametrize("name", greedy_overlays.OVERLAYS)
def test_greedy_overlays_are_measured(name: str) -> None:
    made = make_once(name, 100)
    assert made.nodes == 100 and made.seconds > 0 and made.peak_mb > 10


def test_the_growth_of_time_is_the_exponent() -> None:
    made = [Made(nodes, 3e-6 * nodes**1.5, 0) for nodes in (1_000, 3_000, 10_000)]
    assert fit_exponent(made) == pytest.approx(1.5)


def test_agents_of_scribe_are_measured() -> None:
    run = topic_agents.measure(12)
    assert run.delivered > 500 and run.events.messages > run.delivered
    assert run.join.messages > 0


def test_routes_of_pastry_are_measured() -> None:
    near, far = (pastry.measure(40, 4, proximity, routers=20) for proximity in (True, False))
    assert near.arrived == far.arrived == 1
    assert 1 < near.rdp_mean < far.rdp_mean
    assert 1 < near.hops < 2
