"""The experiment file that `tdo init` writes: a small experiment with all keys that it may have."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from testbed.experiment.catalogue import KnownKind, KnownSetting, describe_settings, list_kinds
from testbed.experiment.file import Experiment
from testbed.experiment.kinds import SECTIONS

_COMMENT_COLUMN = 32
_HEAD = """\
# An experiment of the TDO testbed: `tdo run FILE` runs it. Lines that begin with a # show further
# keys; their values are the defaults. `tdo list kinds` has the settings of all kinds, and
# docs/experiment-file.md explains the sections.

"""
_FAULTS = """
# [[fault]]                     # a failure or repair; any number of them
# at_s = 15.0
# action = "kill-agent"
# target = "h3"
"""
_VALUES: Mapping[str, Mapping[str, Any]] = {
    "": {"backend": "simulation", "duration_s": 19.0, "start_over_s": 2.0, "time_scale": 2.5},
    "topology": {"kind": "waxman", "routers": 20, "hosts": 12},
    "overlay": {"kind": "tdo-walk", "degree_limit": "lg2"},
    "routing": {
        "kind": "cores", "cores": 3, "period_us": 500_000, "first_selection_s": 6.0,
        "settle_s": 2.0,
    },
    "pubsub": {"kind": "content"},
    "workload": {
        "kind": "content-zipf", "events": 200, "rate_per_s": 40.0, "match": 0.2, "start_s": 12.0,
    },
}  # fmt: skip


def template() -> str:
    """The text of the file."""
    top = [one for one in describe_settings(Experiment) if one.description]
    own = (one for one in top if one.name not in ("name", "folder", "data"))
    kinds = list(list_kinds())
    lines = list(_settings(own, _VALUES[""]))
    for section in SECTIONS:
        lines += _section(section, [kind for kind in kinds if kind.section == section])
    return _HEAD + "\n".join(lines) + "\n" + _FAULTS


def _section(section: str, kinds: Sequence[KnownKind]) -> Iterator[str]:
    """A section: its kinds with their descriptions, and the settings of the chosen one."""
    values = _VALUES[section]
    yield from ("", f"[{section}]")
    for kind in kinds:
        mark = "" if kind.kind == values["kind"] else "# "
        yield _line(f'{mark}kind = "{kind.kind}"', kind.description)
    chosen = next(kind for kind in kinds if kind.kind == values["kind"])
    yield from _settings(chosen.settings, values)


def _settings(settings: Iterable[KnownSetting], values: Mapping[str, Any]) -> Iterator[str]:
    for one in settings:
        mark, value = ("", values[one.name]) if one.name in values else ("# ", one.default)
        allowed = " | ".join(map(str, one.choices)) or one.range
        meaning = f"{one.description} ({allowed})" if allowed else one.description
        yield _line(f"{mark}{one.name} = {json.dumps(value)}", meaning)


def _line(text: str, meaning: str) -> str:
    return f"{text.ljust(_COMMENT_COLUMN - 1)} # {meaning}"
