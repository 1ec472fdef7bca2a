"""Graphs with attributes from GML and GraphML, and the delays of their links.

A link's own delay is used if it has a unit. Otherwise the delay is that of
light in fibre along the great circle between the two ends (the Topology Zoo has latitudes
and longitudes). A link with an end that has no place gets the default delay that the user
gave, or else the median of the delays of the other links.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from topologies.delays import US_PER_UNIT, parse_delay
from topologies.errors import TopologyError
from topologies.importers.draft import Draft, DraftRouter
from topologies.importers.options import ImportOptions
from topologies.importers.source_file import SourceFile
from topologies.underlay import Underlay

FIBRE_US_PER_KM = 5.0
EARTH_RADIUS_KM = 6371.0

_GEOGRAPHIC = (("longitude", "latitude"), ("lon", "lat"))
_DELAY_NAMES = ("delay", "latency")
_SPEED_NAMES = ("linkspeedraw", "linkspeed", "bandwidth")
_NAMES_IN_A_NOTE = 8


@dataclass(frozen=True, slots=True)
class Text:
    """The text of an attribute, and its line."""

    value: str
    line: int


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node with its attributes."""

    key: str
    line: int
    attributes: Mapping[str, Text]


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge with its attributes."""

    source: str
    target: str
    line: int
    attributes: Mapping[str, Text]


@dataclass(frozen=True, slots=True)
class AttributedGraph:
    """Nodes and edges in the order of the file."""

    is_directed: bool
    nodes: list[GraphNode]
    edges: list[GraphEdge]


@dataclass(frozen=True, slots=True)
class _Place:
    """Coordinates of a node; delays are computed from geographic ones only."""

    x: float
    y: float
    is_geographic: bool


def build_underlay(
    source: SourceFile, format: str, graph: AttributedGraph, options: ImportOptions
) -> Underlay:
    """The underlay of a graph, with a delay on every link."""
    draft = Draft(source, format)
    places = _places(source, graph.nodes)
    positions = _positions(graph, places)
    for node in graph.nodes:
        label = _label(node)
        x, y = positions[node.key]
        draft.add_router(node.line, node.key, DraftRouter(label, x, y))
    delays_us = [_delay_us(source, edge, places) for edge in graph.edges]
    fallback_us = _fallback_delay_us(draft, graph.edges, delays_us, options)
    for edge, delay_us in zip(graph.edges, delays_us, strict=True):
        add = draft.add_direction if graph.is_directed else draft.add_link
        add(edge.line, edge.source, edge.target, fallback_us if delay_us is None else delay_us)
    _note_places(draft, graph, places)
    return draft.finish()


def great_circle_km(
    longitude_a: float, latitude_a: float, longitude_b: float, latitude_b: float
) -> float:
    """The distance along the ground between two places given in degrees (haversine formula)."""
    phi_a, phi_b = math.radians(latitude_a), math.radians(latitude_b)
    half_delta = math.radians(longitude_b - longitude_a) / 2
    chord = math.sin((phi_b - phi_a) / 2) ** 2
    chord += math.cos(phi_a) * math.cos(phi_b) * math.sin(half_delta) ** 2
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(1.0, chord)))


def _label(node: GraphNode) -> str:
    attributes = {name.lower(): text for name, text in node.attributes.items()}
    named = (attributes[name].value for name in ("label", "name") if name in attributes)
    return next((label for label in named if label), node.key)


def _places(source: SourceFile, nodes: Iterable[GraphNode]) -> dict[str, _Place]:
    """The place of each node that has one."""
    places = ((node.key, _place(source, node)) for node in nodes)
    return {key: place for key, place in places if place is not None}


def _place(source: SourceFile, node: GraphNode) -> _Place | None:
    attributes = {name.lower(): text for name, text in node.attributes.items()}
    for names in (*_GEOGRAPHIC, ("x", "y")):
        if all(name in attributes for name in names):
            texts = [(name, attributes[name]) for name in names]
            x, y = (source.number(text.line, f"the {name}", text.value) for name, text in texts)
            if names == ("x", "y"):
                return _Place(x, y, is_geographic=False)
            _check_degrees(source, texts, x, y)
            return _Place(x, y, is_geographic=True)
    return None


def _check_degrees(
    source: SourceFile, texts: list[tuple[str, Text]], longitude: float, latitude: float
) -> None:
    for (name, text), value, limit in zip(texts, (longitude, latitude), (360, 90), strict=True):
        if abs(value) > limit:
            raise source.error(
                text.line, f"the {name} in degrees, at most {limit}", text.value, "correct it"
            )


def _positions(
    graph: AttributedGraph, places: Mapping[str, _Place]
) -> dict[str, tuple[float, float]]:
    """The position of each node in pictures; a node without a place is among its neighbours."""
    neighbours: dict[str, list[_Place]] = {node.key: [] for node in graph.nodes}
    for edge in graph.edges:
        for end, other in ((edge.source, edge.target), (edge.target, edge.source)):
            if end in neighbours and other in places:
                neighbours[end].append(places[other])
    everywhere = list(places.values())
    return {
        key: _middle([places[key]] if key in places else neighbours[key] or everywhere)
        for key in neighbours
    }


def _middle(places: list[_Place]) -> tuple[float, float]:
    count = max(len(places), 1)
    return sum(place.x for place in places) / count, sum(place.y for place in places) / count


def _delay_us(source: SourceFile, edge: GraphEdge, places: Mapping[str, _Place]) -> int | None:
    """The delay of a link from the file: its own, or that of the distance of its ends."""
    for name, text in edge.attributes.items():
        quantity, _, unit = name.lower().partition("_")
        if quantity in _DELAY_NAMES and unit in US_PER_UNIT:
            return source.delay_us(text.line, name, text.value, US_PER_UNIT[unit])
        if quantity in _DELAY_NAMES and not unit:
            return _delay_with_unit_us(source, name, text)
    ends = [places.get(edge.source), places.get(edge.target)]
    a, b = (place if place and place.is_geographic else None for place in ends)
    if a is None or b is None:
        return None
    return round(great_circle_km(a.x, a.y, b.x, b.y) * FIBRE_US_PER_KM)


def _delay_with_unit_us(source: SourceFile, name: str, text: Text) -> int:
    try:
        return parse_delay(text.value, name)
    except TopologyError as error:
        raise TopologyError(
            f"{source.path}, line {text.line}: {error}, or use the key {name}_ms"
        ) from error


def _fallback_delay_us(
    draft: Draft,
    edges: list[GraphEdge],
    delays_us: list[int | None],
    options: ImportOptions,
) -> int:
    """The delay of links without one in the file; a note is added if it is used."""
    real_us = [
        delay_us
        for edge, delay_us in zip(edges, delays_us, strict=True)
        if edge.source != edge.target
    ]
    known_us = [delay_us for delay_us in real_us if delay_us is not None]
    missing = len(real_us) - len(known_us)
    if not missing:
        return 0
    if options.default_delay_us is not None:
        draft.notes.append(
            f"{missing} links have no delay in the file and get the default of "
            f"{options.default_delay_us} us"
        )
        return options.default_delay_us
    if not known_us:
        raise draft.source.error(
            edges[0].line,
            "a delay, or ends with latitude and longitude",
            "neither on any link",
            'write delay "5ms" or delay_ms 5 on the links, or give --default-delay',
        )
    delay_us = round(median(known_us))
    draft.notes.append(
        f"{missing} links have no delay in the file and get the median of the others, {delay_us} us"
    )
    return delay_us


def _note_places(draft: Draft, graph: AttributedGraph, places: Mapping[str, _Place]) -> None:
    if any(place.is_geographic for place in places.values()):
        draft.notes.append(
            f"delays without a value in the file are those of the great circle in fibre, "
            f"{FIBRE_US_PER_KM:g} us/km"
        )
    strays = [_label(node) for node in graph.nodes if node.key not in places]
    if places and strays:
        shown = ", ".join(strays[:_NAMES_IN_A_NOTE])
        more = ", …" if len(strays) > _NAMES_IN_A_NOTE else ""
        draft.notes.append(
            f"{len(strays)} of {len(graph.nodes)} routers have no coordinates and are drawn among "
            f"their neighbours: {shown}{more}"
        )
    if any(name.lower() in _SPEED_NAMES for edge in graph.edges for name in edge.attributes):
        draft.notes.append("link speeds are not used: links have no rate limit")
