"""The forecast of an emulated run: what a rehearsal counts, and what follows from it."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from testbed.emulation.forecast import Load, choose_time_scale, find_busiest, foresee, rehearse
from testbed.experiment import Experiment, TopologySettings
from testbed.run import run_experiment
from testbed.stage import cast, make_underlay

SMALL = Experiment(
    "small",
    seed=3,
    backend="simulation",
    duration_s=6,
    start_over_s=2,
    topology=TopologySettings(routers=20, hosts=12),
    overlay={"kind": "tdo-walk"},
)


def quiet(_line: str) -> None:
    pass


def test_a_rehearsal_counts_what_a_simulated_run_logs(tmp_path: Path) -> None:
    underlay = make_underlay(SMALL)
    loads = rehearse(SMALL, underlay, cast(SMALL, underlay), quiet).loads
    outcome = run_experiment(SMALL, "", tmp_path, quiet)
    table = pq.read_table(outcome.path / "packets" / "packets.parquet", columns=["time_us"])
    seconds = [time_us // 1_000_000 for time_us in table.column("time_us").to_pylist()]
    assert [load.crossings for load in loads] == [seconds.count(n) for n in range(6)]
    assert [load.messages for load in loads] == outcome.figures["messages_by_second"]
    assert sum(load.crossings for load in loads) > 1_000


def test_the_busiest_second_is_one_that_many_packets_fall_into() -> None:
    usual, rush, blip = Load(1_000, 10), Load(5_000, 10), Load(10, 10_000)
    assert find_busiest([usual, rush, usual]) == rush
    assert find_busiest([usual] * 50 + [blip]) == usual  # less than a hundredth of all packets
    assert find_busiest([usual] * 50 + [rush, blip]) == rush
    assert find_busiest([]) == Load(0, 0)


@pytest.mark.parametrize(
    ("busiest", "cores", "scale"),
    [
        (Load(0, 0), 1, 1),
        (Load(58_000, 0), 4, 1),  # 0.87 s of the delay line's, which has one core
        (Load(118_000, 0), 4, 2),
        (Load(1_000, 20_000), 8, 1),  # 2.6 s of the agents'
        (Load(1_000, 20_000), 2, 1.5),
        (Load(1_000, 20_000), 1, 3),
        (Load(10**9, 0), 2, 100),
    ],
)
def test_time_is_stretched_until_nobody_is_too_busy(
    busiest: Load, cores: int, scale: float
) -> None:
    assert choose_time_scale(busiest, cores) == scale


def test_a_forecast_says_what_to_do_when_the_machine_is_too_slow() -> None:
    underlay = make_underlay(SMALL)
    castings = cast(SMALL, underlay)
    fine = foresee(SMALL, underlay, castings, quiet)
    assert fine.is_fine and "time_scale" not in str(fine)
    hurried = replace(fine, line_busy=1.4, enough_time_scale=3)
    assert not hurried.is_fine
    assert str(hurried).endswith("--set time_scale=3 stretches time enough")


def test_a_run_that_ends_within_a_second_is_not_counted_beyond_its_end() -> None:
    short = replace(SMALL, duration_s=1.5, start_over_s=0)
    underlay = make_underlay(short)
    longer = rehearse(replace(short, duration_s=2), underlay, cast(short, underlay), quiet).loads
    found = foresee(short, underlay, cast(short, underlay), quiet)
    assert longer[0].crossings < found.packets < longer[0].crossings + longer[1].crossings


def test_a_rehearsal_that_takes_longer_than_the_run_is_cut_short() -> None:
    overlay = {"kind": "hello", "greetings": 10_000_000, "period_us": 1}
    crowded = replace(SMALL, duration_s=1, overlay=overlay)
    underlay = make_underlay(crowded)
    (load,) = rehearse(crowded, underlay, cast(crowded, underlay), quiet).loads
    assert load.messages > 1_000_000  # most of them by its beginning
