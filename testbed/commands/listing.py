"""`tdo list`: the kinds of experiment files, and existing runs."""

import argparse
import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from testbed.experiment.catalogue import KnownKind, KnownSetting, list_kinds
from testbed.run.listing import KnownRun, list_runs


def add_parser(commands: Any) -> None:
    """Add `list` to the commands."""
    parser = commands.add_parser("list", help="list kinds with their settings, or runs")
    things = parser.add_subparsers(metavar="WHAT", required=True)
    kinds = things.add_parser("kinds", help="list all kinds of all sections, with their settings")
    kinds.set_defaults(run=_list_kinds)
    runs = things.add_parser("runs", help="list all runs in the results folder, newest first")
    runs.add_argument(
        "--out", type=Path, default=Path("results"), help="folder of the results; default: results"
    )
    runs.set_defaults(run=_list_runs)
    for thing in (kinds, runs):
        thing.add_argument(
            "--json", action="store_true", help="end the output with one JSON object"
        )


def _list_kinds(options: argparse.Namespace) -> int:
    kinds = list(list_kinds())
    for section, some in groupby(kinds, key=lambda kind: kind.section):
        print(f"[{section}]")
        for kind in some:
            print("\n".join(_kind_lines(kind)))
        print()
    if options.json:
        print(json.dumps({"kinds": [kind.to_dict() for kind in kinds]}))
    return 0


def _list_runs(options: argparse.Namespace) -> int:
    runs = list_runs(options.out)
    if not runs:
        print(f"no runs in {options.out}; `tdo run FILE` makes one")
    for line in _columns(_run_cells(run) for run in runs):
        print(line)
    if options.json:
        print(json.dumps({"runs": [run.to_dict() for run in runs]}))
    return 0


def _kind_lines(kind: KnownKind) -> Iterable[str]:
    yield f"  {kind.kind}: {kind.description}"
    for line in _columns(_setting_cells(setting) for setting in kind.settings):
        yield f"      {line}"


def _setting_cells(setting: KnownSetting) -> Sequence[str]:
    default = "required" if setting.is_required else json.dumps(setting.default)
    allowed = " | ".join(map(str, setting.choices)) or setting.range
    said = f"{setting.description} ({allowed})" if allowed else setting.description
    return setting.name, setting.type, default, said


def _run_cells(run: KnownRun) -> Sequence[str]:
    return run.written_at, run.name, run.backend, f"seed {run.seed}", run.verdict, run.path


def _columns(rows: Iterable[Sequence[str]]) -> list[str]:
    """The rows as aligned columns; the last cell is not padded."""
    table = list(rows)
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)][:-1]
    return [
        "  ".join((*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[-1]))
        for row in table
    ]
