"""Run directories of former versions are read, and have the same metrics."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.metrics.file import measure_run
from analysis.run_directory import open_run

FIXTURES = Path(__file__).parents[2] / "fixtures"
# Metrics of packets, which only Spark reads; `rdp` is compared by its population.
OF_PACKETS = {"link_stress", "messages", "packets", "rdp_of_packets", "control_efficiency"}

# If an agent was killed, these used the final overlay; now they use that of each event.
OF_OPT = {"routing_cost_opt", "routing_efficiency"}


@pytest.fixture(params=["simulation", "emulation"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return shutil.copytree(FIXTURES / f"format-1-{request.param}", tmp_path / "run")


def test_a_run_of_format_1_has_its_former_metrics(run: Path) -> None:
    before = json.loads((run / "analysis" / "metrics.json").read_text())
    found = measure_run(run)
    assert found["notes"]["analysis"] == (
        "the run has no readable workload/: it was drawn again from run.json"
    )
    compared = before.keys() - OF_PACKETS - {"notes", "checks"}
    assert {"rdp", "delivery", "events", "recovery", "last_tree", "join_messages"} <= compared
    changed = OF_OPT if open_run(run).overlay_history else set()
    assert bool(changed) == (len(found["recovery"] or ()) > 0)
    for name in compared - changed:
        _assert_same(before[name], found[name], name, changed)
    agreed = before["checks"]["matches_agree"]
    assert found["checks"]["matches_agree"]["found"] == agreed["found"] > 0


def _assert_same(old: Any, new: Any, name: str, changed: set[str]) -> None:
    """Assert equal values, except for intended changes; new values may exist."""
    if isinstance(old, dict):
        for key in old.keys() - changed:
            _assert_same(old[key], new[key], f"{name}.{key}", changed)
    else:
        assert new == (pytest.approx(old, rel=1e-12) if isinstance(old, float) else old), name


def test_a_workload_drawn_again_equals_the_records_of_agents(run: Path) -> None:
    recorded = open_run(run)
    workload = recorded.workload
    assert (run / "analysis" / "workload" / "matches.parquet").exists()
    said = recorded.records.frame("subscribed", {"subscription": "int64"})
    wanted = set(zip(workload.interests["host"], workload.interests["content"], strict=True))
    assert set(zip(said["host"], said["subscription"], strict=True)) <= wanted
    points = recorded.records.frame("event_published", {"event_id": "int64", "point": "int64"})
    planned = workload.publications.set_index("event_id")
    assert planned.loc[points["event_id"], "content"].tolist() == points["point"].tolist()
    assert planned.loc[points["event_id"], "host"].tolist() == points["host"].tolist()


def test_messages_of_format_1_are_distinguished_by_layer(run: Path) -> None:
    found = measure_run(run)
    hellos = found["messages_by_kind"]["TreeHello"] + found["messages_by_kind"].get("Farewell", 0)
    matching = found["events"]["received"] - found["events"]["in_vain"]
    difference = (
        found["control_efficiency_without_discovery"] - found["control_efficiency_of_routing"]
    )
    assert difference == pytest.approx(hellos / matching)
    assert found["communication_messages"] < found["control_efficiency_of_routing"]
    assert found["communication_cost"]["total"] > found["routing_cost"]


def test_messages_of_format_1_have_layers_and_roles(run: Path) -> None:
    kinds = open_run(run).messages
    assert len(kinds) > 20 and all(kind.layer and kind.role for kind in kinds)
    assert {kind.name for kind in kinds if kind.role == "event"} == {"Event"}
