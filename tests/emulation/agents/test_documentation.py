"""The examples in docs/writing-a-protocol.md and docs/probing.md run as written."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PACKAGES = ("topologies", "workloads", "agents", "testbed", "analysis")
MOST_LINES = 60  # lines of a complete publish/subscribe protocol


def blocks(page: str, language: str) -> list[str]:
    """The blocks of code on a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the packages with the additions of the page."""
    copy = tmp_path_factory.mktemp("extended")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("*.pyc"))
    protocol, workload = blocks("writing-a-protocol.md", "python")
    assert len(protocol.splitlines()) < MOST_LINES
    for code in (protocol, workload):
        (copy / code.splitlines()[0].removeprefix("# ")).write_text(code)
    page = (DOCS / "writing-a-protocol.md").read_text()
    add_line(copy / "agents" / "kinds.py", '"pubsub": {', page, '"plain-flood"')
    add_line(copy / "workloads" / "kinds.py", "WORKLOADS: dict[str, str] = {", page, '"few-topics"')
    (file,) = blocks("writing-a-protocol.md", "toml")
    (copy / "flood.toml").write_text(file)
    return copy


def add_line(table: Path, after: str, page: str, key: str) -> None:
    """Add a line of the page to a table of kinds."""
    (line,) = re.findall(rf"`({key}: \"[^`]+\")`", page)
    text = table.read_text()
    assert text.count(after) == 1
    table.write_text(text.replace(after, f"{after}\n        {line},"))


COMMAND = "import sys; from testbed.cli import main; sys.exit(main())"
# Without Spark, whose start takes longer than the run: metrics of records only.
COMMAND_AND_METRICS = """
import sys
from pathlib import Path
from analysis.metrics.file import measure_run
from testbed.cli import main
status = main([*sys.argv[1:], "--no-report"])
run = Path("results/flood/latest")
measure_run(run)
sys.exit(status or main(["report", str(run)]))
"""


def run_as_a_reader(command: str, folder: Path, backend: str) -> tuple[dict[str, Any], str]:
    """Run the page's experiment; returns its metrics and its report."""
    done = subprocess.run(
        [sys.executable, "-c", command, "run", f"{folder.parent}/flood.toml",
         "--backend", backend, "--out", "results"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder.parent)},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stdout + done.stderr
    run = folder / "results" / "flood" / "latest"
    # On a busy machine, packets may be late, and an emulated run is degraded.
    verdicts = {"simulation": ("valid",), "emulation": ("valid", "degraded")}
    assert json.loads((run / "verdict.json").read_text())["verdict"] in verdicts[backend]
    results = run / "analysis"
    metrics = json.loads((results / "metrics.json").read_text())
    return metrics, (results / "report.html").read_text()


@pytest.mark.parametrize(
    ("backend", "command", "shown"),
    [
        ("simulation", COMMAND_AND_METRICS, ("delivery", "false_positives")),
        ("emulation", COMMAND, ("delivery", "false_positives", "link_stress")),
    ],
)
def test_the_protocol_and_its_workload_run_and_have_a_complete_report(
    extended: Path, backend: str, command: str, shown: tuple[str, ...]
) -> None:
    (folder := extended / backend).mkdir()
    metrics, report = run_as_a_reader(command, folder, backend)
    delivery = metrics["delivery"]
    assert delivery["expected"] == delivery["delivered"] > 0 == delivery["duplicates"]
    assert metrics["false_positives"] > 0
    assert "link_stress" not in shown or metrics["link_stress"]["mean"] > 1
    assert all(name in report for name in shown)


def run_code(page: str) -> dict[str, Any]:
    """Run the Python code on a page; returns its global variables."""
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile("\n".join(blocks(page, "python")), page, "exec"), names)
    return names


def test_a_map_is_drawn_from_probes() -> None:
    found = run_code("probing.md")
    apart, merged = found["scores"][False], found["scores"][True]
    assert merged.link_precision > apart.link_precision
    assert merged.router_recall > 0.9
    assert found["balanced"].is_reached and not found["balanced"].is_balanced
