"""Start-up time and idle load of 1,024 agents on 1,640 routers.

Round trips are compared with those of the simulator, which are exact.
"""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from statistics import fmean

from agents.records import RecordRow, read_records
from agents.runtime.held_clock import HeldClock
from benchmarks.build import PeakMemory, print_phase
from benchmarks.links import busy_s
from testbed.commands.privileges import require_root
from testbed.emulation.agents import AgentProcesses
from testbed.emulation.network import EmulatedNetwork
from testbed.errors import EmulationError
from testbed.experiment.file import Experiment
from testbed.run.agents import assign_agents
from testbed.run.underlay import make_underlay
from topologies.routes import Routes
from topologies.topology import TopologySettings

_ROUTERS, _HOSTS = 1640, 1024
_DURATION_S = 60.0
_IDLE_FROM_S, _IDLE_TO_S, _A_MOMENT_S = 40.0, 55.0, 0.01


def run() -> dict[str, float]:
    """Build the network, start an agent on each host, and wait until each has an answer."""
    require_root("bench agents")
    experiment = Experiment(
        name="agents",
        duration_s=_DURATION_S,
        contacts=1,
        start_over_s=5.0,
        agents_per_process=_HOSTS,
        topology=TopologySettings(routers=_ROUTERS, hosts=_HOSTS),
        overlay={"kind": "hello", "greetings": 1, "period_us": 1_000_000},
    )
    underlay = make_underlay(experiment)
    with (
        PeakMemory() as memory,
        tempfile.TemporaryDirectory() as folder,
        EmulatedNetwork(underlay, on_phase=print_phase) as network,
    ):
        there, held_ns = time.monotonic(), network.clock.held_ns
        agents = AgentProcesses(
            network, experiment, assign_agents(experiment, underlay, None), Path(folder)
        )
        try:
            agents.start()
            opened_s = time.monotonic() - there
            print(f"  {_HOSTS} agents with open sockets after {opened_s:.1f} s", flush=True)
            origin_ns = agents.go()
            origin_s = time.monotonic() - there + (origin_ns - network.clock.now_ns()) / 1e9
            watched = [*network.link_layer.processes, *agents.processes]
            idle_cores = _measure_idle(network.clock, origin_ns, watched)
            processes = agents.finish()
        finally:
            agents.stop()
        answered = _answer_times_s(Path(folder))
        longer = delays_longer(Path(folder), network.routes)
        held_s = (network.clock.held_ns - held_ns) / 1e9
    hosts = [host.name for host in underlay.hosts]
    up_s = origin_s + last_answer_s(answered, hosts) + held_s  # an upper bound
    print(f"  {len(answered)} of {_HOSTS} answered by a neighbour, the last after {up_s:.1f} s")
    print(f"  idle load {idle_cores:.2f} cores, lag {processes[0]['lag']}")
    print(f"  the clock paused for {held_s:.2f} s in all")
    print(f"  round trips {100 * longer:.1f} % longer than simulated, on average")
    return {
        "up_s": up_s,
        "agents_answered": len(answered),
        "peak_mb": memory.peak_mb,
        "idle_cores": idle_cores,
        "delays_longer": longer,
        "held_s": held_s,
    }


def last_answer_s(answered: Mapping[str, float], hosts: Sequence[str]) -> float:
    """The time of the last first answer of some hosts; raises if a host never had an answer."""
    silent = [host for host in hosts if host not in answered]
    if silent:
        raise EmulationError(
            f"agents: expected all {len(hosts)} to be answered within {_DURATION_S:.0f} s, found "
            f"{len(silent)} without an answer, among them {silent[0]}"
        )
    return max(answered.values())


def _measure_idle(clock: HeldClock, origin_ns: int, processes: list[int]) -> float:
    """The processor time per second of processes with idle agents."""
    while (left_s := _IDLE_FROM_S - (clock.now_ns() - origin_ns) / 1e9) > 0:
        time.sleep(left_s + _A_MOMENT_S)
    before_s = sum(busy_s(process) for process in processes)
    time.sleep(_IDLE_TO_S - _IDLE_FROM_S)
    after_s = sum(busy_s(process) for process in processes)
    return (after_s - before_s) / (_IDLE_TO_S - _IDLE_FROM_S)


def _answer_times_s(folder: Path) -> dict[str, float]:
    """The time of each host's first message from its neighbour, in seconds of the run."""
    times: dict[str, float] = {}
    for row in _measurements(folder):
        times.setdefault(row.host, row.time_us / 1e6)
    return times


def delays_longer(folder: Path, routes: Routes) -> float:
    """The mean share by which measured round trips are longer than simulated ones."""
    shares = []
    for row in _measurements(folder):
        peer = routes.underlay.name_at[str(IPv4Address(row.values["peer"]))]
        simulated_us = routes.path_delay_us(row.host, peer) + routes.path_delay_us(peer, row.host)
        shares.append(row.values["median_us"] / simulated_us - 1)
    return fmean(shares)


def _measurements(folder: Path) -> Iterator[RecordRow]:
    """The delays that agents measured."""
    for log in folder.glob("*.jsonl"):
        for row in read_records(log):
            if row.what == "delay_measured" and row.values["samples"] > 0:
                yield row
