"""The specification of one agent of a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from agents.protocol import Surroundings
from workloads.share import Share


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """Host, start, contacts and workload of an agent."""

    host: str
    address: int
    contacts: tuple[int, ...]
    targets: tuple[int, ...]
    start_us: int
    number: int
    peers: int
    run_seed: int
    hosts: Mapping[str, int] = field(default_factory=dict)  # of all agents, where names are used
    workload: Share = field(default_factory=Share)
    plan: tuple[int, ...] = ()

    def surroundings(self, start: int, shared: dict[str, Any]) -> Surroundings:
        """What the agent is given at its first, second, ... start."""
        seed = f"{self.run_seed}/{self.host}/{start}"
        return Surroundings(
            self.address, self.contacts, Random(seed), None, self.targets, self.plan, self.number,
            self.peers, self.run_seed, self.hosts, self.workload, Random(f"{seed}/pubsub"), shared,
        )  # fmt: skip
