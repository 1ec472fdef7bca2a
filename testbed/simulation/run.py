"""A simulated run: the same agents and faults as in an emulated one, in simulated time."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from agents.agent_spec import AgentSpec
from agents.records import RecordLog
from agents.runtime.packet_log import PacketLog
from agents.runtime.simulator import Simulator
from testbed.experiment.faults import FAULTS, Fault, carry_out
from testbed.experiment.file import Experiment
from testbed.simulation.faults import SimulatedFaults
from testbed.simulation.running_agents import RunningAgents
from topologies.underlay import Underlay

_PROGRESS_STEPS = 5


def simulate(
    experiment: Experiment,
    underlay: Underlay,
    specs: list[AgentSpec],
    folder: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run an experiment in the simulator; returns measurements of it."""
    end_us = int(experiment.duration_s * 1e6)
    is_logged = experiment.capture != "none"
    notes = PacketLog(folder.parent / "packets", underlay) if is_logged else None
    with (folder / "simulation.jsonl").open("w") as file:
        log = RecordLog(file)
        with Simulator(underlay, seed=experiment.seed, record=log.write, notes=notes) as simulator:
            running = populate(simulator, experiment, specs)
            by_second = _run_by_second(simulator, end_us, say)
        for host, agent in running.agents.items():
            log.write(end_us, host, "agent_ended", agent.figures)
    return {
        "messages": simulator.messages,
        "messages_by_second": by_second,
        "dropped": dict(simulator.counts),
    }


def populate(simulator: Simulator, experiment: Experiment, specs: list[AgentSpec]) -> RunningAgents:
    """Schedule all starts, ends and faults."""
    running, first_s = RunningAgents(experiment, simulator), _first_faults_s(experiment.faults)
    for spec in specs:
        by_fault_us = first_s.get(spec.host, math.inf) * 1e6
        running.add(spec, starts_by_fault=by_fault_us <= spec.start_us)
    faults = SimulatedFaults(simulator, running)
    for fault in experiment.faults:
        carry_out(faults, fault)
    return running


def _run_by_second(simulator: Simulator, end_us: int, say: Callable[[str], None]) -> list[int]:
    """Run until the end; returns the number of messages that arrived in each second."""
    by_second: list[int] = []
    spoken = 0
    while simulator.now_us < end_us:
        before = simulator.messages
        simulator.run(min(end_us, simulator.now_us + 1_000_000))
        by_second.append(simulator.messages - before)
        if simulator.now_us * _PROGRESS_STEPS // end_us > spoken:
            spoken = simulator.now_us * _PROGRESS_STEPS // end_us
            say(f"{simulator.now_us / 1e6:g} of {end_us / 1e6:g} s")
    return by_second


def _first_faults_s(faults: Iterable[Fault]) -> dict[str, float]:
    """The first time at which a fault ends or starts each agent."""
    first_s: dict[str, float] = {}
    for fault in faults:
        if FAULTS[fault.action].target == "agent":
            first_s[fault.target] = min(fault.at_s, first_s.get(fault.target, math.inf))
    return first_s
