"""`tdo compare`: how groups of runs differ, with confidence intervals over seeds."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from analysis.numbers import read_number
from testbed.errors import UsageError

if TYPE_CHECKING:
    from analysis.compare import Cell, Comparison, Group

_MOST_BESIDE = 3  # groups; the values of more are in rows below each other
_WORDS = 2  # columns of text: metric and unit


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
        print(f"{letter}: {group.label} ({_count(group)}, {_plural(group, 'seed')} {seeds})")
    if len(groups) == 1 and len(groups[0].runs) > 1:
        lines = _of_seeds(comparison)
    else:
        lines = _beside(comparison) if len(groups) <= _MOST_BESIDE else _below(comparison)
    print()
    _print_table(lines)
    if any(len(group.runs) > 1 for group in groups):
        print("\nmean [95 % interval]")
    if len(groups) > 1:
        print("difference from A in % of A's mean [95 % interval by Welch]; *: 0 is not in it")
    for note in comparison.notes:
        print(f"note: {note}")


def _print_table(lines: Sequence[Sequence[str]]) -> None:
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    for line in lines:
        cells = [
            cell.ljust(width) if place < _WORDS else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _count(group: "Group") -> str:
    return f"{len(group.runs)} {_plural(group, 'run')}"


def _plural(group: "Group", word: str) -> str:
    return word if len(group.runs) == 1 else f"{word}s"


def _letters(groups: Sequence["Group"]) -> list[str]:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    return [
        letters[number] if len(groups) <= len(letters) else f"G{number + 1}"
        for number in range(len(groups))
    ]


class _Row(NamedTuple):
    """A number of all groups; a share is shown in percent."""

    key: str
    words: str
    unit: str
    cells: Sequence["Cell"]

    @property
    def head(self) -> list[str]:
        return [self.words, "%" if self.unit == "share" else self.unit]

    def read(self, value: float | None) -> str:
        if value is None:
            return "-"
        return read_number(100 * value if self.unit == "share" else value)

    def mean(self, cell: "Cell") -> str:
        if cell.mean is None or cell.low is None or cell.high is None:
            return self.read(cell.mean)
        if cell.low == cell.high:
            return f"{self.read(cell.mean)} ±0"
        return f"{self.read(cell.mean)} [{self.read(cell.low)}, {self.read(cell.high)}]"


def _rows(comparison: "Comparison") -> list[_Row]:
    """The rows with the names and in the order of summary and report."""
    from analysis.metrics.names import is_former, name_number, number_order

    return [
        _Row(key, *name_number(key), comparison.rows[key])
        for key in sorted(comparison.rows, key=number_order)
        if not is_former(key, comparison.rows)
    ]


def _beside(comparison: "Comparison") -> list[list[str]]:
    letters = _letters(comparison.groups)
    head = ["metric", "unit", letters[0]]
    for letter in letters[1:]:
        head += [letter, f"{letter} - {letters[0]}"]
    lines = [head]
    for row in _rows(comparison):
        first, *others = row.cells
        line = [*row.head, row.mean(first)]
        for cell in others:
            line += [row.mean(cell), _difference(cell)]
        lines.append(line)
    return lines


def _of_seeds(comparison: "Comparison") -> list[list[str]]:
    """The table of one experiment: mean, interval, minimum and maximum over its runs."""
    lines = [["metric", "unit", "mean", "95 % interval", "minimum", "maximum"]]
    runs = comparison.groups[0].runs
    for row in _rows(comparison):
        (cell,) = row.cells
        values = [run.metrics[row.key] for run in runs if row.key in run.metrics]
        known = cell.low is not None and cell.high is not None
        interval = f"[{row.read(cell.low)}, {row.read(cell.high)}]" if known else "-"
        extremes = [row.read(min(values)), row.read(max(values))]
        lines.append([*row.head, row.read(cell.mean), interval, *extremes])
    return lines


def _below(comparison: "Comparison") -> list[list[str]]:
    letters = _letters(comparison.groups)
    lines = [["metric", "unit", "group", "mean", f"difference from {letters[0]}"]]
    for row in _rows(comparison):
        for number, (letter, cell) in enumerate(zip(letters, row.cells, strict=True)):
            head = ["", ""] if number else row.head
            lines.append([*head, letter, row.mean(cell), _difference(cell)])
    return lines


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
