"""The forecast of an emulated run: the counts of a rehearsal, and the estimates from them."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from testbed.emulation.forecast import (
    Forecast,
    Load,
    Machine,
    choose_time_scale,
    find_busiest,
    foresee,
    rehearse,
)
from testbed.experiment.file import Experiment
from testbed.run.agents import assign_agents
from testbed.run.lifecycle import run_experiment
from testbed.run.underlay import make_underlay
from topologies.topology import TopologySettings

SMALL = Experiment(
    "small",
    seed=3,
    backend="simulation",
    duration_s=6,
    start_over_s=2,
    time_scale=200,  # so that rehearsals are complete on a busy machine, too
    topology=TopologySettings(routers=20, hosts=12),
    overlay={"kind": "tdo-walk"},
)


def quiet(_line: str) -> None:
    pass


def forecast_of(experiment: Experiment, has_line: bool = True) -> Forecast:
    underlay = make_underlay(experiment)
    return foresee(experiment, underlay, assign_agents(experiment, underlay, None), has_line, quiet)


def test_a_rehearsal_counts_what_a_simulated_run_logs(tmp_path: Path) -> None:
    underlay = make_underlay(SMALL)
    loads = rehearse(SMALL, underlay, assign_agents(SMALL, underlay, None), quiet).loads
    outcome = run_experiment(SMALL, "", tmp_path, quiet)
    table = pq.read_table(outcome.path / "packets" / "packets.parquet", columns=["time_us"])
    seconds = [time_us // 1_000_000 for time_us in table.column("time_us").to_pylist()]
    assert [load.crossings for load in loads] == [seconds.count(n) for n in range(6)]
    assert [load.messages for load in loads] == outcome.figures["messages_by_second"]
    assert sum(load.crossings for load in loads) > 1_000


def test_the_busiest_second_has_many_packets() -> None:
    usual, rush, blip = Load(1_000, 10), Load(5_000, 10), Load(10, 10_000)
    machine = Machine(2)
    assert find_busiest([usual, rush, usual], machine) == rush
    assert find_busiest([usual] * 50 + [blip], machine) == usual  # less than 1 % of all packets
    assert find_busiest([usual] * 50 + [rush, blip], machine) == rush
    assert find_busiest([], machine) == Load(0, 0)


@pytest.mark.parametrize(
    ("busiest", "machine", "scale"),
    [
        (Load(0, 0), Machine(1), 1),
        (Load(53_000, 0), Machine(4), 1),  # 0.8 s of the delay line, which has one core
        (Load(106_000, 0), Machine(4), 2),
        (Load(106_000, 0), Machine(4, has_line=False), 1),
        (Load(52_000, 0), Machine(1, has_line=False), 1.5),
        (Load(52_000, 0), Machine(1, has_line=False, has_capture=False), 1),
        (Load(1_000, 20_000), Machine(8), 1),  # 2.6 s of the agents
        (Load(1_000, 20_000), Machine(2), 2),
        (Load(1_000, 20_000), Machine(1), 4),
        (Load(10**9, 0), Machine(2), None),
    ],
)
def test_the_time_scale_grows_until_no_process_is_overloaded(
    busiest: Load, machine: Machine, scale: float | None
) -> None:
    assert choose_time_scale(busiest, machine) == scale


def test_a_forecast_has_advice_when_the_machine_is_too_slow() -> None:
    fine = forecast_of(SMALL)
    assert fine.is_fine and "time_scale" not in str(fine) and "based on only" not in str(fine)
    hurried = replace(fine, line_busy=1.4, enough_time_scale=3)
    assert not hurried.is_fine
    assert str(hurried).endswith("--set time_scale=3 is sufficient")
    hopeless = replace(hurried, enough_time_scale=None)
    assert "is sufficient: use a smaller network or fewer events" in str(hopeless)
    assert "--set" not in str(hopeless)


def test_a_forecast_uses_the_links_and_the_capture_of_the_run() -> None:
    usual, netem = forecast_of(SMALL), forecast_of(SMALL, has_line=False)
    assert "the delay line will be" in str(usual)
    assert "delay line" not in str(netem) and "second the machine will be" in str(netem)
    assert netem.machine_busy == usual.machine_busy
    uncaptured = forecast_of(replace(SMALL, capture="none"))
    assert uncaptured.machine_busy < usual.machine_busy
    assert uncaptured.seconds < usual.seconds


def test_memory_is_the_maximum_of_the_run_and_its_analysis() -> None:
    usual, uncaptured = forecast_of(SMALL), forecast_of(replace(SMALL, capture="none"))
    assert usual.memory_gb > uncaptured.memory_gb > 0.5  # of Spark; the network is small
    alone = replace(SMALL, agents_per_process=1, topology=TopologySettings(routers=20, hosts=120))
    assert forecast_of(replace(alone, duration_s=0.1)).memory_gb > 120 * 0.03


def test_a_run_shorter_than_a_second_is_not_counted_beyond_its_end() -> None:
    short = replace(SMALL, duration_s=1.5, start_over_s=0)
    underlay = make_underlay(short)
    longer = rehearse(
        replace(short, duration_s=2), underlay, assign_agents(short, underlay, None), quiet
    ).loads
    found = forecast_of(short)
    assert longer[0].crossings < found.packets < longer[0].crossings + longer[1].crossings


def test_a_rehearsal_that_takes_longer_than_the_run_is_shortened() -> None:
    overlay = {"kind": "hello", "greetings": 10_000_000, "period_us": 1}
    crowded = replace(SMALL, duration_s=1, time_scale=1, overlay=overlay)
    underlay = make_underlay(crowded)
    (load,) = rehearse(crowded, underlay, assign_agents(crowded, underlay, None), quiet).loads
    assert load.messages > 1_000_000  # most of them at its beginning
    assert "; based on only the first 0." in str(forecast_of(crowded))
