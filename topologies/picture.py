"""Pictures of underlays that show kinds of nodes and their links, from 20 to 1,600 nodes.

Colours are those of Okabe and Ito, which colour-blind people can distinguish; shapes and sizes
show the same. Other pictures are drawn on the same canvas.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from topologies.errors import TopologyError
from topologies.layout import Positions, place_nodes, typical_gap
from topologies.underlay import Link, Router, Underlay

MOST_NAMED_NODES = 64

# Metadata of each file type to leave out: time and program.
_SILENT_METADATA = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
}
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "tdo",
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
}
_TITLE_INCHES = 0.9
_SMALLEST_SCALE, _EXCHANGE_SCALE, _LARGEST_SCALE = 12.0, 20.0, 40.0
INK, PAPER = "#222222", "#ffffff"
_LINE = "#8a8f98"
_HOST_COLOUR = "#009E73"
_LONGEST_LABEL = 12
_CROWD_OF_LINKS = 500


@dataclass(frozen=True)
class Canvas:
    """An empty figure for an underlay, and the positions of its nodes.

    `scale` is about the distance between two routers, in typographic points.
    """

    underlay: Underlay
    positions: Positions
    figure: Figure
    axes: Axes
    scale: float

    @property
    def points_per_unit(self) -> float:
        """Typographic points per unit of the positions."""
        left, right = self.axes.transData.transform([(0, 0), (1, 0)])[:, 0]
        return float((right - left) * 72 / self.figure.dpi)


@dataclass(frozen=True)
class Look:
    """The marker of one kind of nodes; `size` is relative to a plain router."""

    kind: str
    colour: str
    size: float
    layer: int
    marker: str = "o"


LOOKS = (
    Look("transit router", "#D55E00", 1.0, 6, "s"),
    Look("stub router", "#0072B2", 1.0, 4),
    Look("router", "#0072B2", 1.0, 4),
    Look("anonymous router", "#CC79A7", 1.3, 5, "X"),
    Look("host", _HOST_COLOUR, 0.62, 3, "^"),
)


def draw(underlay: Underlay, path: Path) -> None:
    """Draw an underlay into an .svg, .png or .pdf file."""
    write_figure(partial(compose_figure, underlay), path)


def write_figure(compose: Callable[[], Figure], path: Path) -> None:
    """Compose a figure with our settings and write it to an .svg, .png or .pdf file."""
    extension = path.suffix.lower()
    if extension not in _SILENT_METADATA:
        raise TopologyError(
            f"picture {path}: expected a name that ends in {', '.join(_SILENT_METADATA)}, "
            f"found {path.suffix or 'no extension'}; rename it"
        )
    with matplotlib.rc_context(_SETTINGS):
        figure = compose()
        figure.savefig(path, dpi=150, metadata=_SILENT_METADATA[extension])


def compose_figure(underlay: Underlay) -> Figure:
    """The picture of an underlay, not written to a file."""
    canvas = open_canvas(underlay)
    _draw_links(canvas)
    draw_nodes(canvas)
    if len(canvas.positions) <= MOST_NAMED_NODES:
        draw_names(canvas)
    draw_heading(canvas, _name(underlay), " · ".join(_count_things(underlay)))
    return canvas.figure


def open_canvas(underlay: Underlay, heading_inches: float = _TITLE_INCHES) -> Canvas:
    """A figure with the proportions of an underlay and room for a heading."""
    positions = place_nodes(underlay)
    points = np.array(list(positions.values()))
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.05 * float(max(high - low)) or 1.0
    width, height = high - low + 2 * margin
    side = 8.0 if len(positions) <= MOST_NAMED_NODES else 13.0
    inches = side / min(width, height) * np.array([width, height]) + (0, heading_inches)
    figure = Figure(figsize=(inches[0], inches[1]), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1 - heading_inches / inches[1]))
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    axes.set_axis_off()
    canvas = Canvas(underlay, positions, figure, axes, _EXCHANGE_SCALE)
    return replace(canvas, scale=_scale(canvas))


def _scale(canvas: Canvas) -> float:
    routers = canvas.underlay.routers
    if len(routers) == 1:
        return _EXCHANGE_SCALE
    gap = typical_gap({router.name: canvas.positions[router.name] for router in routers})
    points = gap * canvas.points_per_unit
    return float(min(max(2 * points, _SMALLEST_SCALE), _LARGEST_SCALE))


def _draw_links(canvas: Canvas) -> None:
    underlay = canvas.underlay
    is_transit = {router.name: router.role == "transit" for router in underlay.routers}
    groups: dict[str, list[Link]] = {"last-mile": [], "plain": [], "access": [], "transit": []}
    for link in underlay.links:
        ends = is_transit.get(link.a, False) + is_transit[link.b]
        kind = "last-mile" if link.a in underlay.last_mile else ("plain", "access", "transit")[ends]
        groups[kind].append(link)
    thin = max(0.3, canvas.scale * 0.022)
    # Where many links cross, they are transparent; in stub domains few cross.
    is_crowded = not groups["transit"] and len(groups["plain"]) > _CROWD_OF_LINKS
    _draw_lines(canvas, groups["last-mile"], _HOST_COLOUR, thin, 0.6, 1)
    _draw_lines(canvas, groups["plain"], _LINE, thin, 0.4 if is_crowded else 0.9, 1)
    _draw_lines(canvas, groups["access"], "#E69F00", thin * 1.6, 0.8, 2)
    _draw_lines(canvas, groups["transit"], "#D55E00", max(0.9, thin * 2), 0.6, 3)


def _draw_lines(
    canvas: Canvas,
    links: Iterable[Link],
    colour: str,
    width: float,
    opacity: float,
    layer: int,
) -> None:
    places = canvas.positions
    segments = [np.array([places[link.a], places[link.b]]) for link in links]
    canvas.axes.add_collection(
        LineCollection(segments, colors=colour, linewidths=width, alpha=opacity, zorder=layer),
        autolim=False,
    )


def _kind(router: Router) -> str:
    if router.anonymous:
        return "anonymous router"
    return "router" if router.role == "router" else f"{router.role} router"


def _nodes_by_kind(underlay: Underlay) -> dict[str, list[str]]:
    """The names of the nodes of each existing kind, in the order of the legend."""
    kinds: dict[str, list[str]] = {look.kind: [] for look in LOOKS}
    for router in underlay.routers:
        kinds[_kind(router)].append(router.name)
    kinds["host"] = [host.name for host in underlay.hosts]
    return {kind: names for kind, names in kinds.items() if names}


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def draw_nodes(canvas: Canvas, looks: Sequence[Look] = LOOKS) -> None:
    """Draw a marker for every node, by its kind."""
    kinds = _nodes_by_kind(canvas.underlay)
    weights = _node_weights(canvas.underlay)
    for look in looks:
        names = kinds.get(look.kind, [])
        if not names:
            continue
        weight = np.array([weights[name] for name in names])
        points = np.array([canvas.positions[name] for name in names])
        canvas.axes.scatter(
            points[:, 0],
            points[:, 1],
            s=(0.26 * canvas.scale) ** 2 * look.size * weight,
            c=look.colour,
            marker=look.marker,
            edgecolors=PAPER,
            linewidths=canvas.scale * 0.012,
            zorder=look.layer + 4,
            label=_count(len(names), look.kind),
            gid=look.kind.replace(" ", "-"),
        )


def _node_weights(underlay: Underlay) -> dict[str, float]:
    """The relative size of each node: nodes with many links are larger."""
    degree = Counter(end for link in underlay.router_links for end in (link.a, link.b))
    typical = max(1.0, float(np.mean(list(degree.values()) or [1])))
    weights = dict.fromkeys(underlay.node_names, 1.0)
    for router in underlay.routers:
        weights[router.name] = 0.6 + 0.4 * min(degree[router.name] / typical, 4.0)
        if router.role == "transit" or len(underlay.routers) == 1:
            weights[router.name] *= 2
    return weights


def draw_names(canvas: Canvas) -> None:
    """Draw the name of every node above it."""
    labels = {router.name: router.label for router in canvas.underlay.routers}
    for name in canvas.underlay.node_names:
        label = labels.get(name, "")
        is_short = 0 < len(label) <= _LONGEST_LABEL
        x, y = canvas.positions[name]
        canvas.axes.annotate(
            f"{name} {label}" if is_short else name,
            (x, y),
            xytext=(0, 0.2 * canvas.scale),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8 if name in labels else 7,
            color=INK if name in labels else _HOST_COLOUR,
            bbox={"facecolor": PAPER, "alpha": 0.6, "edgecolor": "none", "pad": 0.4},
            zorder=6,
        )


def _count_things(underlay: Underlay) -> list[str]:
    sizes = (
        ("router", underlay.routers),
        ("link", underlay.router_links),
        ("host", underlay.hosts),
    )
    return [_count(len(things), what) for what, things in sizes if things]


def _name(underlay: Underlay) -> str:
    return str(underlay.source.get("generator") or underlay.source.get("file") or "underlay")


def draw_heading(canvas: Canvas, title: str, *lines: str) -> None:
    """Draw a title, lines of text below it, and the legend."""
    figure = canvas.figure
    width, height = figure.get_size_inches()
    left, top = 0.3 / width, 1 - 0.35 / height
    figure.text(left, top, title, fontsize=15, weight="bold", color=INK, va="center")
    for number, line in enumerate(lines):
        below = top - (0.3 + 0.24 * number) / height
        figure.text(left, below, line, fontsize=11, color=INK, va="center")
    legend = figure.legend(
        loc="upper right",
        bbox_to_anchor=(1 - 0.2 / width, 1 - 0.12 / height),
        ncols=2,
        frameon=False,
        fontsize=10,
        labelcolor=INK,
    )
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([60])
        elif isinstance(handle, Line2D):
            handle.set(linewidth=min(max(handle.get_linewidth(), 1.0), 5.0), alpha=1.0)
