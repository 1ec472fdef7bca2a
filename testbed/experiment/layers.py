"""Whether the layers of an experiment fit together: a lower one offers what each one needs."""

from collections.abc import Mapping
from typing import Any

from agents.kinds import LAYERS, find_protocol
from agents.protocol import Service
from testbed.errors import ExperimentError

_IN_WORDS: Mapping[Service, str] = {
    "neighbours": "links between peers",
    "mutual neighbours": "links in both directions",
    "keys": "routes to keys",
    "positions": "positions on a ring",
    "trees": "trees",
}


def check_layers(layers: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise if a layer lacks what it needs, so that no agent would ever be ready."""
    offered: set[Service] = set()
    for section, settings in layers.items():
        protocol = find_protocol(section, settings["kind"])
        if protocol.needs is not None and protocol.needs not in offered:
            raise ExperimentError(_explain(settings["kind"], protocol.needs, layers))
        offered |= protocol.offers


def _explain(kind: str, needed: Service, layers: Mapping[str, Mapping[str, Any]]) -> str:
    section, fitting = next(found for found in _providers(needed).items() if found[1])
    found = repr(layers[section]["kind"]) if section in layers else "none"
    return (
        f"{section}.kind: expected one of {', '.join(sorted(fitting))}, as {kind} needs "
        f"{_IN_WORDS[needed]}; found {found}"
    )


def _providers(needed: Service) -> dict[str, list[str]]:
    """The kinds of each section that offer a service."""
    return {
        section: [kind for kind in kinds if needed in find_protocol(section, kind).offers]
        for section, kinds in LAYERS.items()
    }
