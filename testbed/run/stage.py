"""What both backends need before they start: the underlay, and who knows whom."""

from collections.abc import Mapping
from ipaddress import IPv4Address
from pathlib import Path
from random import Random

import numpy as np

from agents.agent_spec import AgentSpec
from agents.kinds import find_protocol, settings_of
from testbed.errors import ExperimentError
from testbed.experiment.file import Experiment
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.kinds import find_topology
from topologies.routes import Routes
from topologies.underlay import Underlay
from workloads.share import Share
from workloads.workload import Workload


def make_underlay(experiment: Experiment) -> Underlay:
    """The underlay that an experiment asks for."""
    wanted, seed = experiment.topology, experiment.seed
    underlay = find_topology(wanted.kind).make(wanted, seed, Path(experiment.folder))
    if wanted.asymmetry:
        underlay = make_asymmetric(underlay, wanted.asymmetry, seed)
    if not underlay.hosts:
        underlay = attach_hosts(underlay, wanted.hosts, seed)
    if wanted.anonymous_routers:
        underlay = make_anonymous(underlay, wanted.anonymous_routers, seed)
    return underlay


def assign_agents(
    experiment: Experiment, underlay: Underlay, workload: Workload | None
) -> list[AgentSpec]:
    """An agent for every host, each knowing some that started before it.

    The first ones have nobody before them, and know each other.
    """
    chance = Random(f"{experiment.seed}/contacts")
    addresses = [int(IPv4Address(underlay.address[host.name])) for host in underlay.hosts]
    targets = _choose_targets(experiment, underlay)
    names = [host.name for host in underlay.hosts]
    hosts = _tell_hosts(experiment, dict(zip(names, addresses, strict=True)))
    step_us = experiment.start_over_s * 1e6 / len(addresses)
    first = min(experiment.contacts + 1, len(addresses))
    shares = workload.shares(len(addresses)) if workload else [Share()] * len(addresses)
    specs = []
    for number, host in enumerate(underlay.hosts):
        known = addresses[:number] if number >= first else addresses[:first]
        others = [address for address in known if address != addresses[number]]
        contacts = chance.sample(others, min(experiment.contacts, len(others)))
        specs.append(
            AgentSpec(
                host.name,
                addresses[number],
                tuple(contacts),
                tuple(addresses[target] for target in targets.get(number, ())),
                int(number * step_us),
                number,
                len(addresses),
                experiment.seed,
                hosts,
                shares[number],
            )
        )
    return specs


def _tell_hosts(experiment: Experiment, hosts: Mapping[str, int]) -> Mapping[str, int]:
    """All hosts, if a protocol's settings name some; raise if those make no sense here."""
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


def _choose_targets(experiment: Experiment, underlay: Underlay) -> Mapping[int, list[int]]:
    """For baselines that know the whole network: the targets of each host, by their numbers."""
    choice, count = experiment.overlay.get("heuristic"), experiment.overlay.get("targets", 0)
    hosts = range(len(underlay.hosts))
    if choice == "tarrand":
        chance = Random(f"{experiment.seed}/targets")
        others = {host: [other for other in hosts if other != host] for host in hosts}
        return {host: chance.sample(others[host], min(count, len(hosts) - 1)) for host in hosts}
    if choice in ("nearest", "farthest"):
        delays_us = Routes(underlay).host_delays_us()
        np.fill_diagonal(delays_us, -1 if choice == "farthest" else np.iinfo(np.int64).max)
        order = np.argsort(delays_us if choice == "nearest" else -delays_us, kind="stable")
        return {host: order[host, : min(count, len(hosts) - 1)].tolist() for host in hosts}
    return {}
