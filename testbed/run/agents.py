"""The agents of a run: one on every host, with its contacts and its start time."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address
from random import Random

from agents.agent_spec import AgentSpec
from agents.kinds import find_protocol, settings_of
from agents.protocol import WholeNetwork, draw_others
from testbed.errors import ExperimentError
from testbed.experiment.file import Experiment
from topologies.ranked_hosts import farthest_hosts, nearest_hosts
from topologies.routes import Routes
from topologies.underlay import Underlay
from workloads.share import Share
from workloads.workload import Workload


def assign_agents(
    experiment: Experiment, underlay: Underlay, workload: Workload | None
) -> list[AgentSpec]:
    """An agent for every host, with contacts among the agents that start before it."""
    names = [host.name for host in underlay.hosts]
    addresses = [int(IPv4Address(underlay.address[name])) for name in names]
    contacts = choose_contacts(experiment.seed, len(names), experiment.contacts)
    hosts = _tell_hosts(experiment, dict(zip(names, addresses, strict=True)))
    step_us = experiment.start_over_s * 1e6 / len(names)
    shares = workload.shares(len(names)) if workload else [Share()] * len(names)
    targets, plan = _plan(experiment, underlay, shares)
    return [
        AgentSpec(
            name,
            addresses[number],
            tuple(addresses[contact] for contact in contacts[number]),
            tuple(addresses[target] for target in targets.get(number, ())),
            int(number * step_us),
            number,
            len(names),
            experiment.seed,
            hosts,
            shares[number],
            tuple(plan.get(number, ())),
        )
        for number, name in enumerate(names)
    ]


def choose_contacts(seed: int, peers: int, count: int) -> list[list[int]]:
    """For each peer the numbers of contacts that start before it.

    The first peers have no predecessors; they are contacts of each other.
    """
    chance = Random(f"{seed}/contacts")
    first = min(count + 1, peers)
    return [draw_others(chance, number, max(first, number + 1), count) for number in range(peers)]


def _tell_hosts(experiment: Experiment, hosts: Mapping[str, int]) -> Mapping[str, int]:
    """All hosts, if a protocol's settings name hosts; raises if the settings do not fit the
    network.
    """
    told: Mapping[str, int] = {}
    for section, settings in experiment.layers.items():
        protocol = find_protocol(section, settings["kind"])
        if protocol.names_hosts:
            told = hosts
            try:
                protocol.check_hosts(settings_of(protocol, settings), hosts)
            except ValueError as error:
                raise ExperimentError(f"{section}.{error}") from error
    return told


def _plan(
    experiment: Experiment, underlay: Underlay, shares: Sequence[Share]
) -> tuple[Mapping[int, Sequence[int]], Mapping[int, Sequence[int]]]:
    """The targets and the plan of each host by their numbers, where the overlay has some."""
    whole = WholeNetwork(
        experiment.seed,
        len(underlay.hosts),
        lambda count: nearest_hosts(Routes(underlay), count),
        lambda count: farthest_hosts(Routes(underlay), count),
        lambda: [{one.content for one in share.interests_at(0)} for share in shares],
    )
    overlay = find_protocol("overlay", experiment.overlay["kind"])
    settings = settings_of(overlay, experiment.overlay)
    return overlay.choose_targets(settings, whole), overlay.plan(settings, whole)
