"""Figures of a sweep: means over seeds with 95 % confidence intervals, as SVG, PNG and CSV.

The colours are those of Okabe and Ito, which colour-blind people can distinguish; markers and
dashes show the same in print without colour.
"""

import csv
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from scipy.stats import t as student_t

from analysis.errors import AnalysisError

Row = Mapping[str, Any]

_CONFIDENCE = 0.95
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D00")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.2, 1.2, 1.2)))
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "tdo",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
}
_SILENT_METADATA = {".svg": {"Date": None}, ".png": {"Software": None}}
_PANEL_INCHES = (3.6, 2.9)
_LEGEND_INCHES = 1.2
_PANELS_IN_A_ROW = 3
_PNG_DPI = 200
_ASIDE = 0.006  # of the width of a panel
_LINE = "system"  # the column that names lines that are columns


class FigureError(AnalysisError):
    """A figure that cannot be drawn as described; the message starts with the wrong setting."""


@dataclass(frozen=True, slots=True)
class Published:
    """A published value of a line of a figure, at an x, or a mean over all x if there is none."""

    line: str
    y: float
    x: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """What to draw: `y` over `x`, a line for each of `lines`, a panel for each of `panels`.

    With `series`, a file in the runs' `analysis` folders, `x` and `y` are columns of that file.
    With `columns`, pairs of a label and a column, each column is a line, and `y` only names what
    they are. `published` values stand beside the lines of their labels.
    """

    name: str
    x: str
    y: str
    lines: tuple[str, ...] = ()
    panels: str = ""
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    log_x: bool = False
    series: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    published: tuple[Published, ...] = ()


@dataclass(frozen=True, slots=True)
class Point:
    """The mean of runs that differ only in the seed, with its confidence interval."""

    panel: Any
    line: tuple[Any, ...]
    x: Any
    mean: float
    low: float | None
    high: float | None
    count: int


def draw_figure(
    figure: Figure, rows: Sequence[Row], keys: Sequence[str], folder: Path
) -> tuple[list[Path], list[str]]:
    """Draw a figure of the rows of a sweep; returns its files and notes for the user.

    `keys` are the columns that distinguish runs, without the seed.
    """
    for _, column in figure.columns:
        _check_column("columns", column, rows)
    figure, rows = _with_lines(figure, rows)
    for setting in ("x", "y"):
        _check_column(setting, getattr(figure, setting), rows)
    points = gather_points(figure, rows, keys)
    if not points:
        return [], [f"not drawn, as no run has {figure.y} and {figure.x}"]
    bad = [point.x for point in points if not _is_number(point.x) or point.x <= 0]
    if figure.log_x and bad:
        raise FigureError(f"log_x: expected numbers above 0 as {figure.x}, found {bad[0]!r}")
    files = [folder / f"{figure.name}{suffix}" for suffix in (".svg", ".png", ".csv")]
    with matplotlib.rc_context(_SETTINGS):
        canvas = _draw(figure, points)
        for file in files[:2]:
            canvas.savefig(
                file, dpi=_PNG_DPI, bbox_inches="tight", metadata=_SILENT_METADATA[file.suffix]
            )
    _write_points(figure, points, files[2])
    return files, _notes(figure, rows, keys)


def _with_lines(figure: Figure, rows: Sequence[Row]) -> tuple[Figure, Sequence[Row]]:
    """The same figure and rows with one column: a row for each line."""
    if not figure.columns:
        return figure, rows
    lined = [
        {**row, _LINE: label, figure.y: row.get(column)}
        for row in rows
        for label, column in figure.columns
    ]
    return replace(figure, lines=(*figure.lines, _LINE), columns=()), lined


def read_series(series: str, rows: Sequence[Row], sweep: Path) -> list[Row]:
    """The rows of a file that each run of a sweep has, with the keys of the run."""
    found: list[Row] = []
    for row in rows:
        file = sweep / str(row["path"]) / "analysis" / series
        if row["path"] is not None and file.is_file():
            with file.open(newline="") as opened:
                steps = list(csv.DictReader(opened))
            found += [{**row, **{k: float(v) for k, v in s.items() if v}} for s in steps]
    if not found:
        raise FigureError(f"series: expected {series} in the analysis of a run, found it in none")
    return found


def gather_points(figure: Figure, rows: Sequence[Row], keys: Sequence[str]) -> list[Point]:
    """The points of a figure, in the order of the runs and, within a line, of numbers."""
    points = [_point(figure, group) for group in _groups(figure, rows, keys)]
    order = list(dict.fromkeys((point.panel, point.line) for point in points))
    if all(_is_number(point.x) for point in points):
        points.sort(key=lambda point: (order.index((point.panel, point.line)), point.x))
    return points


def mean_interval(values: Sequence[float]) -> tuple[float, float | None, float | None]:
    """The mean and the bounds of its 95 % confidence interval (Student's t), None for one value."""
    mean = fmean(values)
    if len(values) < 2:
        return mean, None, None
    quantile = float(student_t.ppf((1 + _CONFIDENCE) / 2, len(values) - 1))
    half = quantile * stdev(values) / sqrt(len(values))
    return mean, mean - half, mean + half


def _groups(figure: Figure, rows: Sequence[Row], keys: Sequence[str]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if _is_number(row.get(figure.y)) and row.get(figure.x) is not None:
            groups.setdefault(_group(figure, row, keys), []).append(row)
    return list(groups.values())


def _group(figure: Figure, row: Row, keys: Sequence[str]) -> tuple[Any, ...]:
    """The values that runs of one point have in common; if x is measured, all keys but the seed."""
    place = (row.get(figure.panels), *(row.get(key) for key in figure.lines))
    is_measured = figure.x not in (*keys, *figure.lines, "variant", "seed")
    return (*place, *((row.get(key) for key in keys) if is_measured else (row[figure.x],)))


def _point(figure: Figure, group: Sequence[Row]) -> Point:
    first = group[0]
    mean, low, high = mean_interval([float(row[figure.y]) for row in group])
    line = tuple(first.get(key) for key in figure.lines)
    xs = [row[figure.x] for row in group]
    x = xs[0] if len(set(xs)) == 1 or not all(map(_is_number, xs)) else fmean(xs)
    panel = first.get(figure.panels) if figure.panels else None
    return Point(panel, line, x, mean, low, high, len(group))


def _check_column(setting: str, column: str, rows: Sequence[Row]) -> None:
    known = {name for row in rows for name in row}
    # A metric with parts is null as a whole in runs that do not have it.
    parts = column.split(".")
    if not any(".".join(parts[:length]) in known for length in range(1, len(parts) + 1)):
        near = difflib.get_close_matches(column, known, n=1, cutoff=0.0)
        hint = f"; the nearest is {near[0]}" if near else ""
        raise FigureError(f"{setting}: expected a column of runs.csv, found {column!r}{hint}")


def _notes(figure: Figure, rows: Sequence[Row], keys: Sequence[str]) -> list[str]:
    groups = _groups(figure, rows, keys)
    mixed = [key for key in keys if any(len({row.get(key) for row in g}) > 1 for g in groups)]
    notes = [f"{', '.join(mixed)}: different values are averaged"] if mixed else []
    missing = sum(not _is_number(row.get(figure.y)) for row in rows)
    return [*notes, f"{missing} of {len(rows)} runs have no {figure.y}"] if missing else notes


def _write_points(figure: Figure, points: Iterable[Point], file: Path) -> None:
    panels = [figure.panels] if figure.panels else []
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(
            [*panels, *figure.lines, figure.x, "mean", "ci95_low", "ci95_high", "count"]
        )
        for point in points:
            place = [point.panel] if figure.panels else []
            writer.writerow(
                [*place, *point.line, point.x, point.mean, point.low, point.high, point.count]
            )
        for value in figure.published:
            writer.writerow([*panels, _published_label(value), value.x, value.y, None, None, None])


def _draw(figure: Figure, points: Sequence[Point]) -> Canvas:
    panels = list(dict.fromkeys(point.panel for point in points))
    across = min(len(panels), _PANELS_IN_A_ROW)
    down = -(-len(panels) // across)
    width, height = _PANEL_INCHES
    scale = 1.25 if len(panels) == 1 else 1.0
    legend = _LEGEND_INCHES if figure.lines else 0.0
    size = (across * width * scale + legend, down * height * scale)
    canvas = Canvas(figsize=size, layout="constrained")
    grid = canvas.subplots(down, across, sharex=True, sharey=True, squeeze=False).flatten()
    lines = list(dict.fromkeys(point.line for point in points))
    xs = list(dict.fromkeys(point.x for point in points))
    for axes, panel in zip(grid, panels, strict=False):
        if figure.log_x:
            axes.set_xscale("log")
        here = [point for point in points if point.panel == panel]
        for number, line in enumerate(lines):
            aside = number - (len(lines) - 1) / 2 if len(xs) < len(points) else 0.0
            _draw_line(axes, number, line, [p for p in here if p.line == line], xs, aside)
        for value in figure.published:
            _draw_published(axes, lines, value)
        if figure.panels:
            axes.set_title(f"{_short(figure.panels)} = {_text(panel)}", loc="left")
        _dress(axes, xs)
    for axes in grid[len(panels) :]:
        axes.set_visible(False)
    _label(canvas, figure, grid)
    return canvas


def _draw_line(
    axes: Axes,
    number: int,
    line: tuple[Any, ...],
    points: Sequence[Point],
    xs: list[Any],
    aside: float,
) -> None:
    if not points:
        return
    are_numbers = all(map(_is_number, xs))
    places = _places(axes, [point.x for point in points], xs, aside)
    below = [point.mean - (point.mean if point.low is None else point.low) for point in points]
    above = [(point.mean if point.high is None else point.high) - point.mean for point in points]
    axes.errorbar(
        places,
        [point.mean for point in points],
        yerr=[below, above],
        label=", ".join(_text(value) for value in line if value is not None),
        color=_COLOURS[number % len(_COLOURS)],
        # Colours and markers repeat with different periods: no two lines look the same.
        marker=_MARKERS[(number + number // len(_COLOURS)) % len(_MARKERS)],
        linestyle=_DASHES[number % len(_DASHES)] if are_numbers else "none",
        linewidth=1.4,
        markersize=5,
        markeredgecolor="white",
        markeredgewidth=0.4,
        elinewidth=0.9,
        capsize=2.5,
    )


def _draw_published(axes: Axes, lines: Sequence[tuple[Any, ...]], value: Published) -> None:
    """Draw a published value in its line's colour: a hollow marker, or a thin horizontal line."""
    number = next((place for place, line in enumerate(lines) if value.line in line), 0)
    look: dict[str, Any] = {
        "color": _COLOURS[number % len(_COLOURS)],
        "label": _published_label(value),
    }
    if value.x is None:
        axes.axhline(value.y, linestyle=_DASHES[2], linewidth=1.0, **look)
        return
    marker = _MARKERS[(number + number // len(_COLOURS)) % len(_MARKERS)]
    axes.plot([value.x], [value.y], marker=marker, fillstyle="none", markersize=9, **look,
              linestyle="none")  # fmt: skip


def _published_label(value: Published) -> str:
    return f"{value.line}, paper" + ("" if value.x is not None else " (mean)")


def _places(axes: Axes, values: Sequence[Any], xs: list[Any], aside: float) -> list[float]:
    """The positions of points: lines are slightly apart, so that error bars do not overlap."""
    if not all(map(_is_number, xs)):
        return [xs.index(value) + _ASIDE * 6 * aside for value in values]
    low, high = min(xs), max(xs)
    if axes.get_xscale() == "log":
        return [value * (high / low) ** (_ASIDE * aside) for value in values]
    return [value + (high - low) * _ASIDE * aside for value in values]


def _dress(axes: Axes, xs: list[Any]) -> None:
    axes.grid(axis="x", visible=False)
    axes.margins(x=0.05)
    if not all(map(_is_number, xs)):
        axes.set_xticks(range(len(xs)), [_text(x) for x in xs])
        return
    if len(set(xs)) <= 8:  # ticks at the swept values instead of round numbers
        axes.set_xticks(sorted(set(xs)), [_text(x) for x in sorted(set(xs))])
        axes.minorticks_off()


def _label(canvas: Canvas, figure: Figure, grid: Any) -> None:
    canvas.supxlabel(figure.x_label or figure.x, fontsize=9)
    canvas.supylabel(figure.y_label or figure.y, fontsize=9)
    if figure.title:
        canvas.suptitle(figure.title, x=0.01, ha="left", fontsize=10, fontweight="bold")
    if not figure.lines:
        return
    handles: dict[str, Any] = {}
    for axes in grid:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    title = ", ".join(map(_short, figure.lines))
    canvas.legend(
        list(handles.values()),
        list(handles),
        title=title,
        loc="outside right center",  # below the title, which may be long
        frameon=False,
        title_fontsize=8,
        alignment="left",
    )


def _short(key: str) -> str:
    return key.rpartition(".")[2].replace("_", " ")


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
