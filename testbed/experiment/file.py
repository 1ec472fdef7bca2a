"""Experiment files: TOML, strict, with every default and seed resolved.

An unknown key is an error that names the nearest known one; a value of the wrong type or
range says what was expected. What a file leaves out is filled in here, once, and written to
the run directory, so that a run can be repeated from there.
"""

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from agents.kinds import LAYERS, find_protocol
from testbed.errors import ExperimentError
from testbed.experiment.events import read_events
from topologies.hierarchy import EDGE_CONNECTIONS, PAPER_HIERARCHY

NAME_PATTERN = re.compile(r"\w[\w.-]*")
BACKENDS = ("emulation", "simulation")
TOPOLOGIES = ("waxman", "waxman-hierarchical", "transit-stub", "file")
CAPTURES = ("all", "headers", "none")
LINKS = ("best", "netem", "delay-line")
FAULT_ACTIONS = (
    "kill-agent",
    "stop-agent",
    "restart-agent",
    "link-down",
    "link-up",
    "router-down",
    "router-up",
    "partition",
    "heal",
    "delay",
)


@dataclass(frozen=True, slots=True)
class TopologySettings:
    """Which underlay: generated, or from a file relative to the experiment's."""

    kind: str = "waxman"
    routers: int = 20
    hosts: int = 12
    anonymous_routers: float = 0.0
    asymmetry: float = 0.0
    file: str = ""
    edge_connection: str = PAPER_HIERARCHY.edge_connection  # of waxman-hierarchical, as is the next
    border_degree: int = PAPER_HIERARCHY.border_degree


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, or well again, at a time; `delay_us` is for the action delay."""

    at_s: float
    action: str
    target: str
    delay_us: int = 0


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment, with nothing left open."""

    name: str
    seed: int = 1
    backend: str = "emulation"
    duration_s: float = 10.0
    time_scale: float = 1.0
    agents_per_process: int = 64
    contacts: int = 3
    start_over_s: float = 1.0
    capture: str = "all"
    capture_max_mb: int = 0  # half of what is free
    links: str = "best"  # netem where the kernel has it
    topology: TopologySettings = field(default_factory=TopologySettings)
    overlay: Mapping[str, Any] = field(default_factory=lambda: {"kind": "hello"})
    routing: Mapping[str, Any] = field(default_factory=dict)
    pubsub: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    folder: str = "."

    @property
    def layers(self) -> dict[str, Mapping[str, Any]]:
        """The sections of agents' protocols, the lowest layer first, without those left out."""
        named = {"overlay": self.overlay, "routing": self.routing, "pubsub": self.pubsub}
        return {section: settings for section, settings in named.items() if settings}

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain data, as `from_dict` takes it."""
        plain = asdict(self)
        plain["fault"] = list(plain.pop("faults"))
        return plain


def load_experiment(path: Path, changes: Mapping[str, Any] | None = None) -> Experiment:
    """The experiment in a TOML file, with changes given as `section.key` and value."""
    document = load_document(path, changes)
    document.pop("figure", None)  # what is drawn of a sweep says nothing about a run
    return experiment_from_dict(document, str(path))


def load_document(path: Path, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What a TOML file says, with changes and its name and folder, and nothing checked yet."""
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: expected an experiment file, found: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path}: expected TOML, found: {error}") from error
    for key, value in (changes or {}).items():
        _change(document, key, value)
    document.setdefault("name", path.stem)
    document.setdefault("folder", str(path.parent.resolve()))
    return document


def experiment_from_dict(document: Mapping[str, Any], where: str) -> Experiment:
    """The experiment in plain data; `where` names it in errors."""
    try:
        return _read_experiment(dict(document))
    except ExperimentError as error:
        raise ExperimentError(f"{where}: {error}") from error


def parse_change(text: str) -> tuple[str, Any]:
    """The key and value in a text such as `topology.hosts=20`, the value as TOML has it."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ExperimentError(f"--set {text}: expected key=value, as in topology.hosts=20")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _change(document: dict[str, Any], key: str, value: Any) -> None:
    *sections, name = key.split(".")
    for section in sections:
        document = document.setdefault(section, {})
        if not isinstance(document, dict):
            raise ExperimentError(f"--set {key}: expected {section} to be a section")
    document[name] = value


def _read_experiment(document: dict[str, Any]) -> Experiment:
    known = [f.name for f in fields(Experiment) if f.name != "faults"] + ["fault"]
    check_keys("", document, known)
    faults = tuple(
        _read_fields(Fault, f"fault[{number}].", given)
        for number, given in enumerate(_expect(document.pop("fault", []), list, "fault"))
    )
    topology = _read_fields(TopologySettings, "topology.", document.pop("topology", {}))
    document["overlay"] = document.get("overlay") or {"kind": "hello"}
    layers: dict[str, Any] = {
        section: _read_layer(section, document.pop(section, {}))
        for section in ("overlay", "routing")
    }
    layers |= read_events(document.pop("workload", {}), document.pop("pubsub", {}))
    experiment: Experiment = _read_fields(Experiment, "", document)
    experiment = replace(experiment, topology=topology, faults=faults, **layers)
    _check_values(experiment)
    return experiment


def _read_layer(section: str, given: Any) -> dict[str, Any]:
    """The settings of a layer, with its protocol's defaults; a layer left out has none."""
    if not _expect(given, dict, section):
        return {}
    kind = given.get("kind")
    _check_choice(f"{section}.kind", kind, tuple(LAYERS[section]))
    protocol = find_protocol(section, str(kind))
    defaults = protocol.defaults
    settings = {
        key: _as_text(value) if isinstance(defaults.get(key), str) else value
        for key, value in given.items()
        if key != "kind"
    }
    _check_kind(section, str(kind), settings)
    check_keys(f"{section}.", settings, list(defaults))
    for key, value in settings.items():
        check_type(f"{section}.{key}", value, type(defaults[key]))
    try:
        protocol.check_settings({**defaults, **settings})
    except ValueError as error:
        raise ExperimentError(f"{section}.{error}") from error
    return {"kind": kind, **defaults, **settings}


def _as_text(value: Any) -> Any:
    """A number where a text is wanted, as a text: a limit may be "lg2" or 8."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


def _check_kind(section: str, kind: str, settings: Mapping[str, Any]) -> None:
    """Raise if a key is one of another kind's: its kind was changed and the rest was not."""
    known = find_protocol(section, kind).defaults
    for key in settings:
        if key in known:
            continue
        others = [k for k in LAYERS[section] if key in find_protocol(section, k).defaults]
        if others:
            raise ExperimentError(
                f"{section}.{key}: expected a setting of {kind}, found one of "
                f"{' and '.join(others)}; take it out of a copy of the file, or keep that kind "
                f"({kind} has {', '.join(sorted(known)) or 'no settings'})"
            )


def _read_fields(cls: type[Any], prefix: str, given: Any) -> Any:
    """An instance of a dataclass from a table, its keys and types checked."""
    _expect(given, dict, prefix.rstrip(".") or "experiment")
    known = {f.name: f for f in fields(cls)}
    check_keys(prefix, given, list(known))
    for key, value in given.items():
        check_type(prefix + key, value, known[key].type)
    for key, known_field in known.items():
        is_required = known_field.default is MISSING and known_field.default_factory is MISSING
        if is_required and key not in given:
            raise ExperimentError(f"{prefix}{key}: expected a value, found none")
    return cls(**given)


def check_keys(prefix: str, given: Mapping[str, Any], known: list[str]) -> None:
    """Raise if a key is not known, and name the nearest that is."""
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.0)
            hint = f"; the nearest known key is {prefix}{near[0]}" if near else ""
            raise ExperimentError(f"{prefix}{key}: expected a known key, found {key!r}{hint}")


def check_type(key: str, value: Any, wanted: Any) -> None:
    """Raise if a value is not of the wanted type; a whole number is a number, too."""
    accepted = (int, float) if wanted is float else wanted
    is_stray_bool = isinstance(value, bool) and wanted is not bool
    if is_stray_bool or not isinstance(value, accepted):
        raise ExperimentError(f"{key}: expected {_TYPE_NAMES[wanted]}, found {value!r}")


_TYPE_NAMES = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
}


def _expect(value: Any, wanted: type, key: str) -> Any:
    if not isinstance(value, wanted):
        kind = "a table" if wanted is dict else "a list"
        raise ExperimentError(f"{key}: expected {kind}, found {value!r}")
    return value


def _check_choice(key: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ExperimentError(f"{key}: expected one of {', '.join(choices)}; found {value!r}")


def _check_values(experiment: Experiment) -> None:
    topology = experiment.topology
    _check_choice("backend", experiment.backend, BACKENDS)
    _check_choice("capture", experiment.capture, CAPTURES)
    _check_choice("links", experiment.links, LINKS)
    _check_choice("topology.kind", topology.kind, TOPOLOGIES)
    _check_choice("topology.edge_connection", topology.edge_connection, EDGE_CONNECTIONS)
    ranges: tuple[tuple[str, float, str, Callable[[float], bool]], ...] = (
        ("seed", experiment.seed, "0 or more", lambda v: v >= 0),
        ("duration_s", experiment.duration_s, "above 0", lambda v: 0 < v < math.inf),
        ("time_scale", experiment.time_scale, "1 or more", lambda v: 1 <= v < math.inf),
        ("agents_per_process", experiment.agents_per_process, "1 or more", lambda v: v >= 1),
        ("contacts", experiment.contacts, "1 or more", lambda v: v >= 1),
        ("start_over_s", experiment.start_over_s, "0 or more", lambda v: v >= 0),
        ("capture_max_mb", experiment.capture_max_mb, "0 or more", lambda v: v >= 0),
        ("topology.hosts", topology.hosts, "2 or more", lambda v: v >= 2),
        ("topology.anonymous_routers", topology.anonymous_routers, "0 to 1", lambda v: 0 <= v <= 1),
        ("topology.border_degree", topology.border_degree, "1 or more", lambda v: v >= 1),
        ("topology.asymmetry", topology.asymmetry, "0 or more, below 1", lambda v: 0 <= v < 1),
    )
    for key, value, expected, is_good in ranges:
        if not is_good(value):
            raise ExperimentError(f"{key}: expected {expected}, found {value}")
    if not NAME_PATTERN.fullmatch(experiment.name):
        raise ExperimentError(
            f"name: expected letters, digits, dots and hyphens, as it names a folder; found "
            f"{experiment.name!r}"
        )
    for number, fault in enumerate(experiment.faults):
        if fault.action == "delay" and fault.delay_us <= 0:
            raise ExperimentError(
                f"fault[{number}].delay_us: expected microseconds above 0, found {fault.delay_us}"
            )
        _check_choice(f"fault[{number}].action", fault.action, FAULT_ACTIONS)
        if not 0 <= fault.at_s <= experiment.duration_s:
            raise ExperimentError(
                f"fault[{number}].at_s: expected a time within the {experiment.duration_s} s of "
                f"the run, found {fault.at_s}"
            )
    if topology.kind == "file" and not topology.file:
        raise ExperimentError("topology.file: expected a file for the kind `file`, found none")
