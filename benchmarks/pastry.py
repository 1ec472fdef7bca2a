"""Simulated agents of Pastry: hops and delays of routes, with and without proximity."""

import math
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.overlays.identifiers import identifier_of
from agents.runtime.simulator import Simulator
from testbed.experiment.file import Experiment, experiment_from_dict
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.simulation.running_agents import RunningAgents
from topologies.overlays.interests import make_interests
from topologies.overlays.key_routes import KeyRoutes, walk
from topologies.overlays.kinds import key_routes
from topologies.overlays.overlay import Overlay, distinct_edges
from topologies.routes import Routes
from topologies.underlay import Underlay

_DIGITS, _SIZES, _SMALL = 4, (256, 1_024, 4_096), 256
_OTHER_DIGITS = (1, 2, 8)
_ROUTERS, _PEERS_A_SECOND, _SETTLE_S = 200, 256, 16.0
_KEYS, _STARTS = 200, 100

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Measured:
    """Routes to random keys over the tables of agents.

    `hops` is the mean over routes. `rdp` is the delay of a route divided by the unicast delay.
    """

    peers: int
    b: int
    proximity: bool
    hops: float
    arrived: float
    rdp_mean: float
    rdp_median: float
    entries: float
    messages: int

    @property
    def ratio(self) -> float:
        """Mean hops divided by the logarithm of the number of peers to the base of a digit."""
        return self.hops * self.b / math.log2(self.peers)

    def __str__(self) -> str:
        return (
            f"{self.peers:5} peers, b = {self.b}, proximity {'on' if self.proximity else 'off':3}: "
            f"{self.hops:.3f} hops, {self.ratio:.3f} of log{1 << self.b} N, "
            f"{100 * self.arrived:.2f} % arrived, RDP {self.rdp_mean:.2f} (median "
            f"{self.rdp_median:.2f}), {self.entries:.1f} entries, {self.messages} messages"
        )


def run() -> dict[str, float]:
    """Print hops and delays of routes, and return the measurements."""
    print(f"Pastry, simulated: routes to {_KEYS} random keys from {_STARTS} peers each, 16 leaves")
    measured = {peers: _measure_apart(peers, _DIGITS, True) for peers in _SIZES}
    for b in _OTHER_DIGITS:
        _measure_apart(_SMALL, b, True)
    without = _measure_apart(_SMALL, _DIGITS, False)
    return {
        **{f"hops_{peers}": one.hops for peers, one in measured.items()},
        **{f"hops_of_log_{peers}": one.ratio for peers, one in measured.items()},
        "rdp_with_proximity": measured[_SMALL].rdp_mean,
        "rdp_without_proximity": without.rdp_mean,
    }


def _measure_apart(peers: int, b: int, proximity: bool) -> Measured:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        done = pool.submit(measure, peers, b, proximity).result()
    print(f"  {done}", flush=True)
    return done


def measure(peers: int, b: int, proximity: bool, routers: int = _ROUTERS) -> Measured:
    """Let peers join, and compute routes over the tables that they have then."""
    experiment = _experiment(peers, b, proximity, routers)
    underlay = make_underlay(experiment)
    links: dict[tuple[str, int], str] = {}

    def record(_time_us: int, host: str, what: str, values: Mapping[str, Any]) -> None:
        if what == "neighbour_added":
            links[host, values["peer"]] = values["role"]
        elif what == "neighbour_removed" and links[host, values["peer"]] == values["role"]:
            del links[host, values["peer"]]

    with Simulator(underlay, seed=experiment.seed, record=record) as simulator:
        running = RunningAgents(experiment, simulator)
        for spec in assign_agents(experiment, underlay, None):
            running.add(spec, starts_by_fault=False)
        simulator.run(int(experiment.duration_s * 1e6))
    overlay = _overlay(underlay, links, experiment.overlay)
    hops, has_arrived, rdp = _route(underlay, key_routes(overlay))
    return Measured(
        peers,
        b,
        proximity,
        float(hops.mean()),
        float(has_arrived.mean()),
        float(rdp.mean()),
        float(np.median(rdp)),
        len(overlay.edges) / peers,
        simulator.messages,
    )


def _experiment(peers: int, b: int, proximity: bool, routers: int) -> Experiment:
    start_over_s = peers / _PEERS_A_SECOND
    # No peer fails, and the simulator's delays are exact: few heartbeats and samples are
    # sufficient.
    overlay = {"b": b, "proximity": proximity, "delay_samples": 1, "detect_s": 20.0}
    return experiment_from_dict(
        {
            "name": "pastry",
            "backend": "simulation",
            "capture": "none",
            "start_over_s": start_over_s,
            "duration_s": start_over_s + _SETTLE_S,
            "topology": {"routers": routers, "hosts": peers},
            "overlay": {"kind": "pastry", **overlay},
        },
        "tdo bench pastry",
    )


def _overlay(
    underlay: Underlay, links: Mapping[tuple[str, int], str], settings: Mapping[str, Any]
) -> Overlay:
    """The tables of all agents; entries of the routing table precede leaves."""
    addresses = [int(IPv4Address(underlay.address[host.name])) for host in underlay.hosts]
    number = {address: at for at, address in enumerate(addresses)}
    at_host = {host.name: at for at, host in enumerate(underlay.hosts)}
    in_order = sorted(links, key=lambda link: links[link] != "table")
    edges = distinct_edges(
        [(at_host[host], number[peer]) for host, peer in in_order], len(number), directed=True
    )
    return Overlay(
        make_interests(len(number), _KEYS, []),
        edges,
        directed=True,
        ids=np.array([identifier_of(address) for address in addresses], dtype=np.uint64),
        kind="pastry",
        settings={key: settings[key] for key in ("b", "leaves") if key in settings},
    )


def _route(
    underlay: Underlay, routes: KeyRoutes
) -> tuple[Numbers, NDArray[np.bool_], NDArray[np.float64]]:
    """Hops of each route, whether it arrived, and the RDP of routes with a delay above 0."""
    chance = np.random.default_rng(1)
    nodes = routes.overlay.nodes
    starts = chance.integers(nodes, size=(_KEYS, _STARTS)).ravel()
    targets = routes.rendezvous().take(np.repeat(np.arange(_KEYS), _STARTS))
    names = [host.name for host in underlay.hosts]
    ways = Routes(underlay)
    at, delay_us = starts.copy(), np.zeros(len(starts), dtype=np.int64)

    def visit(moving: Numbers, to: Numbers) -> None:
        for route, node in zip(moving.tolist(), to.tolist(), strict=True):
            delay_us[route] += ways.path_delay_us(names[at[route]], names[node])
            at[route] = node

    walks = walk(routes, starts, targets, visit)
    direct_us = np.array(
        [
            ways.path_delay_us(names[start], names[root]) if start != root else 0
            for start, root in zip(starts.tolist(), targets.root.tolist(), strict=True)
        ]
    )
    is_apart = direct_us > 0
    return walks.hops, walks.has_arrived, delay_us[is_apart] / direct_us[is_apart]
