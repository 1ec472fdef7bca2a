"""One simulated run: the same agents and faults as an emulated one, in simulated time."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.agent import Agent
from agents.agent_spec import AgentSpec
from agents.kinds import make_agent
from agents.records import RecordLog
from agents.runtime.packet_log import PacketLog
from agents.runtime.simulator import Simulator
from testbed.experiment.file import Experiment, Fault
from topologies.underlay import Underlay

_PROGRESS_STEPS = 5


def simulate(
    experiment: Experiment,
    underlay: Underlay,
    specs: list[AgentSpec],
    folder: Path,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run an experiment in the simulator; returns figures about it."""
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


def populate(
    simulator: Simulator, experiment: Experiment, specs: list[AgentSpec]
) -> "RunningAgents":
    """Plan all that will happen to the agents and to the network."""
    running = RunningAgents(experiment, simulator)
    for spec in specs:
        running.add(spec, _is_forestalled(spec, experiment.faults))
    for fault in experiment.faults:
        plan(fault, simulator, running)
    return running


def _run_by_second(simulator: Simulator, end_us: int, say: Callable[[str], None]) -> list[int]:
    """Let time pass until the end; returns how many messages arrived in each second."""
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


class RunningAgents:
    """The agents that run now; one that was killed may have been started again."""

    def __init__(self, experiment: Experiment, simulator: Simulator) -> None:
        self.agents: dict[str, Agent] = {}
        self._experiment = experiment
        self._simulator = simulator
        self._starts: Counter[str] = Counter()
        self._shared: dict[str, Any] = {}

    def add(self, spec: AgentSpec, starts_by_fault: bool) -> None:
        """Plan the birth of an agent, unless a fault comes before and decides instead."""
        self._simulator.add_agent(spec.host, lambda: self._make(spec))
        if not starts_by_fault:
            self._simulator.start_agent(spec.start_us, spec.host)

    def end(self, at_us: int, host: str, with_goodbye: bool) -> None:
        """Plan the end of an agent."""
        end = self._simulator.stop_agent if with_goodbye else self._simulator.kill_agent
        end(at_us, host)
        self._simulator.call_at(at_us, lambda _now_us: self._forget(host))

    def _forget(self, host: str) -> None:
        self.agents.pop(host, None)

    def _make(self, spec: AgentSpec) -> Agent:
        self._starts[spec.host] += 1
        given = spec.surroundings(self._starts[spec.host], self._shared)
        run_id = self._experiment.seed & 0xFFFFFFFF  # of which the header has 32 bits
        agent = make_agent(self._experiment.layers, run_id, given)
        self.agents[spec.host] = agent
        return agent


def _is_forestalled(spec: AgentSpec, faults: tuple[Fault, ...]) -> bool:
    """Whether an agent is killed or started by a fault before it would start by itself."""
    return any(
        fault.action in ("kill-agent", "stop-agent", "restart-agent")
        and fault.target == spec.host
        and fault.at_s * 1e6 <= spec.start_us
        for fault in faults
    )


def plan(fault: Fault, simulator: Simulator, running: RunningAgents) -> None:
    """Let a fault happen at its time."""
    at_us = int(fault.at_s * 1e6)
    match fault.action:
        case "kill-agent" | "stop-agent":
            running.end(at_us, fault.target, with_goodbye=fault.action == "stop-agent")
        case "restart-agent":
            simulator.start_agent(at_us, fault.target)
        case "link-down" | "link-up":
            a, b = fault.target.split("-")
            simulator.set_link(at_us, a, b, up=fault.action == "link-up")
        case "router-down" | "router-up":
            simulator.set_router(at_us, fault.target, up=fault.action == "router-up")
        case "delay":
            a, b = fault.target.split("-")
            simulator.set_delay(at_us, a, b, fault.delay_us)
