"""Small experiments with all layers, run for real, for tests of what analyses them."""

import json
from pathlib import Path
from typing import Any

from testbed.commands.analyze import message_kinds
from testbed.experiment import experiment_from_dict
from testbed.run import Outcome, run_experiment

KINDS = message_kinds()
QUICK_ROUTING = {
    "kind": "cores", "strategy": "spotent", "cores": 2, "period_us": 500_000,
    "first_selection_s": 4.0, "settle_s": 2.0, "grace_s": 4.0,
}  # fmt: skip


def run_small(results: Path, **changes: Any) -> Path:
    """Run an experiment of six hosts on eight routers, unless changed; returns its directory."""
    document: dict[str, Any] = {
        "name": "small",
        "seed": 3,
        "backend": "simulation",
        "duration_s": 20.0,
        "topology": {"kind": "waxman", "routers": 8, "hosts": 6},
        "overlay": {"kind": "tdo-walk", "targets": 4},
        "routing": QUICK_ROUTING,
        "workload": {
            "kind": "content-zipf", "subscriptions": 2, "events": 30, "rate_per_s": 10.0,
            "match": 0.3, "start_s": 12.0,
        },
    }  # fmt: skip
    document |= changes
    document = {key: value for key, value in document.items() if value is not None}
    experiment = experiment_from_dict(document, "test")
    outcome: Outcome = run_experiment(experiment, "", results, lambda _line: None)
    return outcome.path


def comparable(metrics: dict[str, Any]) -> str:
    """Metrics as text, to compare two analyses to the last digit."""
    return json.dumps(metrics, sort_keys=True)
