"""The protocols that an experiment can name, and agents made from what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.agent import Agent
from agents.gossip import GossipSize
from agents.hello import HelloProtocol
from agents.protocol import Protocol, Surroundings
from agents.stack import Stack

# The layers of an agent from the lowest up, as sections of an experiment file, and their rivals.
LAYERS: dict[str, dict[str, type[Protocol]]] = {
    "overlay": {"hello": HelloProtocol, "gossip": GossipSize},
    "routing": {},
    "workload": {},
}


def make_agent(layers: Mapping[str, Mapping[str, Any]], run_id: int, given: Surroundings) -> Agent:
    """A new agent with the protocols and settings of an experiment's sections."""
    protocols = [
        kinds[layers[section]["kind"]](replace(given, settings=_settings(layers[section])))
        for section, kinds in LAYERS.items()
        if section in layers
    ]
    return Agent(given.me, run_id, _on_top_of_each_other(protocols))


def _settings(section: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in section.items() if key != "kind"}


def _on_top_of_each_other(protocols: Sequence[Protocol]) -> Protocol:
    return protocols[0] if len(protocols) == 1 else Stack(protocols)
