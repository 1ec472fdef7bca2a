"""Simulated agents of Scribe on Pastry: speed and largest number."""

import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from agents.runtime.simulator import Simulator
from benchmarks.simulate import Pace, make_crowd, peak_mb, run_ours
from testbed.experiment.file import Experiment, experiment_from_dict
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from testbed.run.workload import make_workload
from testbed.simulation.running_agents import RunningAgents

_PEERS, _GOSSIP_ROUNDS = 1_000, 50
_SIZES = (_PEERS, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
_LONGEST_S = 90.0  # of processor time; the next size takes more than twice as long and is not run
_MEMORY_MB = 24 * 1024
_ROUTERS, _PEERS_A_SECOND, _SETTLE_S = 300, 200, 25.0
_DETECT_S = 20.0  # no peer fails, so few heartbeats suffice
_EVENTS, _EVENTS_A_SECOND = 500, 50.0


@dataclass(frozen=True, slots=True)
class Run:
    """A run of one size: time until all agents are ready, and the rate with events."""

    peers: int
    join: Pace
    events: Pace
    delivered: int
    kb_a_peer: float

    def __str__(self) -> str:
        return (
            f"{self.peers:6} peers: {self.join.messages} messages in {self.join.duration_s:.0f} s "
            f"until all are ready, {self.events.messages_per_s:.0f} messages/s with events, "
            f"{self.delivered} deliveries, {self.kb_a_peer:.0f} kB a peer"
        )


def run() -> dict[str, float]:
    """Print rates and memory, and return the measurements."""
    print("Scribe on Pastry, simulated; one core, a process each, processor time")
    done = list(_grow())
    scribe, largest = done[0], done[-1]
    print(f"  {largest.peers} peers are the most: {_find_end(largest)}")
    gossip = run_ours(make_crowd(_PEERS, _GOSSIP_ROUNDS))
    print(f"  gossip of {_PEERS} peers: {gossip.messages_per_s:.0f} messages/s")
    return {
        "scribe_messages_per_s": scribe.events.messages_per_s,
        "gossip_messages_per_s": gossip.messages_per_s,
        "agent_kb": largest.kb_a_peer,
        "simulated_agents": largest.peers,
    }


def _grow() -> Iterator[Run]:
    """Run with more and more peers, until the next run would take too much time or memory."""
    for peers in _SIZES:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            one = pool.submit(measure, peers).result()
        print(f"  {one}", flush=True)
        yield one
        if _find_end(one):
            return


def _find_end(one: Run) -> str:
    """Why no run is larger than this one; empty if a larger one is possible."""
    spent_s, mb = one.join.duration_s + one.events.duration_s, one.kb_a_peer * one.peers / 1024
    if 2 * mb > _MEMORY_MB:
        return f"twice as many would take {2 * mb / 1024:.0f} GB, over {_MEMORY_MB / 1024:.0f} GB"
    if spent_s > _LONGEST_S:
        fitting = int(_MEMORY_MB * 1024 / one.kb_a_peer)
        return (
            f"twice as many would take over {2 * spent_s / 60:.0f} minutes; the memory of "
            f"{_MEMORY_MB // 1024} GB is enough for {fitting} peers of this size"
        )
    return ""


def measure(peers: int) -> Run:
    """Let agents join and become ready, then publish events, all in this process."""
    base_mb = peak_mb()
    experiment = _experiment(peers)
    underlay = make_underlay(experiment)
    workload = make_workload(experiment, underlay)
    delivered = ready = 0

    def record(_time_us: int, _host: str, what: str, _values: object) -> None:
        nonlocal delivered, ready
        delivered += what == "delivered"
        ready += what == "ready"

    with Simulator(underlay, seed=experiment.seed, record=record) as simulator:
        running = RunningAgents(experiment, simulator)
        for spec in assign_agents(experiment, underlay, workload):
            running.add(spec, starts_by_fault=False)
        join = _run_until(simulator, experiment.workload["start_s"])
        if ready < peers:
            raise AssertionError(f"expected {peers} agents to be ready, found {ready}")
        events = _run_until(simulator, experiment.duration_s)
    return Run(peers, join, events, delivered, (peak_mb() - base_mb) * 1024 / peers)


def _run_until(simulator: Simulator, until_s: float) -> Pace:
    before, start_s = simulator.messages, time.process_time()
    simulator.run(int(until_s * 1e6))
    return Pace(simulator.messages - before, time.process_time() - start_s)


def _experiment(peers: int) -> Experiment:
    start_over_s = peers / _PEERS_A_SECOND
    start_s = start_over_s + _SETTLE_S
    return experiment_from_dict(
        {
            "name": "topic-agents",
            "backend": "simulation",
            "capture": "none",
            "start_over_s": start_over_s,
            "duration_s": start_s + _EVENTS / _EVENTS_A_SECOND + 2,
            "topology": {"routers": _ROUTERS, "hosts": peers},
            "overlay": {"kind": "pastry", "detect_s": _DETECT_S},
            "pubsub": {"kind": "scribe"},
            "workload": {
                "kind": "topics-uniform",
                "topics": peers,
                "topics_per_peer": 10,
                "events": _EVENTS,
                "rate_per_s": _EVENTS_A_SECOND,
                "start_s": start_s,
            },
        },
        "tdo bench topics",
    )
