"""What both backends need before they start: the underlay, and who knows whom."""

import random
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path

from testbed.experiment import Experiment
from topologies.domain_sizes import choose_domain_sizes
from topologies.hosts import attach_hosts, make_anonymous, make_asymmetric
from topologies.importers import load_topology
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman


@dataclass(frozen=True, slots=True)
class Casting:
    """Where and when an agent starts, whom it knows then, and the seed of its dice."""

    host: str
    address: int
    contacts: tuple[int, ...]
    start_us: int
    seed: str


def make_underlay(experiment: Experiment) -> Underlay:
    """The underlay that an experiment asks for."""
    wanted, seed = experiment.topology, experiment.seed
    if wanted.kind == "file":
        underlay = load_topology(Path(experiment.folder, wanted.file))
    elif wanted.kind == "waxman":
        underlay = generate_waxman(wanted.routers, seed=seed)
    else:
        underlay = generate_transit_stub(choose_domain_sizes(wanted.routers), seed=seed)
    if wanted.asymmetry:
        underlay = make_asymmetric(underlay, wanted.asymmetry, seed)
    if not underlay.hosts:
        underlay = attach_hosts(underlay, wanted.hosts, seed)
    if wanted.anonymous_routers:
        underlay = make_anonymous(underlay, wanted.anonymous_routers, seed)
    return underlay


def cast(experiment: Experiment, underlay: Underlay) -> list[Casting]:
    """An agent for every host, each knowing some that started before it.

    The first ones have nobody before them, and know each other.
    """
    chance = random.Random(f"{experiment.seed}/contacts")
    addresses = [int(IPv4Address(underlay.address[host.name])) for host in underlay.hosts]
    step_us = experiment.start_over_s * 1e6 / len(addresses)
    first = min(experiment.contacts + 1, len(addresses))
    castings = []
    for number, host in enumerate(underlay.hosts):
        known = addresses[:number] if number >= first else addresses[:first]
        others = [address for address in known if address != addresses[number]]
        contacts = chance.sample(others, min(experiment.contacts, len(others)))
        seed = f"{experiment.seed}/{host.name}"
        start_us = int(number * step_us)
        castings.append(Casting(host.name, addresses[number], tuple(contacts), start_us, seed))
    return castings
