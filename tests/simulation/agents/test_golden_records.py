"""Simulated records do not change: hashes of the records of small runs on Waxman networks.

Only the keys and kinds of record in `golden_records.json` are hashed, so later versions may add
others. `python tests/simulation/agents/test_golden_records.py` prints the content of that file for
the current code.
"""

import json
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from testbed.experiment.file import experiment_from_dict
from testbed.run.lifecycle import run_experiment

GOLDEN = json.loads((Path(__file__).parents[2] / "fixtures" / "golden_records.json").read_text())
CORES = {
    "kind": "cores", "cores": 2, "period_us": 500_000, "first_selection_s": 5.0, "settle_s": 2.0,
}  # fmt: skip
EVENTS = {"events": 60, "rate_per_s": 10.0, "match": 0.3, "start_s": 14.0}
RUNS: dict[str, dict[str, Any]] = {
    "hello": {"overlay": {"kind": "hello"}},
    "gossip": {"overlay": {"kind": "gossip"}},
    "landmark": {"overlay": {"kind": "tdo-landmark"}, "duration_s": 20.0},
    "cores": {
        "overlay": {"kind": "tdo-walk", "degree_limit": "lg2"},
        "routing": CORES | {"strategy": "spotent"},
        "workload": {"kind": "content-zipf", "subscriptions": 2, "merging": True, **EVENTS},
    },
    "all-pairs": {
        "overlay": {"kind": "tdo-walk", "heuristic": "tarrand", "targets": 4},
        "routing": CORES | {"strategy": "spath", "core_paths": "apsp"},
        "workload": {"kind": "content-uniform", **EVENTS},
    },
    "churn": {
        "overlay": {"kind": "tdo-walk"},
        "routing": CORES | {"strategy": "sim"},
        "workload": {
            "kind": "content-zipf", "churn": 0.2, "churn_every_events": 20,
            "recalculate_every_events": 30, **EVENTS,
        },
        "fault": [
            {"at_s": 15.0, "action": "link-down", "target": "r3-r8"},
            {"at_s": 17.0, "action": "stop-agent", "target": "h5"},
        ],
    },
    "mst": {
        "overlay": {"kind": "tdo-walk"},
        "routing": {"kind": "mst", "period_us": 500_000, "first_selection_s": 5.0, "settle_s": 2.0},
        "workload": {"kind": "content-uniform", **EVENTS},
    },
    "opt": {
        "overlay": {"kind": "tdo-walk"},
        "routing": {"kind": "opt", "first_trees_s": 6.0},
        "workload": {"kind": "content-uniform", **EVENTS},
    },
    "given": {
        "overlay": {"kind": "given", "links": "h1-h2 h2-h3 h3-h4"},
        "routing": {"kind": "mst", "period_us": 500_000, "first_selection_s": 5.0, "settle_s": 2.0},
        "workload": {
            "kind": "content-given", "attributes": 2, "publishers": "h1 h4", "events": 40,
            "rate_per_s": 10.0, "start_s": 14.0,
            "subscriptions": "h1: everything\nh3: 2<=a0<=7 and 1<=a1<=9\nh4: 0<=a0<=3",
        },
    },
}  # fmt: skip


def records_of(name: str, folder: Path) -> list[tuple[int, str, str, dict[str, Any]]]:
    """The records of the agents of a run, in order."""
    document = {
        "name": name, "seed": 7, "backend": "simulation", "duration_s": 24.0, "capture": "none",
        "topology": {"kind": "waxman", "routers": 12, "hosts": 4 if name == "given" else 8},
        **RUNS[name],
    }  # fmt: skip
    experiment = experiment_from_dict(document, name)
    path = run_experiment(experiment, "", folder, lambda _line: None).path
    rows = pq.read_table(path / "agents" / "records.parquet").to_pylist()
    return [(r["time_us"], r["host"], r["what"], json.loads(r["values"])) for r in rows]


def digest(rows: list[tuple[int, str, str, dict[str, Any]]], keys: dict[str, list[str]]) -> str:
    """A hash of the listed keys of the listed kinds of record."""
    known = [
        (time_us, host, what, {key: values[key] for key in keys[what] if key in values})
        for time_us, host, what, values in rows
        if what in keys
    ]
    return sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize("name", RUNS)
def test_the_records_have_the_stored_hashes(name: str, tmp_path: Path) -> None:
    assert digest(records_of(name, tmp_path), GOLDEN["keys"]) == GOLDEN["hashes"][name]


def _print_golden() -> None:
    with tempfile.TemporaryDirectory() as folder:
        rows = {name: records_of(name, Path(folder)) for name in RUNS}
    keys: dict[str, set[str]] = {}
    for some in rows.values():
        for _, _, what, values in some:
            keys.setdefault(what, set()).update(values)
    known = {what: sorted(found) for what, found in sorted(keys.items())}
    hashes = {name: digest(some, known) for name, some in rows.items()}
    print(json.dumps({"keys": known, "hashes": hashes}, indent=1))


if __name__ == "__main__":
    _print_golden()
