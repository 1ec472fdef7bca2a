"""The sections `[workload]` and `[pubsub]`: subscriptions and events, and their forwarder.

`[pubsub]` may be left out if the workload has a usual forwarder. The settings of the forwarder
may then be in `[workload]`, as in older files.
"""

from collections.abc import Mapping
from typing import Any

from testbed.errors import ExperimentError
from testbed.experiment.kinds import SECTIONS, check_kind, find_kind, read_section
from testbed.experiment.settings import check_type, settings_of

Section = Mapping[str, Any]


def read_events(workload: Any, pubsub: Any) -> dict[str, Section]:
    """Both sections with all settings resolved; without a workload they are empty."""
    check_type("workload", workload, dict)
    check_type("pubsub", pubsub, dict)
    if not workload:
        if pubsub:
            raise ExperimentError("pubsub: expected a section [workload] with it, found none")
        return {"workload": {}, "pubsub": {}}
    own, forwarder = _part(workload, pubsub)
    return {
        "workload": read_section("workload", own),
        "pubsub": read_section("pubsub", forwarder),
    }


def _check_forwarder(workload: str, matching: str, forwarder: Section) -> None:
    """Raise if there is no forwarder, or one that matches events in another way."""
    if "kind" in forwarder:
        check_kind("pubsub", forwarder)
        if find_kind("pubsub", forwarder["kind"]).matching == matching:
            return
    fitting = [
        kind for kind in SECTIONS["pubsub"] if find_kind("pubsub", kind).matching == matching
    ]
    found = repr(forwarder["kind"]) if "kind" in forwarder else "none"
    raise ExperimentError(
        f"pubsub.kind: expected a publish/subscribe system for {workload}, one of "
        f"{', '.join(fitting)}; found {found}"
    )


def _part(workload: Section, pubsub: Section) -> tuple[Section, Section]:
    """The settings of the workload and those of the forwarder, from either section."""
    check_kind("workload", workload)
    kind = find_kind("workload", workload["kind"])
    forwarder = {"kind": kind.pubsub, **pubsub} if kind.pubsub else pubsub
    _check_forwarder(workload["kind"], kind.matching, forwarder)
    known = settings_of(find_kind("pubsub", forwarder["kind"]).Settings)
    mine = settings_of(kind.Settings)
    moved = {key: value for key, value in workload.items() if key in known and key not in mine}
    if both := sorted(moved.keys() & pubsub.keys()):
        raise ExperimentError(
            f"pubsub.{both[0]}: expected it in one section, found it in [workload] as well"
        )
    for key, value in moved.items():
        known[key].read(f"workload.{key}", value)  # an error names the section that it is in
    own = {key: value for key, value in workload.items() if key not in moved}
    return own, {**forwarder, **moved}
