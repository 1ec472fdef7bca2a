"""Without churn, agents send the messages of the offline computation over the run's overlay."""

from pathlib import Path

import numpy as np
import pytest

from analysis.metrics.file import measure_run
from tests.fixtures.content_runs import run_small
from topologies.overlays.kinds import find_pubsub
from topologies.overlays.overlay_file import load_overlay
from topologies.overlays.scribe import Forest
from topologies.overlays.text_files import load_publications

_WORKLOAD = {
    "kind": "topics-zipf", "topics": 12, "topics_per_peer": [1, 4], "events": 60,
    "rate_per_s": 10.0, "start_s": 25.0,
}  # fmt: skip

_TOPOLOGY = {"kind": "waxman", "routers": 12, "hosts": 16}


@pytest.mark.parametrize(
    ("overlay", "pubsub"),
    [
        ("ring", "scribe"),
        ("small-world", "nsmf"),
        ("beaconvey", "beaconvey"),
        ("pastry", "scribe"),
        ("skip-net", "scribe"),
    ],
)
def test_agents_send_the_messages_that_the_offline_computation_counts(
    overlay: str, pubsub: str, tmp_path: Path
) -> None:
    run = run_small(
        tmp_path, overlay={"kind": overlay}, routing={}, pubsub={"kind": pubsub},
        workload=_WORKLOAD, topology=_TOPOLOGY, duration_s=35.0,
    )  # fmt: skip
    metrics = measure_run(run)
    check = metrics["checks"].get("offline_walk_agrees")
    assert check is not None, metrics["notes"]["offline_walk"]
    assert check["ok"] and check["found"] == metrics["event_messages"]["total"] > 60
    assert metrics["tables"]["all_ready"] and metrics["warm_up"]["events"] == 0
    written = load_overlay(run / "analysis" / "overlay.json")
    file = run / "analysis" / "publications.txt"
    publications = load_publications(file, written.nodes, written.topics)
    kind = find_pubsub(pubsub)
    counts = kind.disseminate(written, publications.astype(np.int64), kind.Settings())
    assert counts.to_dict() == metrics["offline_walk"]
    assert counts.pure_forwarding == metrics["routing_overhead"]["total"]
    assert counts.to_dict()["path_length"]["mean"] == pytest.approx(metrics["hops"]["mean"])
    if pubsub == "scribe":  # Each link of a tree is in the tables of both ends.
        topics = np.flatnonzero(written.interests.sizes)
        links = Forest(written, is_downward=False).trees(topics).links.sum()
        entries = metrics["table_entries"]["pubsub"]["mean"] * written.nodes
        assert entries == pytest.approx(2 * links)
