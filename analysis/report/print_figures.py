"""The figures of a report for print: SVG with the data beside it as CSV."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.overlay import draw_overlay, overlay_lines
from analysis.report.distributions import Distribution
from analysis.report.reported_run import ReportedRun

_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8A6D00", "#6B7580")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "tdo",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#444444",
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
_LONG_TAIL = 30.0


def draw_figures(
    run: ReportedRun,
    distributions: Sequence[Distribution],
    timeline: dict[str, Any],
    folder: Path,
) -> list[Path]:
    """Draw every figure that the run has data for; returns the pictures."""
    folder.mkdir(exist_ok=True)
    drawn = []
    with matplotlib.rc_context(_SETTINGS):
        for distribution in distributions:
            if distribution.series:
                drawn.append(_save(_draw_distribution(distribution), folder, distribution.file))
                _write_distribution(distribution, folder / f"{distribution.file}.csv")
        if timeline["events"] or timeline["traffic"]:
            drawn.append(_save(_draw_timeline(timeline), folder, "timeline"))
            _write_timeline(timeline, folder / "timeline.csv")
    if run.overlay is not None and run.overlay.links:
        drawn.append(folder / "overlay.svg")
        draw_overlay(run.path, drawn[-1])
        if run.unicast is not None:
            lines = overlay_lines(run.unicast, run.overlay)
            _write(folder / "overlay.csv", ("a", "b", "what"), lines)
    return drawn


def _save(figure: Figure, folder: Path, name: str) -> Path:
    path = folder / f"{name}.svg"
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    return path


def _draw_distribution(distribution: Distribution) -> Figure:
    figure = Figure(figsize=(4.4, 3.1), layout="constrained")
    axes = figure.subplots()
    values = [x for series in distribution.series for x in series.x]
    if min(values) > 0 and max(values) / min(values) > _LONG_TAIL:
        axes.set_xscale("log")
    for number, series in enumerate(distribution.series):
        look = {"color": _COLOURS[number], "linestyle": _DASHES[number % len(_DASHES)]}
        label = f"{series.label} ({series.counted})"
        xs, ys = [series.x[0], *series.x], [0.0, *series.y]
        axes.step(xs, ys, where="post", linewidth=1.6, label=label, **look)
    axes.set(xlabel=distribution.x_label, ylabel="share of cases", ylim=(0, 1.01))
    axes.legend(loc="lower right")
    return figure


def _write_distribution(distribution: Distribution, path: Path) -> None:
    rows = (
        (series.label, x, y)
        for series in distribution.series
        for x, y in zip(series.x, series.y, strict=True)
    )
    _write(path, ("series", distribution.column, "share"), rows)


def _draw_timeline(timeline: dict[str, Any]) -> Figure:
    panels = [name for name in ("events", "traffic") if timeline[name]]
    figure = Figure(figsize=(8.4, 1.4 + 1.5 * len(panels)), layout="constrained")
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False).flatten()
    for axes, name in zip(grid, panels, strict=True):
        (_draw_events if name == "events" else _draw_traffic)(axes, timeline)
        for fault in timeline["faults"]:
            axes.axvline(fault["at_s"], color="#1b1f24", linewidth=0.9, linestyle=(0, (4, 3)))
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    grid[-1].set_xlabel("seconds since the start")
    grid[-1].set_xlim(0, len(timeline["seconds"]))
    return figure


def _draw_events(axes: Axes, timeline: dict[str, Any]) -> None:
    edges = [*timeline["seconds"], len(timeline["seconds"])]
    for number, series in enumerate(timeline["events"]):
        look = {"color": _COLOURS[number], "linestyle": _DASHES[number % len(_DASHES)]}
        axes.stairs(series["counts"], edges, label=series["label"], linewidth=1.4, **look)
    axes.set_ylabel("events a second")


def _draw_traffic(axes: Axes, timeline: dict[str, Any]) -> None:
    under = [0] * len(timeline["seconds"])
    for number, series in enumerate(timeline["traffic"]):
        axes.bar(
            timeline["seconds"], series["counts"], 0.92, under, align="edge",
            color=_COLOURS[number % len(_COLOURS)], label=series["label"], linewidth=0,
        )  # fmt: skip
        under = [low + count for low, count in zip(under, series["counts"], strict=True)]
    axes.set_ylabel("packets a second")


def _write_timeline(timeline: dict[str, Any], path: Path) -> None:
    columns = [*timeline["events"], *timeline["all_traffic"]]
    faults: dict[int, list[str]] = {}
    for fault in timeline["faults"]:
        faults.setdefault(int(fault["at_s"]), []).append(f"{fault['action']} {fault['target']}")
    rows = (
        (
            second,
            *(column["counts"][second] for column in columns),
            "; ".join(faults.get(second, ())),
        )
        for second in timeline["seconds"]
    )
    _write(path, ("second", *(column["label"] for column in columns), "faults"), rows)


def _write(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
