"""The kinds of workload that an experiment can name."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

import msgspec

from workloads.workload import Workload, WorkloadKind

Settings = TypeVar("Settings", bound=msgspec.Struct)

# Loaded when they are needed.
WORKLOADS: dict[str, str] = {
    "content-uniform": "workloads.content.kinds.ContentUniform",
    "content-zipf": "workloads.content.kinds.ContentZipf",
    "content-given": "workloads.content.given.ContentGiven",
    "topics-uniform": "workloads.topics.kinds.TopicsUniform",
    "topics-zipf": "workloads.topics.kinds.TopicsZipf",
    "topics-exponential": "workloads.topics.kinds.TopicsExponential",
    "topics-social": "workloads.topics.social.TopicsSocial",
    "topics-synthetic-social": "workloads.topics.synthetic_social.TopicsSyntheticSocial",
    "topics-given": "workloads.topics.given.TopicsGiven",
}


def find_workload(kind: str) -> type[WorkloadKind]:
    """The workload of this kind."""
    module, _, name = WORKLOADS[kind].rpartition(".")
    found: type[WorkloadKind] = getattr(import_module(module), name)
    return found


def draw_workload(
    section: Mapping[str, Any],
    seed: int,
    hosts: Sequence[str],
    places: Sequence[tuple[float, float]] | None = None,
) -> Workload:
    """The workload of a section of an experiment file; `places` are those of the hosts."""
    workload = find_workload(section["kind"])
    settings = read_settings(section, workload.Settings)
    if places is None:
        return workload.draw(settings, seed, hosts)
    return workload.draw_at(settings, seed, hosts, places)


def read_settings(section: Mapping[str, Any], settings: type[Settings]) -> Settings:
    """The settings of the workload in a section, which may have other keys, too."""
    return msgspec.convert({**section, "kind": None}, settings)
