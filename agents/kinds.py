"""The protocols that an experiment can name, and agents made from what it says."""

from collections.abc import Mapping
from random import Random
from typing import Any

from agents.agent import Agent
from agents.gossip import GossipSize
from agents.hello import HelloProtocol
from agents.protocol import PeerId, Protocol, Surroundings

OVERLAYS: dict[str, type[Protocol]] = {"hello": HelloProtocol, "gossip": GossipSize}


def make_agent(
    overlay: Mapping[str, Any],
    run_id: int,
    address: PeerId,
    contacts: tuple[PeerId, ...],
    seed: str,
) -> Agent:
    """A new agent with the protocol and settings of an experiment's `[overlay]`."""
    settings = {key: value for key, value in overlay.items() if key != "kind"}
    given = Surroundings(address, contacts, Random(seed), settings)
    return Agent(address, run_id, OVERLAYS[overlay["kind"]](given))
