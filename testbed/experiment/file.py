"""Experiment files: TOML, strict, with every default and seed resolved.

An unknown key is an error that names the nearest known one; a value of the wrong type or
range is an error that names the expected one. Defaults are filled in here, once, and written to
the run directory, so that a run can be repeated from there.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from testbed.data_files import default_data_folder
from testbed.errors import ExperimentError
from testbed.experiment.events import read_events
from testbed.experiment.faults import Fault, read_fault
from testbed.experiment.kinds import read_section, read_topology
from testbed.experiment.layers import check_layers
from testbed.experiment.settings import check_keys, check_type, read_settings
from topologies.topology import TopologySettings

NAME_PATTERN = re.compile(r"\w[\w.-]*")
Backend = Literal["emulation", "simulation"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment with all values resolved."""

    name: Annotated[str, Meta(description="names the folder of the results")]
    seed: Annotated[
        int, Meta(ge=0, description="fixes the underlay, the workload and all random choices")
    ] = 1
    backend: Annotated[
        Backend, Meta(description="a real network of namespaces (root), or the simulator")
    ] = "emulation"
    duration_s: Annotated[
        float,
        Meta(gt=0, description="length of the run; an emulated run takes time_scale times as long"),
    ] = 10.0
    time_scale: Annotated[
        float,
        Meta(
            ge=1,
            description="factor by which all delays and timers of the run are stretched, for a "
            "machine that is too slow; measured times are divided by it",
        ),
    ] = 1.0
    agents_per_process: Annotated[
        int, Meta(ge=1, description="agents that share a process (emulation)")
    ] = 64
    contacts: Annotated[int, Meta(ge=1, description="peers that an agent knows at its start")] = 3
    start_over_s: Annotated[
        float, Meta(ge=0, description="agents start one after another within this time")
    ] = 1.0
    measure_from_s: Annotated[
        float, Meta(ge=0, description="start of the measured window; 0: when all agents are ready")
    ] = 0.0
    capture: Annotated[
        Literal["all", "headers", "none"],
        Meta(
            description="packets recorded on every link: all, complete; headers, their first 96 "
            "bytes; none, nothing"
        ),
    ] = "all"
    capture_max_mb: Annotated[
        int, Meta(ge=0, description="largest capture; 0: half of the free disk space (emulation)")
    ] = 0
    links: Annotated[
        Literal["best", "netem", "delay-line"],
        Meta(
            description="implementation of links; best: netem where the kernel has it (emulation)"
        ),
    ] = "best"
    topology: TopologySettings = field(default_factory=TopologySettings)
    overlay: Mapping[str, Any] = field(default_factory=lambda: {"kind": "hello"})
    routing: Mapping[str, Any] = field(default_factory=dict)
    pubsub: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    folder: Annotated[str, Meta(description="folder that paths in the file are relative to")] = "."
    data: Annotated[
        str, Meta(description="folder of data files that are not in the experiment's folder")
    ] = "data"

    @property
    def layers(self) -> dict[str, Mapping[str, Any]]:
        """The sections of agents' protocols, the lowest layer first, without those left out."""
        named = {"overlay": self.overlay, "routing": self.routing, "pubsub": self.pubsub}
        return {section: settings for section, settings in named.items() if settings}

    def to_dict(self) -> dict[str, Any]:
        """The experiment as plain data, as `from_dict` takes it."""
        plain = asdict(self)
        plain["topology"] = msgspec.structs.asdict(self.topology)
        plain["fault"] = list(plain.pop("faults"))
        return plain


def load_experiment(path: Path, changes: Mapping[str, Any] | None = None) -> Experiment:
    """The experiment in a TOML file, with changes given as `section.key` and value."""
    document = load_document(path, changes)
    document.pop("figure", None)  # figures of a sweep do not affect a run
    return experiment_from_dict(document, str(path))


def load_document(path: Path, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The content of a TOML file with changes, name and folder, not checked yet."""
    try:
        document = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "bytes that are not UTF-8 text"
        raise ExperimentError(f"{path}: expected an experiment file, found: {reason}") from error
    except tomllib.TOMLDecodeError as error:
        raise ExperimentError(f"{path}: expected TOML, found: {error}") from error
    for key, value in (changes or {}).items():
        _change(document, key, value)
    document.setdefault("name", path.stem)
    document.setdefault("folder", str(path.parent.resolve()))
    document.setdefault("data", str(default_data_folder()))
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
    topology = read_topology(document.pop("topology", {}))
    document["overlay"] = document.get("overlay") or {"kind": "hello"}
    layers: dict[str, Any] = {
        section: read_section(section, document.pop(section, {}))
        for section in ("overlay", "routing")
    }
    layers |= read_events(document.pop("workload", {}), document.pop("pubsub", {}))
    experiment = replace(read_settings(Experiment, "", document), topology=topology, **layers)
    _check_name(experiment.name)
    check_layers(experiment.layers)
    end_s = experiment.duration_s
    read = (read_fault(f"fault[{n}].", given, end_s) for n, given in enumerate(faults))
    return replace(experiment, faults=tuple(read))


def _check_name(name: str) -> None:
    if not NAME_PATTERN.fullmatch(name):
        raise ExperimentError(
            f"name: expected letters, digits, dots and hyphens, as it names a folder; found "
            f"{name!r}"
        )
