"""`tdo reproduce` for tests: all of it but Spark, whose start would take longer than the runs."""

from functools import partial
from pathlib import Path

from analysis.routing_metrics import measure_run
from testbed.cli import _parser
from testbed.commands.reproduce import perform
from testbed.experiment import BACKENDS
from testbed.sweep_runs import perform_here


def reproduce_here(out: Path, *arguments: str) -> int:
    """Do the command with runs in this process; returns its exit status."""
    options = _parser().parse_args(["reproduce", *arguments, "--out", str(out), "--json"])
    return perform(options, dict.fromkeys(BACKENDS, partial(perform_here, measure=measure_run)))
