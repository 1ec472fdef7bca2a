"""The agents of a simulated run, created at each start."""

from collections import Counter
from typing import Any

from agents.agent import Agent
from agents.agent_spec import AgentSpec
from agents.kinds import make_agent
from agents.runtime.simulator import Simulator
from testbed.experiment.file import Experiment


class RunningAgents:
    """The running agents; a killed one may have been restarted."""

    def __init__(self, experiment: Experiment, simulator: Simulator) -> None:
        self.agents: dict[str, Agent] = {}
        self._experiment = experiment
        self._simulator = simulator
        self._starts: Counter[str] = Counter()
        self._shared: dict[str, Any] = {}

    def add(self, spec: AgentSpec, starts_by_fault: bool) -> None:
        """Schedule the start of an agent, unless a fault decides before."""
        self._simulator.add_agent(spec.host, lambda: self._make(spec))
        if not starts_by_fault:
            self._simulator.start_agent(spec.start_us, spec.host)

    def end(self, at_us: int, host: str, with_goodbye: bool) -> None:
        """Schedule the end of an agent."""
        end = self._simulator.stop_agent if with_goodbye else self._simulator.kill_agent
        end(at_us, host)
        self._simulator.call_at(at_us, lambda _now_us: self._forget(host))

    def _forget(self, host: str) -> None:
        self.agents.pop(host, None)

    def _make(self, spec: AgentSpec) -> Agent:
        self._starts[spec.host] += 1
        given = spec.surroundings(self._starts[spec.host], self._shared)
        run_id = self._experiment.seed & 0xFFFFFFFF  # the header has 32 bits for it
        agent = make_agent(self._experiment.layers, run_id, given)
        self.agents[spec.host] = agent
        return agent
