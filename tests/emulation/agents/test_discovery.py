"""Discovery overlays on a real network, compared with simulated ones."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis.metrics.file import measure_run
from testbed.experiment.faults import Fault
from testbed.experiment.file import Experiment, experiment_from_dict
from testbed.run.lifecycle import run_experiment

WALK: dict[str, Any] = {"kind": "tdo-walk", "heartbeat_us": 500_000}
LANDMARK: dict[str, Any] = {"kind": "tdo-landmark", "targets": 3, "heartbeat_us": 500_000}


def experiment(overlay: dict[str, Any], duration_s: float, **topology: Any) -> Experiment:
    document = {
        "name": "discovery",
        "duration_s": duration_s,
        "start_over_s": 2,
        "capture": "none",
        "topology": {"routers": 30, "hosts": 16, **topology},
        "overlay": overlay,
    }
    return experiment_from_dict(document, "test")


def measure(wanted: Experiment, folder: Path) -> dict[str, Any]:
    return measure_run(run_experiment(wanted, "", folder, say=lambda _: None).path)


def measure_both(wanted: Experiment, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    simulated = replace(wanted, backend="simulation")
    return measure(wanted, folder), measure(simulated, folder)


def test_an_overlay_by_walks_has_true_routes_and_resembles_the_simulated_one(
    tmp_path: Path,
) -> None:
    emulated, simulated = measure_both(experiment(WALK, 8), tmp_path)
    for metrics in (emulated, simulated):
        assert metrics["peers"] == 16
        assert metrics["components"] == 1
        assert metrics["routes_true"] == metrics["known_routes_true"] == 1
        assert metrics["one_sided_links"] == 0
    # Delays measured on a busy machine may change some decisions.
    assert emulated["inferences_count"] == pytest.approx(simulated["inferences_count"], rel=0.5)
    assert emulated["rdp"]["mean"] == pytest.approx(simulated["rdp"]["mean"], rel=0.25)


def test_silent_routers_reduce_accuracy_but_not_connectivity(tmp_path: Path) -> None:
    metrics = measure(experiment(WALK, 10, anonymous_routers=0.33), tmp_path)
    assert metrics["components"] == 1
    assert metrics["discovered_links_precision"] == 1
    assert metrics["inference_score"]["recall"] < 1


def test_landmark_trees_are_built_on_a_real_network(tmp_path: Path) -> None:
    emulated, simulated = measure_both(experiment(LANDMARK, 16), tmp_path)
    assert emulated["peers"] == simulated["peers"] == 16
    assert emulated["components"] == simulated["components"] == 1
    assert emulated["routes_true"] == 1


def test_peers_crash_leave_and_restart(tmp_path: Path) -> None:
    faults = (
        Fault(4, "kill-agent", "h2"),
        Fault(4, "stop-agent", "h3"),
        Fault(7, "restart-agent", "h2"),
    )
    metrics = measure(replace(experiment(WALK, 12), faults=faults), tmp_path)
    assert metrics["peers"] == 15
    assert metrics["components"] == 1
    assert metrics["stale_links"] == 0
