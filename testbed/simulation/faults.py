"""Faults in the simulator: each is planned before time begins to pass."""

from agents.runtime.simulator import Simulator
from testbed.experiment.faults import Fault
from testbed.simulation.running_agents import RunningAgents


class SimulatedFaults:
    """A method for each action of `testbed.experiment.faults.FAULTS` that is carried out."""

    def __init__(self, simulator: Simulator, running: RunningAgents) -> None:
        self._simulator = simulator
        self._running = running

    def kill_agent(self, fault: Fault) -> None:
        """End an agent without a word."""
        self._running.end(_at_us(fault), fault.target, with_goodbye=False)

    def stop_agent(self, fault: Fault) -> None:
        """Let an agent leave in order."""
        self._running.end(_at_us(fault), fault.target, with_goodbye=True)

    def restart_agent(self, fault: Fault) -> None:
        """Restart an agent."""
        self._simulator.start_agent(_at_us(fault), fault.target)

    def link_down(self, fault: Fault) -> None:
        """Take a link down."""
        self._simulator.set_link(_at_us(fault), *_ends(fault), up=False)

    def link_up(self, fault: Fault) -> None:
        """Bring a link up."""
        self._simulator.set_link(_at_us(fault), *_ends(fault), up=True)

    def router_down(self, fault: Fault) -> None:
        """Take a router down."""
        self._simulator.set_router(_at_us(fault), fault.target, up=False)

    def router_up(self, fault: Fault) -> None:
        """Bring a router up."""
        self._simulator.set_router(_at_us(fault), fault.target, up=True)

    def delay(self, fault: Fault) -> None:
        """Give a link another delay."""
        self._simulator.set_delay(_at_us(fault), *_ends(fault), fault.delay_us)


def _at_us(fault: Fault) -> int:
    return int(fault.at_s * 1e6)


def _ends(fault: Fault) -> tuple[str, str]:
    a, b = fault.target.split("-")
    return a, b
