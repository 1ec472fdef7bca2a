"""The workload of a run: drawn once, before the run, from the experiment and its seed."""

from typing import Any

from testbed.data_files import find_data_file
from testbed.errors import ExperimentError
from testbed.experiment.faults import Fault
from testbed.experiment.file import Experiment
from topologies.underlay import Underlay
from workloads.errors import WorkloadError
from workloads.kinds import draw_workload, find_workload, read_settings
from workloads.workload import Workload


def make_workload(experiment: Experiment, underlay: Underlay) -> Workload | None:
    """The workload of an experiment, if it has one."""
    if not experiment.workload:
        return None
    section, hosts = find_files(experiment), [host.name for host in underlay.hosts]
    kind = find_workload(section["kind"])
    places = [(host.x, host.y) for host in underlay.hosts]
    try:
        kind.check_hosts(read_settings(section, kind.Settings), hosts)
    except ValueError as error:
        raise ExperimentError(f"workload.{error}") from error
    try:
        return draw_workload(section, experiment.seed, hosts, places)
    except WorkloadError as error:
        raise ExperimentError(f"workload.{error}") from error


def find_files(experiment: Experiment) -> dict[str, Any]:
    """The section of the workload, with the paths of the data files that it names."""
    section = dict(experiment.workload)
    for key, form in find_workload(section["kind"]).data_files.items():
        path = find_data_file(section[key], experiment.folder, experiment.data)
        if path is None:
            raise ExperimentError(
                f"workload.{key}: expected {form}; found no {section[key]} in {experiment.folder} "
                f"and in {experiment.data}; say where it is with --data"
            )
        section[key] = str(path)
    return section


def plan_churn(experiment: Experiment, workload: Workload | None) -> list[Fault]:
    """The agents that a workload with churn kills and restarts."""
    steps = workload.churn if workload is not None else ()
    return [Fault(*step) for step in steps if step.at_s <= experiment.duration_s]
