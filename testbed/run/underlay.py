"""The underlay of a run: the topology with its hosts and the changes of the experiment."""

from pathlib import Path

from testbed.experiment.file import Experiment
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric, make_lossy
from topologies.kinds import find_topology
from topologies.underlay import Underlay


def make_underlay(experiment: Experiment) -> Underlay:
    """The underlay of an experiment."""
    wanted, seed = experiment.topology, experiment.seed
    underlay = find_topology(wanted.kind).make(wanted, seed, Path(experiment.folder))
    if wanted.asymmetry:
        underlay = make_asymmetric(underlay, wanted.asymmetry, seed)
    if not underlay.hosts:
        underlay = attach_hosts(underlay, wanted.hosts, seed)
    if wanted.anonymous_routers:
        underlay = make_anonymous(underlay, wanted.anonymous_routers, seed)
    if wanted.loss_percent:
        underlay = make_lossy(underlay, wanted.loss_percent)
    return underlay
