"""Faults on a network of namespaces: each happens when it is called."""

from testbed.emulation.agents import AgentProcesses
from testbed.emulation.network import EmulatedNetwork
from testbed.experiment.faults import Fault


class EmulatedFaults:
    """A method for each action of `testbed.experiment.faults.FAULTS` that is carried out."""

    def __init__(self, network: EmulatedNetwork, agents: AgentProcesses, time_scale: float) -> None:
        self._network = network
        self._agents = agents
        self._time_scale = time_scale

    def kill_agent(self, fault: Fault) -> None:
        """Kill an agent."""
        self._agents.kill(fault.target)

    def stop_agent(self, fault: Fault) -> None:
        """Stop an agent, which tells its peers that it leaves."""
        self._agents.leave(fault.target)

    def restart_agent(self, fault: Fault) -> None:
        """Restart an agent."""
        self._agents.restart(fault.target)

    def link_down(self, fault: Fault) -> None:
        """Cut a link."""
        self._network.set_link(*_ends(fault), up=False)

    def link_up(self, fault: Fault) -> None:
        """Restore a link."""
        self._network.set_link(*_ends(fault), up=True)

    def router_down(self, fault: Fault) -> None:
        """Switch a router off."""
        self._network.set_router(fault.target, up=False)

    def router_up(self, fault: Fault) -> None:
        """Switch a router on."""
        self._network.set_router(fault.target, up=True)

    def delay(self, fault: Fault) -> None:
        """Change the delay of a link, stretched like all times of the run."""
        self._network.set_delay(*_ends(fault), int(fault.delay_us * self._time_scale))


def _ends(fault: Fault) -> tuple[str, str]:
    a, b = fault.target.split("-")
    return a, b
