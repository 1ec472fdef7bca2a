"""One simulated run of all layers, analysed once for all tests that only read it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.fixtures.content_runs import run_small

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def faulty_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all layers in which an agent crashes and another is stopped for a while."""
    faults = [
        {"at_s": 13.05, "action": "kill-agent", "target": "h4"},
        {"at_s": 13.55, "action": "kill-agent", "target": "h2"},
        {"at_s": 14.05, "action": "restart-agent", "target": "h2"},
    ]
    return run_small(tmp_path_factory.mktemp("results"), fault=faults, duration_s=24.0)


@pytest.fixture(scope="session")
def faulty_metrics(faulty_run: Path, spark: "SparkSession") -> dict[str, Any]:
    """Its metrics; the tables of the run exist, too."""
    from analysis.analyze import analyze_run  # tests without Spark need not wait for its import

    return analyze_run(spark, faulty_run)
