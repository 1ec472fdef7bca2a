"""The tables of kinds: each lists all kinds of its package, and each kind has a description."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import agents
import topologies
import workloads
from agents.failure_detector import FailureDetector
from agents.kinds import LAYERS
from agents.protocol import Protocol
from agents.pubsub.application import Application
from agents.stack import Stack
from testbed.emulation.faults import EmulatedFaults
from testbed.experiment.faults import FAULTS, method_of
from testbed.experiment.kinds import SECTIONS, find_kind
from testbed.experiment.settings import settings_of
from testbed.simulation.faults import SimulatedFaults
from topologies.kinds import TOPOLOGIES
from topologies.overlays.dissemination import OfflinePubsub
from topologies.overlays.kinds import OVERLAYS, PUBSUBS
from topologies.overlays.offline_overlay import OfflineOverlay
from topologies.topology import Topology
from workloads.kinds import WORKLOADS
from workloads.workload import WorkloadKind

PROTOCOLS = [path for kinds in LAYERS.values() for path in kinds.values()]
KINDS = [(section, kind) for section, kinds in SECTIONS.items() for kind in kinds]


def defined(package: ModuleType, base: type) -> Iterator[str]:
    """The dotted names of all classes below a package that are derived from one."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for thing in vars(import_module(module.name)).values():
            is_derived = isinstance(thing, type) and issubclass(thing, base) and thing is not base
            if is_derived and thing.__module__ == module.name:
                yield f"{module.name}.{thing.__qualname__}"


@pytest.mark.parametrize(
    ("package", "base", "listed", "no_kinds"),
    [
        (agents, Protocol, PROTOCOLS, {Stack, Application, FailureDetector}),
        (topologies, Topology, TOPOLOGIES.values(), set()),
        (topologies, OfflineOverlay, OVERLAYS.values(), set()),
        (topologies, OfflinePubsub, PUBSUBS.values(), set()),
        (workloads, WorkloadKind, WORKLOADS.values(), set()),
    ],
)
def test_a_table_lists_all_kinds_of_its_package(
    package: ModuleType, base: type, listed: Any, no_kinds: set[type]
) -> None:
    others = {f"{cls.__module__}.{cls.__qualname__}" for cls in no_kinds}
    assert sorted({*defined(package, base)} - others) == sorted(listed)


@pytest.mark.parametrize("backend", [SimulatedFaults, EmulatedFaults])
def test_a_backend_has_a_method_for_each_fault(backend: type) -> None:
    carried_out = {method_of(name) for name, kind in FAULTS.items() if not kind.planned_as}
    assert {name for name in vars(backend) if not name.startswith("_")} == carried_out


def test_a_planned_fault_is_one_that_backends_inject() -> None:
    for kind in FAULTS.values():
        assert not kind.planned_as or not FAULTS[kind.planned_as].planned_as


@pytest.mark.parametrize(("section", "kind"), KINDS)
def test_a_kind_and_each_of_its_settings_has_a_description(section: str, kind: str) -> None:
    cls = find_kind(section, kind)
    assert cls.__doc__ and cls.__doc__ != getattr(cls.__base__, "__doc__", None)
    for setting in settings_of(cls.Settings).values():
        assert setting.description, setting.name
        assert not setting.is_required, setting.name
