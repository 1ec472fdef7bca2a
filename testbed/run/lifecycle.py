"""One run of an experiment, from the file to the run directory, on either backend."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.detached.state import RECORDING
from testbed.experiment.faults import name_agents, plan_faults
from testbed.experiment.file import Experiment
from testbed.ownership import hand_over
from testbed.run.agents import assign_agents
from testbed.run.directory import Origin, RunDirectory, point_latest
from testbed.run.neighbours import similarity_figures
from testbed.run.reasons import emulation_reasons
from testbed.run.underlay import make_underlay
from testbed.run.verdict import verdict_document
from testbed.run.workload import make_workload, plan_churn
from topologies.underlay import Underlay


@dataclass(frozen=True, slots=True)
class Outcome:
    """The directory of a run, its verdict, and the number of records."""

    path: Path
    verdict: str
    reasons: tuple[str, ...]
    figures: dict[str, Any]
    records: int


def run_experiment(
    experiment: Experiment,
    text: str,
    results: Path,
    say: Callable[[str], None],
    underlay: Underlay | None = None,
) -> Outcome:
    """Run an experiment; `text` is its file as given, `results` the folder of its directory.

    To repeat a run, its `underlay` is given; otherwise it is made from the experiment.
    """
    ours = [path for path in (results, results / experiment.name) if not path.exists()]

    def create() -> RunDirectory:
        return RunDirectory.create(experiment, results)

    try:
        outcome = _run_in(create, experiment, text, say, underlay)
        point_latest(outcome.path)
    finally:
        hand_over([*ours, results / experiment.name / "latest"])
    return outcome


def run_at(
    final: Path,
    experiment: Experiment,
    text: str,
    origin: Origin,
    say: Callable[[str], None] = lambda _line: None,
) -> Outcome:
    """Run an experiment of a sweep; its directory gets the given name, or does not exist."""

    def create() -> RunDirectory:
        return RunDirectory.create_for(final, origin)

    return _run_in(create, experiment, text, say, is_of_sweep=True)


def _run_in(
    create: Callable[[], RunDirectory],
    experiment: Experiment,
    text: str,
    say: Callable[[str], None],
    underlay: Underlay | None = None,
    is_of_sweep: bool = False,
) -> Outcome:
    start = time.perf_counter()
    underlay = underlay or make_underlay(experiment)
    faults = plan_faults(experiment.faults, underlay)
    workload = make_workload(experiment, underlay)
    specs = assign_agents(experiment, underlay, workload)
    faults = name_agents([*faults, *plan_churn(experiment, workload)], underlay)
    played = replace(experiment, faults=tuple(faults))
    directory = create()
    if not is_of_sweep:  # a sweep has a directory for all of its runs
        say(f"{RECORDING}{directory.path}")
    directory.played_faults = played.faults
    directory.phases["stage"] = round(time.perf_counter() - start, 3)
    try:
        directory.describe(experiment, text, underlay, workload)
        with _timed(directory, "run"):
            backend = _find_backend(experiment.backend)
            figures = backend(played, underlay, specs, directory.path / "agents", say)
        with _timed(directory, "records"):
            records = directory.gather_records()
            recorded = directory.path / "agents" / "records.parquet"
            figures |= similarity_figures(recorded, underlay, workload)
        reasons = emulation_reasons(figures) if experiment.backend == "emulation" else []
        document = verdict_document(reasons, figures)
        path = directory.finish(experiment, document)
    except BaseException:
        if is_of_sweep:
            directory.drop()
        else:
            say(f"the run is incomplete; its files are in {directory.path}")
            say(f"analyse it with tdo analyze {directory.path}, or remove it")
        raise
    finally:
        hand_over([directory.path])
    return Outcome(path, document["verdict"], tuple(document["reasons"]), figures, records)


def _find_backend(name: str) -> Callable[..., dict[str, Any]]:
    """The backend of an experiment; a simulation imports neither emulation nor Mininet."""
    if name == "emulation":
        from testbed.emulation.run import emulate

        return emulate
    from testbed.simulation.run import simulate

    return simulate


@contextmanager
def _timed(directory: RunDirectory, phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    directory.phases[phase] = round(time.perf_counter() - start, 3)
