"""The protocols that an experiment can name, and agents made from what it says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

from agents.agent import OWN_MESSAGES, Agent
from agents.protocol import Protocol, Surroundings
from agents.stack import Stack
from agents.wire.codec import MessageKind, describe_message

# The layers of an agent from the lowest up, as sections of an experiment file, and their rivals.
# An agent's process loads only what it runs: some have a thousand such processes.
LAYERS: dict[str, dict[str, str]] = {
    "overlay": {
        "hello": "agents.overlays.hello.HelloProtocol",
        "gossip": "agents.overlays.gossip.GossipSize",
        "given": "agents.overlays.given.GivenOverlay",
        "tdo-landmark": "agents.overlays.landmark.overlay.LandmarkOverlay",
        "tdo-walk": "agents.overlays.random_walk.overlay.RandomWalk",
    },
    "routing": {
        "cores": "agents.routing.cores.routing.CoreRouting",
        "mst": "agents.routing.cores.routing.SpanningTreeRouting",
        "opt": "agents.routing.shortest_paths.routing.ShortestPathRouting",
    },
    "workload": {
        "content-uniform": "agents.pubsub.content.forwarder.ContentUniform",
        "content-zipf": "agents.pubsub.content.forwarder.ContentZipf",
        "content-given": "agents.pubsub.content.given.ContentGiven",
    },
}
_LAYER_NAMES = {"workload": "pubsub"}  # of sections that are called otherwise


def find_protocol(section: str, kind: str) -> type[Protocol]:
    """The protocol of this kind in a section of an experiment file."""
    module, _, name = LAYERS[section][kind].rpartition(".")
    protocol: type[Protocol] = getattr(import_module(module), name)
    return protocol


def messages_of(layers: Mapping[str, Mapping[str, Any]]) -> list[MessageKind]:
    """The messages of agents with the protocols of an experiment's sections, by their numbers."""
    found = [describe_message(cls, "agent") for cls in OWN_MESSAGES]
    for section, settings in layers.items():
        layer = _LAYER_NAMES.get(section, section)
        messages = find_protocol(section, settings["kind"]).messages
        found += [describe_message(cls, layer) for cls in messages]
    return sorted(found, key=lambda kind: kind.number)


def make_agent(layers: Mapping[str, Mapping[str, Any]], run_id: int, given: Surroundings) -> Agent:
    """A new agent with the protocols and settings of an experiment's sections."""
    protocols = [
        _make_protocol(section, layers[section], given) for section in LAYERS if section in layers
    ]
    return Agent(given.me, run_id, _on_top_of_each_other(protocols))


def _make_protocol(section: str, settings: Mapping[str, Any], given: Surroundings) -> Protocol:
    protocol = find_protocol(section, settings["kind"])
    values = {key: value for key, value in settings.items() if key != "kind"}
    return protocol(replace(given, settings=protocol.Settings(**values)))


def _on_top_of_each_other(protocols: Sequence[Protocol]) -> Protocol:
    return protocols[0] if len(protocols) == 1 else Stack(protocols)
