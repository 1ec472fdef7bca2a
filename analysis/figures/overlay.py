"""The discovery overlay over its underlay, in one picture.

The underlay is at the bottom: links that probing found are broad and blue, all others hairlines.
Overlay links are above it, each along its underlay route. Overlay and underlay look
alike where discovery succeeded, and the number of lanes on a link shows its stress.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from analysis.figures.lanes import LaneWidths, Route, bow, crossing, lane_counts, lay_lanes
from analysis.metrics.discovery import discovered_links
from analysis.metrics.found_links import find_links
from analysis.metrics.measured_overlay import MeasuredOverlay
from analysis.metrics.overlay import overlay_rdp, stress_ratio
from analysis.overlay import Overlay, PeerLink
from analysis.run_directory import open_run
from analysis.unicast import Unicast
from topologies.layout import Point, typical_gap
from topologies.picture import (
    INK,
    LOOKS,
    MOST_NAMED_NODES,
    Canvas,
    draw_heading,
    draw_names,
    draw_nodes,
    open_canvas,
    write_figure,
)
from topologies.underlay import Link, Underlay

_HEADING_INCHES = 1.25
_FOUND, _NOT_FOUND = "#A9D3EE", "#C4C8CE"
_OVERLAY, _DISTANT = "#D55E00", "#8E5A9E"
_ROUTER = "#8A929C"
# Peers are emphasised; routers only show where peers are.
_LOOKS = tuple(
    replace(look, size=look.size * 1.7)
    if look.kind == "host"
    else replace(look, colour=_ROUTER, size=look.size * 0.45)
    for look in LOOKS
)
_LANE_POINTS, _THINNEST_LANE = 2.4, 0.2
_THINNEST_BAND, _WIDEST_BAND = 0.25, 4.0  # points
_MOST_LANES = 1_000
_CROWD_OF_DISTANT = 64


def draw_overlay(run: Path, out: Path) -> None:
    """Draw the overlay that a run ended with into an .svg, .png or .pdf file."""
    recorded = open_run(run)
    write_figure(partial(compose_overlay, recorded.underlay, recorded.overlay), out)


def compose_overlay(underlay: Underlay, overlay: Overlay) -> Figure:
    """The picture of an overlay, not written to a file."""
    canvas = open_canvas(underlay, _HEADING_INCHES)
    unicast = Unicast(underlay, overlay.peers)
    ways = [unicast.routes.path(a, b) for a, b in sorted(overlay.near)]
    found, others = _split_by_discovery(unicast, overlay)
    label = f"{len(others):,} links not discovered"
    thin = max(0.3, canvas.scale * 0.02)
    _draw_curves(canvas, _straight(canvas, others), _NOT_FOUND, thin, 0.8, 1, label)
    draw_links_in_use = _draw_lanes if len(ways) <= _MOST_LANES else _draw_bands
    draw_links_in_use(canvas, found, ways)
    _draw_distant(canvas, overlay.distant)
    draw_nodes(canvas, _LOOKS)
    _draw_lonely_hosts(canvas, overlay)
    if len(canvas.positions) <= MOST_NAMED_NODES:
        draw_names(canvas)
    headlines = _headlines(MeasuredOverlay(unicast, overlay))
    draw_heading(canvas, "Topology discovery overlay", *headlines)
    return canvas.figure


def overlay_lines(unicast: Unicast, overlay: Overlay) -> Iterator[tuple[str, str, str]]:
    """The ends of every line of the picture, and its meaning."""
    found, others = _split_by_discovery(unicast, overlay)
    yield from ((link.a, link.b, "link discovered") for link in found)
    yield from ((link.a, link.b, "link not discovered") for link in others)
    yield from ((a, b, "overlay link") for a, b in sorted(overlay.near))
    yield from ((a, b, "distant link") for a, b in sorted(overlay.distant))


def _split_by_discovery(unicast: Unicast, overlay: Overlay) -> tuple[list[Link], list[Link]]:
    """The links that inferred routes show, and all others."""
    groups: tuple[list[Link], list[Link]] = ([], [])
    is_found = find_links(unicast, overlay.inferred).true.tolist()
    for link, is_in in zip(unicast.underlay.links, is_found, strict=True):
        groups[0 if is_in else 1].append(link)
    return groups


def _draw_lanes(canvas: Canvas, found: Sequence[Link], ways: Sequence[Route]) -> None:
    """Draw discovered links as broad lines, and every overlay link as a lane."""
    counts = lane_counts(ways)
    widths = _lane_widths(canvas, list(counts.values()))
    margin = canvas.scale * 0.09
    road_widths = [
        margin + widths.total(counts.get(crossing(link.a, link.b), 0)) * canvas.points_per_unit
        for link in found
    ]
    label = f"{len(found):,} links discovered"
    _draw_curves(canvas, _straight(canvas, found), _FOUND, road_widths, 1.0, 2, label)
    lanes = lay_lanes(canvas.positions, ways, widths)
    width = max(_THINNEST_LANE, 0.5 * widths.pitch * canvas.points_per_unit)
    _draw_curves(canvas, lanes, _OVERLAY, width, 0.9, 3, f"{len(ways):,} overlay links")


def _lane_widths(canvas: Canvas, counts: Sequence[int]) -> LaneWidths:
    """Widths at which lanes can be distinguished on nearly all links, and links fit the picture."""
    gap = typical_gap(canvas.positions)
    widest = 0.5 * gap
    crowd = float(np.percentile(counts, 90)) if counts else 1.0
    pitch = min(_LANE_POINTS / canvas.points_per_unit, 0.12 * gap, widest / crowd)
    return LaneWidths(pitch, widest, turn=0.5 * gap)


def _draw_bands(canvas: Canvas, found: Sequence[Link], ways: Sequence[Route]) -> None:
    """Draw a line for each link, with a width by its number of lanes; for too many lanes to see."""
    label = f"{len(found):,} links discovered"
    _draw_curves(canvas, _straight(canvas, found), _FOUND, 0.6, 0.9, 2, label)
    counts = sorted(lane_counts(ways).items(), key=lambda item: -item[1])
    most = counts[0][1]
    lines = [np.array([canvas.positions[a], canvas.positions[b]]) for (a, b), _ in counts]
    widths = [max(_THINNEST_BAND, _WIDEST_BAND * count / most) for _, count in counts]
    label = f"{len(ways):,} overlay links, up to {most:,} on one link"
    _draw_curves(canvas, lines, _OVERLAY, widths, 0.7, 3, label)


def _straight(canvas: Canvas, links: Iterable[Link]) -> list[Point]:
    return [np.array([canvas.positions[link.a], canvas.positions[link.b]]) for link in links]


def _draw_distant(canvas: Canvas, links: Iterable[PeerLink]) -> None:
    """Distant links keep the overlay connected; they follow no route."""
    arcs = [bow(canvas.positions[a], canvas.positions[b]) for a, b in sorted(links)]
    is_crowd = len(arcs) > _CROWD_OF_DISTANT
    width, opacity = (0.4, 0.3) if is_crowd else (0.8, 0.7)
    label = f"{len(arcs):,} distant links"
    _draw_curves(canvas, arcs, _DISTANT, width, opacity, 4, label, dashes=(0, (6, 5)))


def _draw_lonely_hosts(canvas: Canvas, overlay: Overlay) -> None:
    """A cross on every host whose agent ended before the run."""
    hosts = {host.name for host in canvas.underlay.hosts} - set(overlay.peers)
    if hosts:
        x, y = np.array([canvas.positions[name] for name in sorted(hosts)]).T
        size = (0.32 * canvas.scale) ** 2
        label = f"{len(hosts):,} without a peer"
        canvas.axes.scatter(x, y, s=size, c=INK, marker="x", zorder=12, label=label)


def _draw_curves(
    canvas: Canvas,
    curves: Sequence[Point],
    colour: str,
    width: float | Sequence[float],
    opacity: float,
    layer: int,
    label: str,
    dashes: Any = "solid",
) -> None:
    if not curves:
        return  # no legend entry without curves
    collection = LineCollection(
        list(curves), colors=colour, linewidths=width, alpha=opacity, zorder=layer,
        label=label, linestyles=dashes, capstyle="round" if dashes == "solid" else "butt",
    )  # fmt: skip
    canvas.axes.add_collection(collection, autolim=False)


def _headlines(measured: MeasuredOverlay) -> Iterator[str]:
    """The metrics of the overlay that the run has."""
    routers = measured.unicast.underlay.routers
    yield f"{len(measured.overlay.peers):,} peers on {len(routers):,} routers"
    if measured.why_missing():
        return
    share, rdp = discovered_links(measured), overlay_rdp(measured)
    if share is not None:
        yield f"{100 * share:.0f} % of the links between peers discovered"
    if rdp is not None:
        yield f"RDP {rdp['mean']:.2f} · stress ratio {stress_ratio(measured):.2f}"
