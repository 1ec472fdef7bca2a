"""The kinds that a section of an experiment file can name, and the settings of each.

A kind is a line in the table of its package: its name and its class. The class
has its description as its docstring, and its settings as `Settings`. It is loaded when needed.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec

from agents.kinds import LAYERS
from testbed.errors import ExperimentError
from testbed.experiment.settings import check_choice, check_type, read_settings, settings_of
from topologies.kinds import TOPOLOGIES
from topologies.topology import TopologySettings
from workloads.kinds import WORKLOADS

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "topology": TOPOLOGIES,
    **LAYERS,
    "workload": WORKLOADS,
}


def find_kind(section: str, kind: str) -> type[Any]:
    """The class of a kind of a section."""
    module, _, name = SECTIONS[section][kind].rpartition(".")
    found: type[Any] = getattr(import_module(module), name)
    return found


def check_kind(section: str, given: Mapping[str, Any]) -> None:
    """Raise if a section names no kind, or one that is unknown."""
    check_choice(f"{section}.kind", given.get("kind"), SECTIONS[section])


def read_section(section: str, given: Any) -> dict[str, Any]:
    """A section as plain data, with the defaults of its kind; one that was left out is empty."""
    check_type(section, given, dict)
    if not given:
        return {}
    check_kind(section, given)
    kind = given["kind"]
    settings = {key: value for key, value in given.items() if key != "kind"}
    _check_owner(section, kind, settings)
    read = read_settings(find_kind(section, kind).Settings, f"{section}.", settings)
    return {"kind": kind, **msgspec.structs.asdict(read)}


def takes_range(section: str, kinds: Any, key: str) -> bool:
    """Whether a key of a section is a range for one of the kinds, given as a name or a list."""
    named = kinds if isinstance(kinds, list) else [kinds]
    known = SECTIONS.get(section, {})
    settings = (
        settings_of(find_kind(section, kind).Settings).get(key)
        for kind in named
        if isinstance(kind, str) and kind in known
    )
    return any(setting is not None and setting.takes_range for setting in settings)


def read_topology(given: Any) -> TopologySettings:
    """The settings of the underlay, which has a kind by default."""
    check_type("topology", given, dict)
    named = {"kind": TopologySettings().kind, **given}
    check_kind("topology", named)
    _check_owner("topology", named["kind"], named)
    settings: type[TopologySettings] = find_kind("topology", named["kind"]).Settings
    return read_settings(settings, "topology.", named)


def _check_owner(section: str, kind: str, settings: Mapping[str, Any]) -> None:
    """Raise if a key is one of another kind: the kind was changed and its keys were not."""
    known = settings_of(find_kind(section, kind).Settings)
    for key in settings:
        if key not in known and (others := _kinds_with(section, key)):
            raise ExperimentError(
                f"{section}.{key}: expected a setting of {kind}, found one of "
                f"{' and '.join(others)}; take it out of a copy of the file, or keep that kind "
                f"({kind} has {', '.join(sorted({*known} - {'kind'})) or 'no settings'})"
            )


def _kinds_with(section: str, key: str) -> list[str]:
    return [
        kind for kind in SECTIONS[section] if key in settings_of(find_kind(section, kind).Settings)
    ]
