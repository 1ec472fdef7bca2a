"""Pictures of underlays: who is what, and what is next to what, at 20 nodes and at 1,600.

Colours are those of Okabe and Ito, which colour-blind people tell apart; shapes and sizes
tell the same once more.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure

from topologies.errors import TopologyError
from topologies.layout import Positions, place_nodes, typical_gap
from topologies.underlay import Link, Router, Underlay

MOST_NAMED_NODES = 64

# What each kind of file would otherwise say about when and by what it was written.
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
_INK, _PAPER, _LINE = "#222222", "#ffffff", "#8a8f98"
_HOST_COLOUR = "#009E73"
_LONGEST_LABEL = 12
_CROWD_OF_LINKS = 500


@dataclass(frozen=True)
class _Look:
    """How nodes of one kind are drawn; `size` is relative to a plain router."""

    kind: str
    colour: str
    size: float
    layer: int
    marker: str = "o"


_LOOKS = (
    _Look("transit router", "#D55E00", 1.0, 6, "s"),
    _Look("stub router", "#0072B2", 1.0, 4),
    _Look("router", "#0072B2", 1.0, 4),
    _Look("anonymous router", "#CC79A7", 1.3, 5, "X"),
    _Look("host", _HOST_COLOUR, 0.62, 3, "^"),
)


def draw(underlay: Underlay, path: Path) -> None:
    """Draw an underlay into an .svg, .png or .pdf file."""
    extension = path.suffix.lower()
    if extension not in _SILENT_METADATA:
        raise TopologyError(
            f"picture {path}: expected a name that ends in {', '.join(_SILENT_METADATA)}, "
            f"found {path.suffix or 'no extension'}; rename it"
        )
    with matplotlib.rc_context(_SETTINGS):
        figure = compose_figure(underlay)
        figure.savefig(path, dpi=150, metadata=_SILENT_METADATA[extension])


def compose_figure(underlay: Underlay) -> Figure:
    """The picture of an underlay, not yet written anywhere."""
    positions = place_nodes(underlay)
    figure, axes = _empty_axes(positions)
    scale = _scale(axes, underlay, positions)
    _draw_links(axes, underlay, positions, scale)
    _draw_nodes(axes, underlay, positions, scale)
    if len(positions) <= MOST_NAMED_NODES:
        _draw_names(axes, underlay, positions, scale)
    _draw_title_and_legend(figure, underlay)
    return figure


def _empty_axes(positions: Positions) -> tuple[Figure, Axes]:
    """A figure of the proportions of the positions, with room for a title."""
    points = np.array(list(positions.values()))
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.05 * float(max(high - low)) or 1.0
    width, height = high - low + 2 * margin
    side = 8.0 if len(positions) <= MOST_NAMED_NODES else 13.0
    inches = side / min(width, height) * np.array([width, height]) + (0, _TITLE_INCHES)
    figure = Figure(figsize=(inches[0], inches[1]), facecolor=_PAPER)
    axes = figure.add_axes((0, 0, 1, 1 - _TITLE_INCHES / inches[1]))
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)
    axes.set_axis_off()
    return figure, axes


def _scale(axes: Axes, underlay: Underlay, positions: Positions) -> float:
    """The size of things in typographic points: about the distance between two routers."""
    if len(underlay.routers) == 1:
        return _EXCHANGE_SCALE
    gap = typical_gap({router.name: positions[router.name] for router in underlay.routers})
    left, right = axes.transData.transform([(0, 0), (gap, 0)])[:, 0]
    points = (right - left) * 72 / axes.figure.dpi
    return float(min(max(2 * points, _SMALLEST_SCALE), _LARGEST_SCALE))


def _draw_links(axes: Axes, underlay: Underlay, positions: Positions, scale: float) -> None:
    is_transit = {router.name: router.role == "transit" for router in underlay.routers}
    groups: dict[str, list[Link]] = {"last-mile": [], "plain": [], "access": [], "transit": []}
    for link in underlay.links:
        ends = is_transit.get(link.a, False) + is_transit[link.b]
        kind = "last-mile" if link.a in underlay.last_mile else ("plain", "access", "transit")[ends]
        groups[kind].append(link)
    thin = max(0.3, scale * 0.022)
    # Where many links cross, each has to let the others through; in stub domains few do.
    is_crowded = not groups["transit"] and len(groups["plain"]) > _CROWD_OF_LINKS
    _draw_lines(axes, groups["last-mile"], positions, _HOST_COLOUR, thin, 0.6, 1)
    _draw_lines(axes, groups["plain"], positions, _LINE, thin, 0.4 if is_crowded else 0.9, 1)
    _draw_lines(axes, groups["access"], positions, "#E69F00", thin * 1.6, 0.8, 2)
    _draw_lines(axes, groups["transit"], positions, "#D55E00", max(0.9, thin * 2), 0.6, 3)


def _draw_lines(
    axes: Axes,
    links: Iterable[Link],
    positions: Positions,
    colour: str,
    width: float,
    opacity: float,
    layer: int,
) -> None:
    segments = [np.array([positions[link.a], positions[link.b]]) for link in links]
    axes.add_collection(
        LineCollection(segments, colors=colour, linewidths=width, alpha=opacity, zorder=layer),
        autolim=False,
    )


def _kind(router: Router) -> str:
    if router.anonymous:
        return "anonymous router"
    return "router" if router.role == "router" else f"{router.role} router"


def _nodes_by_kind(underlay: Underlay) -> dict[str, list[str]]:
    """The names of the nodes of each kind that there is, in the order of the legend."""
    kinds: dict[str, list[str]] = {look.kind: [] for look in _LOOKS}
    for router in underlay.routers:
        kinds[_kind(router)].append(router.name)
    kinds["host"] = [host.name for host in underlay.hosts]
    return {kind: names for kind, names in kinds.items() if names}


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _draw_nodes(axes: Axes, underlay: Underlay, positions: Positions, scale: float) -> None:
    kinds = _nodes_by_kind(underlay)
    weights = _node_weights(underlay)
    for look in _LOOKS:
        names = kinds.get(look.kind, [])
        if not names:
            continue
        weight = np.array([weights[name] for name in names])
        points = np.array([positions[name] for name in names])
        axes.scatter(
            points[:, 0],
            points[:, 1],
            s=(0.26 * scale) ** 2 * look.size * weight,
            c=look.colour,
            marker=look.marker,
            edgecolors=_PAPER,
            linewidths=scale * 0.012,
            zorder=look.layer + 4,
            label=_count(len(names), look.kind),
            gid=look.kind.replace(" ", "-"),
        )


def _node_weights(underlay: Underlay) -> dict[str, float]:
    """How much larger than its kind each node is drawn, so that hubs stand out."""
    degree = Counter(end for link in underlay.router_links for end in (link.a, link.b))
    typical = max(1.0, float(np.mean(list(degree.values()) or [1])))
    weights = dict.fromkeys(underlay.node_names, 1.0)
    for router in underlay.routers:
        weights[router.name] = 0.6 + 0.4 * min(degree[router.name] / typical, 4.0)
        if router.role == "transit" or len(underlay.routers) == 1:
            weights[router.name] *= 2
    return weights


def _draw_names(axes: Axes, underlay: Underlay, positions: Positions, scale: float) -> None:
    labels = {router.name: router.label for router in underlay.routers}
    for name in underlay.node_names:
        label = labels.get(name, "")
        is_short = 0 < len(label) <= _LONGEST_LABEL
        axes.annotate(
            f"{name} {label}" if is_short else name,
            (positions[name][0], positions[name][1]),
            xytext=(0, 0.2 * scale),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=8 if name in labels else 7,
            color=_INK if name in labels else _HOST_COLOUR,
            bbox={"facecolor": _PAPER, "alpha": 0.6, "edgecolor": "none", "pad": 0.4},
            zorder=6,
        )


def _draw_title_and_legend(figure: Figure, underlay: Underlay) -> None:
    sizes = (
        ("router", underlay.routers),
        ("link", underlay.router_links),
        ("host", underlay.hosts),
    )
    counts = [_count(len(things), what) for what, things in sizes if things]
    name = str(underlay.source.get("generator") or underlay.source.get("file") or "underlay")
    width, height = figure.get_size_inches()
    left, top = 0.3 / width, 1 - 0.35 / height
    figure.text(left, top, name, fontsize=15, weight="bold", color=_INK, va="center")
    below = top - 0.3 / height
    figure.text(left, below, " · ".join(counts), fontsize=11, color=_INK, va="center")
    legend = figure.legend(
        loc="upper right",
        bbox_to_anchor=(1 - 0.2 / width, 1 - 0.12 / height),
        ncols=2,
        frameon=False,
        fontsize=10,
        labelcolor=_INK,
    )
    for handle in legend.legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([60])
