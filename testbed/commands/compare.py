"""`tdo compare`: how groups of runs differ, with confidence intervals over seeds."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis.numbers import read_number
from testbed.errors import UsageError

if TYPE_CHECKING:
    from analysis.compare import Cell, Comparison, Group

_MOST_BESIDE = 3  # groups; more stand below each other


def add_parser(commands: Any) -> None:
    """Add `compare` to the commands."""
    parser = commands.add_parser(
        "compare", help="compare the metrics of runs, with confidence intervals"
    )
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="run directories or folders of sweeps"
    )
    parser.add_argument("--json", action="store_true", help="end the output with one JSON object")
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> int:
    from analysis.compare import compare
    from analysis.errors import NotARunError

    try:
        comparison = compare(options.runs)
    except NotARunError as error:
        raise UsageError(str(error)) from error
    print_comparison(comparison)
    if options.json:
        print(json.dumps(to_document(comparison)))
    return 0


def print_comparison(comparison: "Comparison") -> None:
    """Print the groups, the table and the notes."""
    groups = comparison.groups
    for letter, group in zip(_letters(groups), groups, strict=True):
        seeds = ", ".join(str(run.seed) for run in group.runs)
        print(f"{letter}: {group.label} ({_count(group)}, seeds {seeds})")
    if len(groups) == 1 and len(groups[0].runs) > 1:
        lines = _of_seeds(comparison)
    else:
        lines = _beside(comparison) if len(groups) <= _MOST_BESIDE else _below(comparison)
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    print()
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip())
    if any(len(group.runs) > 1 for group in groups):
        print("\nmean [95 % interval]")
    if len(groups) > 1:
        print(
            "differences from A in percent of A's mean, by Welch; * if the interval has no 0 in it"
        )
    for note in comparison.notes:
        print(f"note: {note}")


def _count(group: "Group") -> str:
    return "1 run" if len(group.runs) == 1 else f"{len(group.runs)} runs"


def _letters(groups: Sequence["Group"]) -> list[str]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [
        letters[number] if len(groups) <= len(letters) else f"G{number + 1}"
        for number in range(len(groups))
    ]


def _beside(comparison: "Comparison") -> list[list[str]]:
    letters = _letters(comparison.groups)
    head = ["metric", letters[0]]
    for letter in letters[1:]:
        head += [letter, f"{letter} - {letters[0]}"]
    lines = [head]
    for name, (first, *others) in comparison.rows.items():
        line = [name, _mean(first)]
        for cell in others:
            line += [_mean(cell), _difference(cell)]
        lines.append(line)
    return lines


def _of_seeds(comparison: "Comparison") -> list[list[str]]:
    """Of one experiment, how its runs spread."""
    lines = [["metric", "mean", "95 % interval", "least", "most"]]
    runs = comparison.groups[0].runs
    for name, (cell,) in comparison.rows.items():
        values = [run.metrics[name] for run in runs if name in run.metrics]
        known = cell.low is not None and cell.high is not None
        interval = f"[{read_number(cell.low)}, {read_number(cell.high)}]" if known else "-"
        extremes = [f"{read_number(min(values))}", f"{read_number(max(values))}"]
        lines.append([name, f"{read_number(cell.mean)}", interval, *extremes])
    return lines


def _below(comparison: "Comparison") -> list[list[str]]:
    letters = _letters(comparison.groups)
    lines = [["metric", "group", "mean", f"difference from {letters[0]}"]]
    for name, cells in comparison.rows.items():
        for number, (letter, cell) in enumerate(zip(letters, cells, strict=True)):
            lines.append(["" if number else name, letter, _mean(cell), _difference(cell)])
    return lines


def _mean(cell: "Cell") -> str:
    if cell.mean is None:
        return "-"
    if cell.low is None or cell.high is None:
        return f"{read_number(cell.mean)}"
    if cell.low == cell.high:
        return f"{read_number(cell.mean)} ±0"
    return f"{read_number(cell.mean)} [{read_number(cell.low)}, {read_number(cell.high)}]"


def _difference(cell: "Cell") -> str:
    if cell.difference_percent is None:
        return "-"
    percent = f"{cell.difference_percent:+.1f} %"
    low, high = cell.difference_low_percent, cell.difference_high_percent
    if low is None or high is None:
        return percent
    if low == high == 0:
        return "same  "
    mark = " *" if low > 0 or high < 0 else "  "
    return f"{percent} [{low:+.1f}, {high:+.1f}]{mark}"


def to_document(comparison: "Comparison") -> dict[str, Any]:
    """The comparison as plain data."""
    return {
        "groups": [
            {
                "label": group.label,
                "name": group.name,
                "settings": dict(group.settings),
                "runs": [str(run.path) for run in group.runs],
                "seeds": [run.seed for run in group.runs],
            }
            for group in comparison.groups
        ],
        "metrics": {name: [asdict(c) for c in cells] for name, cells in comparison.rows.items()},
        "notes": list(comparison.notes),
    }
