"""Two emulated runs at the same time: what they share, and how the verdict mentions them."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from testbed.emulation.network import EmulatedNetwork
from testbed.experiment.file import Experiment, load_experiment
from testbed.run.lifecycle import run_experiment
from testbed.run.reasons import Figures, emulation_reasons
from tests.fixtures.diamond import diamond
from topologies.topology import TopologySettings

LANDMARKS = """
name = "landmarks"
duration_s = 9
start_over_s = 1
capture = "none"

[topology]
kind = "transit-stub"
routers = 60
hosts = 16

[overlay]
kind = "tdo-landmark"
targets = 8
gossip_period_us = 250_000
"""


def landmarks(run: Path) -> list[str]:
    rows = pq.read_table(run / "agents" / "records.parquet").to_pylist()
    return sorted(row["host"] for row in rows if row["what"] == "landmark_elected")


def test_runs_of_one_seed_elect_the_same_landmarks(tmp_path: Path) -> None:
    """Two runs are emulated at the same time and one is simulated: message orders differ."""
    file = tmp_path / "landmarks.toml"
    file.write_text(LANDMARKS)
    tdo = str(Path(sys.executable).with_name("tdo"))
    folders = [tmp_path / "first", tmp_path / "second"]
    runs = [
        subprocess.Popen([tdo, "run", str(file), "--no-report", "--out", str(folder)])
        for folder in folders
    ]
    assert {run.wait(120) for run in runs} <= {0, 3}  # valid, or degraded on a busy machine
    emulated = [landmarks(folder / "landmarks" / "latest") for folder in folders]
    wanted = load_experiment(file, {"backend": "simulation"})
    simulated = landmarks(run_experiment(wanted, LANDMARKS, tmp_path, say=lambda _: None).path)
    assert 0 < len(simulated) < 16
    assert emulated == [simulated, simulated]


def test_a_run_lists_other_networks_on_the_machine(tmp_path: Path) -> None:
    small = Experiment(
        name="small",
        duration_s=1.0,
        topology=TopologySettings(routers=4, hosts=2),
        overlay={"kind": "hello", "greetings": 1},
        capture="none",
    )
    with EmulatedNetwork(diamond()) as other:
        outcome = run_experiment(small, "", tmp_path, say=lambda _: None)
    named = [name.partition(":")[0] for name in outcome.figures["other_networks"]]
    assert other.ledger.run_id in named
    assert outcome.figures["run_id"] not in named
    assert json.loads((outcome.path / "verdict.json").read_text())["figures"] == outcome.figures


def judge(figures: Figures) -> list[str]:
    return [reason.text for reason in emulation_reasons(figures)]


def test_the_verdict_names_other_runs_only_if_something_was_late() -> None:
    lag = {"count": 100, "late": 1, "mean_us": 100}
    figures = {
        "links": {"forwarded": 100, "late": 0},
        "processes": [{"lag": lag, "datagram_lag": lag}],
        "stolen_share": 0.0,
        "other_networks": ["12ab34cd: tdo run events.toml"],
    }
    assert judge(figures) == []
    late, others = judge(figures | {"links": {"forwarded": 100, "late": 5}})
    assert "left a link over 1 ms late" in late
    assert "other runs used this machine" in others and "12ab34cd: tdo run events" in others
    held_up = {"processes": [{"lag": lag, "datagram_lag": lag | {"late": 3}}]}
    late, others = judge(figures | held_up)
    assert "3.0 % of the timers or datagrams of a process were over 10 ms late" in late
    assert "12ab34cd: tdo run events" in others
    assert judge(figures | held_up | {"other_networks": []}) == []
