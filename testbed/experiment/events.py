"""The sections `[workload]` and `[pubsub]`: what is asked of a run, and what forwards its events.

`[pubsub]` may be left out where the workload has a usual forwarder. The settings of the forwarder
may then stand in `[workload]`, as they did before there was a section for them.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agents.kinds import LAYERS, find_protocol
from testbed.errors import ExperimentError
from workloads.kinds import WORKLOADS, find_workload

Section = Mapping[str, Any]


def read_events(workload: Section, pubsub: Section) -> dict[str, Section]:
    """Both sections with all settings resolved; without a workload they are empty."""
    if not workload:
        if pubsub:
            raise ExperimentError("pubsub: expected a section [workload] with it, found none")
        return {"workload": {}, "pubsub": {}}
    own, forwarder = _part(workload, pubsub)
    return {
        "workload": _resolve("workload", find_workload(own["kind"]).Settings, own),
        "pubsub": _resolve(
            "pubsub", find_protocol("pubsub", forwarder["kind"]).Settings, forwarder
        ),
    }


def _part(workload: Section, pubsub: Section) -> tuple[Section, Section]:
    """The settings of the workload and those of the forwarder, wherever they stand."""
    _check_kind("workload", workload, tuple(WORKLOADS))
    usual = find_workload(workload["kind"]).pubsub
    forwarder = {"kind": usual, **pubsub} if usual else pubsub
    _check_kind("pubsub", forwarder, tuple(LAYERS["pubsub"]))
    known = find_protocol("pubsub", forwarder["kind"]).Settings.__struct_fields__
    mine = find_workload(workload["kind"]).Settings.__struct_fields__
    moved = {key: value for key, value in workload.items() if key in known and key not in mine}
    if both := sorted(moved.keys() & pubsub.keys()):
        raise ExperimentError(
            f"pubsub.{both[0]}: expected it in one section, found it in [workload] as well"
        )
    own = {key: value for key, value in workload.items() if key not in moved}
    return own, {**forwarder, **moved}


def _check_kind(section: str, given: Section, kinds: tuple[str, ...]) -> None:
    if given.get("kind") not in kinds:
        raise ExperimentError(
            f"{section}.kind: expected one of {', '.join(kinds)}; found {given.get('kind')!r}"
        )


def _resolve(section: str, settings: type[msgspec.Struct], given: Section) -> Section:
    plain = {key: value for key, value in given.items() if key != "kind"}
    try:
        typed = msgspec.convert(plain, settings)
    except msgspec.ValidationError as error:
        raise ExperimentError(f"{section}: {error}") from error
    return {"kind": given["kind"], **msgspec.structs.asdict(typed)}
