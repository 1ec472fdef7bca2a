"""Faults in the simulator, all scheduled before the run."""

from agents.runtime.simulator import Simulator
from testbed.experiment.faults import Fault
from testbed.simulation.running_agents import RunningAgents


class SimulatedFaults:
    """A method for each action of `testbed.experiment.faults.FAULTS` that is carried out."""

    def __init__(self, simulator: Simulator, running: RunningAgents) -> None:
        self._simulator = simulator
        self._running = running

    def kill_agent(self, fault: Fault) -> None:
        """Kill an agent."""
        self._running.end(_at_us(fault), fault.target, with_goodbye=False)

    def stop_agent(self, fault: Fault) -> None:
        """Stop an agent, which tells its peers that it leaves."""
        self._running.end(_at_us(fault), fault.target, with_goodbye=True)

    def restart_agent(self, fault: Fault) -> None:
        """Restart an agent."""
        self._simulator.start_agent(_at_us(fault), fault.target)

    def link_down(self, fault: Fault) -> None:
        """Cut a link."""
        self._simulator.set_link(_at_us(fault), *_ends(fault), up=False)

    def link_up(self, fault: Fault) -> None:
        """Restore a link."""
        self._simulator.set_link(_at_us(fault), *_ends(fault), up=True)

    def router_down(self, fault: Fault) -> None:
        """Switch a router off."""
        self._simulator.set_router(_at_us(fault), fault.target, up=False)

    def router_up(self, fault: Fault) -> None:
        """Switch a router on."""
        self._simulator.set_router(_at_us(fault), fault.target, up=True)

    def delay(self, fault: Fault) -> None:
        """Change the delay of a link."""
        self._simulator.set_delay(_at_us(fault), *_ends(fault), fault.delay_us)


def _at_us(fault: Fault) -> int:
    return int(fault.at_s * 1e6)


def _ends(fault: Fault) -> tuple[str, str]:
    a, b = fault.target.split("-")
    return a, b
