"""Speed of the simulator: gossip compared with SimPy, and gossip of up to 100,000 nodes."""

import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from ipaddress import IPv4Address
from multiprocessing import get_context
from pathlib import Path
from random import Random

from agents.agent import Actions, Agent
from agents.overlays.gossip import GossipSize
from agents.protocol import Surroundings
from agents.runtime.packet_log import PacketLog
from agents.runtime.simulator import Simulator
from agents.wire.codec import Datagram, decode, encode
from benchmarks.simpy_gossip import SimpyScheduler, SimpySimulation, Style
from topologies.hosts import attach_hosts
from topologies.routes import Routes
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

_SEED, _RUN_ID = 1, 1
_ROUTERS = 1_640
_CONTACTS = 20
_PERIOD_US = 1_000_000
_NODES, _ROUNDS, _REPEATS = 1_000, 60, 5
_SIZES, _ROUNDS_WHEN_MANY = (1_000, 10_000, 100_000), 10
_MB = 1 << 20


class EncodingAgent(Agent):
    """An agent that encodes and decodes its messages, as on a network."""

    __slots__ = ()

    def on_datagram(self, now_us: int, datagram: Datagram) -> Actions:
        """Handle a datagram."""
        return Agent.on_datagram(self, now_us, decode(encode(datagram)))  # faster than `super`


@dataclass(frozen=True, slots=True)
class Crowd:
    """Gossiping agents on the hosts of an underlay."""

    underlay: Underlay
    routes: Routes
    contacts: dict[str, tuple[int, ...]]
    rounds: int

    def make_agents(self, kind: type[Agent] = Agent) -> dict[str, Agent]:
        """New agents, the same each time."""
        settings = GossipSize.Settings(period_us=_PERIOD_US, rounds=self.rounds)
        agents = {}
        for host, known in self.contacts.items():
            address = int(IPv4Address(self.underlay.address[host]))
            given = Surroundings(address, known, Random(f"{_SEED}/{host}"), settings)
            agents[host] = kind(address, _RUN_ID, GossipSize(given))
        return agents

    @property
    def until_us(self) -> int:
        """The time when all rounds are over."""
        return (self.rounds + 2) * _PERIOD_US


@dataclass(frozen=True, slots=True)
class Pace:
    """The number of messages handled, and their processor time."""

    messages: int
    duration_s: float

    @property
    def messages_per_s(self) -> float:
        """Messages per second of processor time."""
        return self.messages / self.duration_s


@dataclass(frozen=True, slots=True)
class Growth:
    """Time and memory of a simulation of one size."""

    nodes: int
    prepare_s: float
    pace: Pace
    base_mb: float
    peak_mb: float

    def __str__(self) -> str:
        kb_a_node = (self.peak_mb - self.base_mb) * 1024 / self.nodes
        return (
            f"{self.nodes:7} nodes: {self.prepare_s:5.1f} s to prepare, "
            f"{self.pace.messages} messages in {self.pace.duration_s:.1f} s, "
            f"{self.pace.messages_per_s:.0f}/s, {self.peak_mb:.0f} MB, {kb_a_node:.1f} kB a node"
        )


def run() -> dict[str, float]:
    """Print rates by size, and return the measurements."""
    crowd = make_crowd(_NODES, _ROUNDS)
    print(f"gossip of {_NODES} nodes on {_ROUTERS} routers, the best of {_REPEATS}, one core")
    paces = _compare(crowd)
    for name, pace in paces.items():
        print(f"  {name:36} {pace.messages_per_s:9.0f} messages/s", flush=True)
    growths = [_measure_apart(nodes) for nodes in _SIZES]
    rate = {name: pace.messages_per_s for name, pace in paces.items()}
    ours, encoded = rate["simulator"], rate["simulator, through the codec"]
    return {
        "messages_per_s": ours,
        "messages_per_s_encoded": encoded,
        "messages_per_s_logged": rate["simulator, every crossing written"],
        # A process for each packet, as in SimPy's documentation. Like our fast path, it waits once
        # for a whole route, but it has no links that could change. Our simulator runs the garbage
        # collector less often; this makes no difference to SimPy.
        "speedup_vs_simpy": ours / rate["SimPy, one wait for the whole way"],
        "speedup_vs_simpy_encoded": encoded / rate["SimPy, ways, through the codec"],
        "speedup_vs_simpy_links": ours / rate["SimPy, one wait for each link"],
        "speedup_vs_simpy_links_encoded": encoded / rate["SimPy, links, through the codec"],
        "speedup_vs_simpy_routers": ours / rate["SimPy, routers and cables"],
        # Only SimPy's event queue, without its processes and without links.
        "speedup_vs_simpy_callbacks": ours / rate["SimPy's queue with callbacks"],
        "speedup_vs_simpy_callbacks_encoded": encoded / rate["SimPy's queue, through the codec"],
        "mb_at_100k_nodes": growths[-1].peak_mb,
        "messages_per_s_at_100k_nodes": growths[-1].pace.messages_per_s,
    }


def _compare(crowd: Crowd) -> dict[str, Pace]:
    """The best rate of each simulator; they alternate, so other programs affect all of them."""
    turns = [race(crowd) for _ in range(_REPEATS)]
    return {
        name: max((turn[name] for turn in turns), key=lambda pace: pace.messages_per_s)
        for name in turns[0]
    }


def race(crowd: Crowd) -> dict[str, Pace]:
    """The rate of each simulator, all with the same agents."""
    return {
        "simulator": run_ours(crowd),
        "simulator, through the codec": run_ours(crowd, kind=EncodingAgent),
        "simulator, every crossing written": _run_ours_logged(crowd),
        "SimPy, routers and cables": _run_simpy(crowd, "nodes"),
        "SimPy, one wait for each link": _run_simpy(crowd, "links"),
        "SimPy, links, through the codec": _run_simpy(crowd, "links", EncodingAgent),
        "SimPy, one wait for the whole way": _run_simpy(crowd, "ways"),
        "SimPy, ways, through the codec": _run_simpy(crowd, "ways", EncodingAgent),
        "SimPy's queue with callbacks": _run_simpy(crowd, "callbacks"),
        "SimPy's queue, through the codec": _run_simpy(crowd, "callbacks", EncodingAgent),
    }


def make_crowd(nodes: int, rounds: int, routers: int = _ROUTERS) -> Crowd:
    """Nodes on the hosts of a random network; each knows some of the others."""
    underlay = attach_hosts(generate_waxman(routers, seed=_SEED), nodes, seed=_SEED)
    everyone = [int(IPv4Address(underlay.address[host.name])) for host in underlay.hosts]
    chance, contacts = Random(_SEED), {}
    for host, address in zip(underlay.hosts, everyone, strict=True):
        known = [peer for peer in chance.sample(everyone, _CONTACTS + 1) if peer != address]
        contacts[host.name] = tuple(known[:_CONTACTS])
    return Crowd(underlay, Routes(underlay), contacts, rounds)


def run_ours(crowd: Crowd, packets: Path | None = None, kind: type[Agent] = Agent) -> Pace:
    """The rate of our simulator."""
    notes = PacketLog(packets, crowd.underlay) if packets else None
    with Simulator(crowd.underlay, seed=_SEED, routes=crowd.routes, notes=notes) as simulator:
        for host, agent in crowd.make_agents(kind).items():
            simulator.add_agent(host, lambda agent=agent: agent)  # type: ignore[misc]
            simulator.start_agent(0, host)
        # Routes are computed before the measurement, as for SimPy.
        for router in range(len(crowd.underlay.routers)):
            simulator.network.forwarding.plain_delays_us(router)
        start_s = time.process_time()
        simulator.run(crowd.until_us)
        simulator.close()
        return Pace(simulator.messages, time.process_time() - start_s)


def _run_ours_logged(crowd: Crowd) -> Pace:
    with tempfile.TemporaryDirectory() as folder:
        return run_ours(crowd, Path(folder))


def _run_simpy(crowd: Crowd, style: Style, kind: type[Agent] = Agent) -> Pace:
    agents = crowd.make_agents(kind)
    simulation: SimpyScheduler | SimpySimulation
    if style == "callbacks":
        simulation = SimpyScheduler(crowd.routes, agents, crowd.contacts)
    else:
        simulation = SimpySimulation(crowd.routes, agents, crowd.contacts, style)
    start_s = time.process_time()
    simulation.run(crowd.until_us)
    return Pace(simulation.messages, time.process_time() - start_s)


def _measure_apart(nodes: int) -> Growth:
    """Run a simulation in a separate process, so that its memory is separate, too."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        growth = process.submit(_grow, nodes).result()
    print(f"  {growth}", flush=True)
    return growth


def _grow(nodes: int) -> Growth:
    start_s, base_mb = time.process_time(), peak_mb()
    crowd = make_crowd(nodes, _ROUNDS_WHEN_MANY)
    prepare_s = time.process_time() - start_s
    pace = run_ours(crowd)
    return Growth(nodes, prepare_s, pace, base_mb, peak_mb())


def peak_mb() -> float:
    """The peak memory of this process."""
    # `getrusage` is no alternative: a process inherits its value from its parent.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / _MB
