"""Writes the tables in docs/experiment-file.md: `python -m testbed.experiment.documentation`."""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from testbed.experiment.catalogue import (
    KnownKind,
    KnownSetting,
    describe_settings,
    list_kinds,
)
from testbed.experiment.faults import FAULTS
from testbed.experiment.file import Experiment

PAGE = Path(__file__).parents[2] / "docs" / "experiment-file.md"
_BEGIN = "<!-- written by python -m testbed.experiment.documentation -->\n"
_END = "<!-- end of what is written -->\n"
_SECTIONS = ("topology", "overlay", "routing", "pubsub", "workload", "faults")
_DEFAULTS = {"name": "name of the file", "folder": "folder of the file"}  # not in the class
_HEADING = ("| key | type | default | range | meaning |", "|---|---|---|---|---|")


def renewed(page: str) -> str:
    """A page with the current tables."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{tables()}{_END}{after}"


def tables() -> str:
    """All keys of an experiment file in Markdown: a heading and tables for each section."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield from ("## Top level", "")
    yield from _table(key for key in describe_settings(Experiment) if key.name not in _SECTIONS)
    for section, kinds in groupby(list_kinds(), key=lambda kind: kind.section):
        if section != "fault":
            yield from _section(section, list(kinds))
    yield from _faults()


def _section(section: str, kinds: Sequence[KnownKind]) -> Iterator[str]:
    """The settings of all kinds once, and below them those of each kind."""
    shared = [
        s for s in kinds[0].settings if len(kinds) > 1 and all(s in k.settings for k in kinds)
    ]
    yield from ("", f"## [{section}]", "")
    yield from ("| kind | meaning |", "|---|---|")
    yield from (f"| `{kind.kind}` | {_cell(kind.description)} |" for kind in kinds)
    if shared:
        yield from ("", "All kinds:", "", *_table(shared))
    for kind in kinds:
        if own := [setting for setting in kind.settings if setting not in shared]:
            yield from ("", f"`{kind.kind}`:", "", *_table(own))


def _faults() -> Iterator[str]:
    yield from ("", "## [[fault]]", "")
    yield "Each fault requires `at_s` (float: time of the run, 0 to `duration_s`),"
    yield "`action` and `target`."
    yield from ("", "| action | meaning | target | also required |", "|---|---|---|---|")
    for action, kind in FAULTS.items():
        needs = ", ".join(f"`{key}`" for key in kind.needs)
        yield f"| `{action}` | {kind.description} | {_code(kind.target_form)} | {needs} |"


def _table(settings: Iterable[KnownSetting]) -> Iterator[str]:
    yield from _HEADING
    for setting in settings:
        choices = ", ".join(f"`{choice}`" for choice in setting.choices)
        cells = (
            setting.type,
            _default(setting),
            choices or setting.range,
            _cell(setting.description),
        )
        yield f"| `{setting.name}` | {' | '.join(cells)} |"


def _default(setting: KnownSetting) -> str:
    if setting.name in _DEFAULTS:
        return _DEFAULTS[setting.name]
    return "required" if setting.is_required else f"`{json.dumps(setting.default)}`"


def _cell(text: str) -> str:
    return _code(text.replace("|", "\\|"))


def _code(text: str) -> str:
    """The text with what is in single quotes as code."""
    parts = text.split(" '")
    return parts[0] + "".join(f" `{part.replace(chr(39), '`', 1)}" for part in parts[1:])


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
