"""The workload of a run: drawn once, before the run, from the experiment and its seed."""

from testbed.errors import ExperimentError
from testbed.experiment.faults import Fault
from testbed.experiment.file import Experiment
from topologies.underlay import Underlay
from workloads.kinds import draw_workload, find_workload, read_settings
from workloads.workload import Workload


def make_workload(experiment: Experiment, underlay: Underlay) -> Workload | None:
    """The workload that an experiment asks for, if it does."""
    section, hosts = experiment.workload, [host.name for host in underlay.hosts]
    if not section:
        return None
    kind = find_workload(section["kind"])
    try:
        kind.check_hosts(read_settings(section, kind.Settings), hosts)
    except ValueError as error:
        raise ExperimentError(f"workload.{error}") from error
    places = [(host.x, host.y) for host in underlay.hosts]
    return draw_workload(section, experiment.seed, hosts, places)


def plan_churn(experiment: Experiment, workload: Workload | None) -> list[Fault]:
    """The agents that a workload with churn kills and starts again."""
    steps = workload.churn if workload is not None else ()
    return [Fault(*step) for step in steps if step.at_s <= experiment.duration_s]
