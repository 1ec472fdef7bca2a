"""Experiment files: TOML, strict, with every default and seed resolved.

An unknown key is an error that names the nearest known one; a value of the wrong type or
range says what was expected. What a file leaves out is filled in here, once, and written to
the run directory, so that a run can be repeated from there.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta

from testbed.errors import ExperimentError
from testbed.experiment.events import read_events
from testbed.experiment.kinds import read_section
from testbed.experiment.settings import check_choice, check_keys, check_type, read_settings
from topologies.hierarchy import PAPER_HIERARCHY, EdgeConnection

NAME_PATTERN = re.compile(r"\w[\w.-]*")
Backend = Literal["emulation", "simulation"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
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

    kind: Literal["waxman", "waxman-hierarchical", "transit-stub", "file"] = "waxman"
    routers: Annotated[int, Meta(description="routers to generate")] = 20
    hosts: Annotated[int, Meta(ge=2, description="hosts to attach")] = 12
    anonymous_routers: Annotated[
        float, Meta(ge=0, le=1, description="share of routers that never answer probes")
    ] = 0.0
    asymmetry: Annotated[
        float,
        Meta(ge=0, lt=1, description="most by which the delays of a link's directions differ"),
    ] = 0.0
    file: Annotated[str, Meta(description="a topology file, relative to the experiment's")] = ""
    edge_connection: Annotated[
        EdgeConnection, Meta(description="which routers of two systems BRITE joins")
    ] = PAPER_HIERARCHY.edge_connection
    border_degree: Annotated[
        int, Meta(ge=1, description="BRITE's k, for edge_connection = smallest-k-degree")
    ] = PAPER_HIERARCHY.border_degree

    def __post_init__(self) -> None:
        """Refuse a kind that lacks what it needs."""
        if self.kind == "file" and not self.file:
            raise ValueError("file: expected a file for the kind `file`, found none")


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
    seed: Annotated[int, Meta(ge=0)] = 1
    backend: Backend = "emulation"
    duration_s: Annotated[float, Meta(gt=0)] = 10.0
    time_scale: Annotated[float, Meta(ge=1)] = 1.0
    agents_per_process: Annotated[int, Meta(ge=1)] = 64
    contacts: Annotated[int, Meta(ge=1)] = 3
    start_over_s: Annotated[float, Meta(ge=0)] = 1.0
    capture: Literal["all", "headers", "none"] = "all"
    capture_max_mb: Annotated[int, Meta(ge=0)] = 0  # half of what is free
    links: Literal["best", "netem", "delay-line"] = "best"  # netem where the kernel has it
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
    faults = document.pop("fault", [])
    check_type("fault", faults, list)
    topology = read_settings(TopologySettings, "topology.", document.pop("topology", {}))
    document["overlay"] = document.get("overlay") or {"kind": "hello"}
    layers: dict[str, Any] = {
        section: read_section(section, document.pop(section, {}))
        for section in ("overlay", "routing")
    }
    layers |= read_events(document.pop("workload", {}), document.pop("pubsub", {}))
    experiment = replace(read_settings(Experiment, "", document), topology=topology, **layers)
    _check_name(experiment.name)
    read = (_read_fault(f"fault[{n}].", given, experiment) for n, given in enumerate(faults))
    return replace(experiment, faults=tuple(read))


def _check_name(name: str) -> None:
    if not NAME_PATTERN.fullmatch(name):
        raise ExperimentError(
            f"name: expected letters, digits, dots and hyphens, as it names a folder; found "
            f"{name!r}"
        )


def _read_fault(prefix: str, given: Any, experiment: Experiment) -> Fault:
    fault = read_settings(Fault, prefix, given)
    if fault.action == "delay" and fault.delay_us <= 0:
        raise ExperimentError(
            f"{prefix}delay_us: expected microseconds above 0, found {fault.delay_us}"
        )
    check_choice(f"{prefix}action", fault.action, FAULT_ACTIONS)
    if not 0 <= fault.at_s <= experiment.duration_s:
        raise ExperimentError(
            f"{prefix}at_s: expected a time within the {experiment.duration_s} s of "
            f"the run, found {fault.at_s}"
        )
    return fault
