"""Modules that a run loads: a simulation needs neither Mininet nor Spark."""

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from pathlib import Path
from testbed.experiment.file import experiment_from_dict
from testbed.run.lifecycle import run_experiment
document = {"name": "small", "backend": "simulation", "duration_s": 1.0, "topology": {"hosts": 4}}
run_experiment(experiment_from_dict(document, "test"), "", Path(sys.argv[1]), lambda _: None)
print(sorted({name.partition(".")[0] for name in sys.modules} & {"mininet", "pyspark", "scapy"}))
"""


def test_a_simulation_loads_neither_mininet_nor_spark(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.stdout.strip() == "[]"
