"""Who plays where: what one agent of a run is told before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from agents.protocol import Surroundings


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """Where and when an agent starts, whom it knows then, and the seed of its dice."""

    host: str
    address: int
    contacts: tuple[int, ...]
    targets: tuple[int, ...]
    start_us: int
    number: int
    peers: int
    run_seed: int
    hosts: Mapping[str, int] = field(default_factory=dict)  # of all agents, where names are used

    def surroundings(self, life: int) -> Surroundings:
        """What the agent is given in one of its lives, each with dice of its own."""
        dice = Random(f"{self.run_seed}/{self.host}/{life}")
        return Surroundings(
            self.address, self.contacts, dice, None, self.targets, self.number, self.peers,
            self.run_seed, self.hosts,
        )  # fmt: skip
