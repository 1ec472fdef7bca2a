"""The kinds of protocol of an experiment file, and how agents are made from its sections."""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

import msgspec

from agents.agent import OWN_MESSAGES, Agent
from agents.failure_detector import FailureDetector
from agents.protocol import Protocol, Surroundings
from agents.pubsub.application import Application
from agents.stack import Stack
from agents.wire.codec import MessageKind, describe_message

# The layers of an agent, the lowest first: sections of an experiment file, and their kinds.
# The value is a name, so that each of up to a thousand processes imports only the kinds it runs.
LAYERS: dict[str, dict[str, str]] = {
    "overlay": {
        "hello": "agents.overlays.hello.HelloProtocol",
        "gossip": "agents.overlays.gossip.GossipSize",
        "given": "agents.overlays.given.GivenOverlay",
        "ring": "agents.overlays.ring.overlay.RingOverlay",
        "beaconvey": "agents.overlays.beaconvey.overlay.BeaConveyOverlay",
        "pastry": "agents.overlays.pastry.overlay.PastryOverlay",
        "skip-net": "agents.overlays.skip_net.overlay.SkipNetOverlay",
        "small-world": "agents.overlays.small_world.overlay.SmallWorldOverlay",
        "tdo-landmark": "agents.overlays.landmark.overlay.LandmarkOverlay",
        "tdo-walk": "agents.overlays.random_walk.overlay.RandomWalk",
    },
    "routing": {
        "cores": "agents.routing.cores.routing.CoreRouting",
        "mst": "agents.routing.cores.routing.SpanningTreeRouting",
        "opt": "agents.routing.shortest_paths.routing.ShortestPathRouting",
    },
    "pubsub": {
        "content": "agents.pubsub.content.forwarder.Content",
        "iscribe": "agents.pubsub.scribe.inverse_scribe.InverseScribe",
        "scribe": "agents.pubsub.scribe.scribe.Scribe",
        "topic-flood": "agents.pubsub.topic_flood.TopicFlood",
        "nsmf": "agents.pubsub.nsmf.forwarder.Nsmf",
        "beaconvey": "agents.pubsub.nsmf.forwarder.BeaConvey",
    },
}


def find_protocol(section: str, kind: str) -> type[Protocol]:
    """The protocol class of a kind in a section of an experiment file."""
    module, _, name = LAYERS[section][kind].rpartition(".")
    protocol: type[Protocol] = getattr(import_module(module), name)
    return protocol


def messages_of(layers: Mapping[str, Mapping[str, Any]]) -> list[MessageKind]:
    """The message types of agents with these layers, sorted by number."""
    found = [describe_message(cls, "agent") for cls in OWN_MESSAGES]
    for section, settings in layers.items():
        protocol = find_protocol(section, settings["kind"])
        below = FailureDetector.messages if protocol.needs_failure_detector else ()
        found += [describe_message(cls, section) for cls in (*below, *protocol.messages)]
    return sorted(found, key=lambda kind: kind.number)


def make_agent(layers: Mapping[str, Mapping[str, Any]], run_id: int, given: Surroundings) -> Agent:
    """A new agent with the protocols and settings of an experiment's sections.

    An overlay that needs one has a failure detector below it, which reads `detect_s` from the
    overlay's settings. The application is the layer above publish/subscribe. Publish/subscribe has
    its own random generator, so that overlay and routing draw the same numbers with any layer above
    them.
    """
    protocols: list[Protocol] = []
    for section in LAYERS:
        if section in layers:
            protocol = find_protocol(section, layers[section]["kind"])
            random = given.pubsub_random if section == "pubsub" else given.random
            settings = settings_of(protocol, layers[section])
            own = replace(given, settings=settings, random=random)
            if protocol.needs_failure_detector:
                protocols.append(FailureDetector(own))
            protocols.append(protocol(own))
    if "pubsub" in layers:
        protocols.append(Application(given, has_trees="routing" in layers))
    return Agent(given.me, run_id, protocols[0] if len(protocols) == 1 else Stack(protocols))


def settings_of(protocol: type[Protocol], section: Mapping[str, Any]) -> msgspec.Struct:
    """The settings of a protocol from a section of an experiment that was already checked."""
    return protocol.Settings(**{key: value for key, value in section.items() if key != "kind"})
