"""All kinds with their settings: of every section of an experiment file, and of `tdo overlay`.

Everything here comes from the tables of kinds and the classes that they list.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from testbed.experiment.faults import FAULTS, Fault, FaultKind
from testbed.experiment.kinds import SECTIONS, find_kind
from testbed.experiment.settings import Setting, settings_of
from topologies.overlays.kinds import OVERLAYS, PUBSUBS, find_overlay, find_pubsub

_FAULT_SECTION = "fault"
# Kinds that are computed offline are named on the command line.
OFFLINE: Mapping[str, tuple[Mapping[str, str], Callable[[str], type[Any]]]] = {
    "tdo overlay build": (OVERLAYS, find_overlay),
    "tdo overlay route": (PUBSUBS, find_pubsub),
}
_NAMES_A_KIND = ("kind", "action")  # keys that are not settings


@dataclass(frozen=True, slots=True)
class KnownSetting:
    """A setting in words; a required one has no default."""

    name: str
    type: str
    default: Any
    is_required: bool
    range: str
    choices: tuple[Any, ...]
    description: str


@dataclass(frozen=True, slots=True)
class KnownKind:
    """A kind of a section, its description in a line, and its settings."""

    section: str
    kind: str
    description: str
    settings: tuple[KnownSetting, ...]

    def to_dict(self) -> dict[str, Any]:
        """The kind as plain data."""
        return asdict(self)


def list_kinds() -> Iterator[KnownKind]:
    """Every kind of every section, in the order of the tables; this loads them all."""
    for section, kinds in SECTIONS.items():
        for kind in kinds:
            cls = find_kind(section, kind)
            yield KnownKind(section, kind, _first_line(cls), describe_settings(cls.Settings))
    for action, fault in FAULTS.items():
        yield KnownKind(_FAULT_SECTION, action, fault.description, _describe_fault(fault))
    for command, (kinds, find) in OFFLINE.items():
        for kind in kinds:
            cls = find(kind)
            yield KnownKind(command, kind, _first_line(cls), describe_settings(cls.Settings))


def _first_line(cls: type[Any]) -> str:
    return (inspect.getdoc(cls) or "").partition("\n")[0]


def describe_settings(cls: type[Any]) -> tuple[KnownSetting, ...]:
    """The keys of a class of settings, without the one that names a kind."""
    known = settings_of(cls)
    return tuple(_describe(known[name]) for name in known if name not in _NAMES_A_KIND)


def _describe_fault(fault: FaultKind) -> tuple[KnownSetting, ...]:
    """The keys of every fault (time and target), and further keys that this one requires."""
    known = settings_of(Fault)
    every = [name for name, setting in known.items() if setting.is_required]
    keys = [name for name in (*every, *fault.needs) if name not in _NAMES_A_KIND]
    return tuple(_describe_key(known[name], fault) for name in keys)


def _describe_key(setting: Setting, fault: FaultKind) -> KnownSetting:
    described = replace(_describe(setting), default=None, is_required=True)
    if setting.name == "target":
        return replace(described, description=fault.target_form)
    return described


def _describe(setting: Setting) -> KnownSetting:
    return KnownSetting(
        setting.name,
        setting.type_name,
        None if setting.is_required else setting.default,
        setting.is_required,
        setting.range,
        setting.choices,
        setting.description,
    )
