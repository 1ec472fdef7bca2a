"""`tdo run` and `tdo rerun`: the main job, from an experiment file or a run directory."""

import argparse
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from testbed.commands import detached, experiment_options
from testbed.commands.analyze import analyze_fresh
from testbed.commands.privileges import require_root
from testbed.commands.report import report_run
from testbed.commands.sweep import add_arguments, run_sweep
from testbed.detached.launch import is_detached
from testbed.experiment.file import Experiment
from testbed.run.directory import load_run_experiment
from testbed.run.lifecycle import Outcome, run_experiment
from testbed.sweeps.file import load_sweep
from topologies.underlay import Underlay
from topologies.underlay_file import load_underlay

_NOT_VALID = 3


def add_parser(commands: Any) -> None:
    """Add `run` and `rerun` to the commands."""
    parser = commands.add_parser("run", help="run an experiment; an emulated one requires root")
    experiment_options.add_arguments(parser, "an experiment file; lists in it make a sweep")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="folder of data files, such as social graphs; default: $TDO_DATA, else data",
    )
    _add_outputs(parser)
    add_arguments(parser)
    detached.add_arguments(parser)
    parser.set_defaults(run=_run)
    again = commands.add_parser("rerun", help="repeat a run from its directory")
    again.add_argument("directory", type=Path, help="a run directory")
    _add_outputs(again)
    again.set_defaults(run=_rerun)


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        default=Path("results"),
        help="folder of the results; default: results",
    )
    parser.add_argument("--no-report", action="store_true", help="do not analyse the run")
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")


def _run(options: argparse.Namespace) -> int:
    changes = experiment_options.wanted_changes(options)
    if options.data is not None:
        changes["data"] = str(options.data.resolve())
    sweep = load_sweep(options.file, changes)
    if options.detach and not is_detached():
        return detached.start(sweep, options)
    if not sweep.is_plain:
        return run_sweep(sweep, options)
    return _perform(f"run {options.file}", sweep.experiments[0].experiment, sweep.text, options)


def _rerun(options: argparse.Namespace) -> int:
    experiment, text = load_run_experiment(options.directory)
    underlay = load_underlay(options.directory / "underlay.json")
    return _perform(f"rerun {options.directory}", experiment, text, options, underlay)


def _perform(
    command: str,
    experiment: Experiment,
    text: str,
    options: argparse.Namespace,
    underlay: Underlay | None = None,
) -> int:
    if experiment.backend == "emulation":
        require_root(command)
    print(f"{experiment.name}: {experiment.backend}, seed {experiment.seed}", flush=True)
    outcome = run_experiment(experiment, text, options.out, _say, underlay)
    metrics: Mapping[str, Any] = {}
    if not options.no_report:
        metrics, judged = analyze_fresh(outcome.path)
        if judged is not None:
            outcome = replace(outcome, verdict=judged.verdict, reasons=judged.reasons)
        print(f"report: {report_run(outcome.path)}")
    _print_verdict(outcome)
    if options.json:
        print(json.dumps(asdict(outcome) | {"path": str(outcome.path), "metrics": metrics}))
    return 0 if outcome.verdict == "valid" else _NOT_VALID


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _print_verdict(outcome: Outcome) -> None:
    print(f"\n{outcome.records:,} records in {outcome.path}")
    print(f"verdict: {outcome.verdict}")
    for reason in outcome.reasons:
        print(f"  {reason}")
