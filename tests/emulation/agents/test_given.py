"""An overlay and subscriptions from the experiment file, on a real network."""

import json
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq

from testbed.experiment.file import experiment_from_dict
from testbed.run.lifecycle import run_experiment
from topologies.underlay_file import load_underlay
from workloads.content.subscription import subscribe


def test_agents_have_the_links_and_subscriptions_of_the_file(tmp_path: Path) -> None:
    """Each agent has its own process, so all its knowledge comes from messages and its input."""
    document = {
        "name": "given",
        "duration_s": 5.0,
        "start_over_s": 0.3,
        "agents_per_process": 1,
        "capture": "none",
        "topology": {"routers": 4, "hosts": 4},
        "overlay": {"kind": "given", "links": "h2-h1 h2-h3 h3-h4"},
        "routing": {"kind": "mst"},
        "workload": {
            "kind": "content-given",
            "subscriptions": "h2: 1<=a0<=3; h4: everything",
            "publishers": "h1",
            "start_s": 2.0,
            "events": 5,
        },
    }
    experiment = experiment_from_dict(document, "test")
    run = run_experiment(experiment, "", tmp_path, say=lambda _: None).path
    host_at = {int_of(a): name for name, a in load_underlay(run / "underlay.json").address.items()}
    said: defaultdict[str, list[tuple[str, dict[str, int]]]] = defaultdict(list)
    for row in pq.read_table(run / "agents" / "records.parquet").to_pylist():
        said[row["what"]].append((row["host"], json.loads(row["values"])))
    links = {(host, host_at[values["peer"]]) for host, values in said["neighbour_added"]}
    assert links == {
        ("h1", "h2"), ("h2", "h1"), ("h2", "h3"), ("h3", "h2"), ("h3", "h4"), ("h4", "h3"),
    }  # fmt: skip
    held = {host: values["subscription"] for host, values in said["subscribed"]}
    assert held == {"h2": subscribe({0: (1, 3)}).number, "h4": subscribe({}).number}
    assert [host for host, _ in said["event_published"]] == ["h1"] * 5


def int_of(address: str) -> int:
    return int.from_bytes(bytes(map(int, address.split("."))), "big")
