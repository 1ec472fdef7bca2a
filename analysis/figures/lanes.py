"""Lanes of overlay links: each follows its underlay route, beside the others on the same link.

The width of a physical link shows the number of overlay links on it.
Coordinates are units of the picture. Lanes end at the centre of peers and turn at routers
in an arc.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from topologies.layout import Point, Positions

Crossing = tuple[str, str]
Route = Sequence[str]

_ARC = np.linspace(0, 1, 9)[:, None]
_LONG_ARC = np.linspace(0, 1, 33)[:, None]
_LONGEST_TURN = 0.4  # share of a link's length, at either end


@dataclass(frozen=True)
class LaneWidths:
    """Distance of lanes, maximum width of all lanes of one link, and length of turns."""

    pitch: float
    widest: float
    turn: float

    def pitch_of(self, count: int) -> float:
        """The distance between lanes on a link with `count` lanes."""
        return min(self.pitch, self.widest / count)

    def total(self, count: int) -> float:
        """The width of `count` lanes together."""
        return min(self.pitch * count, self.widest)


def lane_counts(routes: Sequence[Route]) -> dict[Crossing, int]:
    """The number of routes across each link, in both directions together."""
    return {link: len(lanes) for link, lanes in _lanes_by_link(routes).items()}


def lay_lanes(positions: Positions, routes: Sequence[Route], widths: LaneWidths) -> list[Point]:
    """The points of the lane of each route, from the first node to the last."""
    shifts = _shifts(_lanes_by_link(routes), widths)
    return [
        _lane([positions[name] for name in route], _along(route, shifts[number]), widths.turn)
        for number, route in enumerate(routes)
    ]


def bow(start: Point, end: Point, height: float = 0.12) -> Point:
    """An arc from one point to another; its height is a share of the distance."""
    along = end - start
    top = (start + end) / 2 + height * 2 * np.array([-along[1], along[0]])
    return _curve(start, top, end, _LONG_ARC)


def crossing(a: str, b: str) -> Crossing:
    """The name of the link between two nodes, the same in both directions."""
    return (a, b) if a < b else (b, a)


def _lanes_by_link(routes: Sequence[Route]) -> dict[Crossing, list[int]]:
    lanes: defaultdict[Crossing, list[int]] = defaultdict(list)
    for number, route in enumerate(routes):
        for here, there in pairwise(route):
            lanes[crossing(here, there)].append(number)
    return dict(lanes)


def _shifts(
    lanes: Mapping[Crossing, Sequence[int]], widths: LaneWidths
) -> dict[int, dict[Crossing, float]]:
    """The distance of each route's lane from the middle of each of its links."""
    shifts: defaultdict[int, dict[Crossing, float]] = defaultdict(dict)
    for link, numbers in lanes.items():
        pitch = widths.pitch_of(len(numbers))
        for place, number in enumerate(numbers):
            shifts[number][link] = (place - (len(numbers) - 1) / 2) * pitch
    return shifts


def _along(route: Route, shift: Mapping[Crossing, float]) -> list[float]:
    return [shift[crossing(here, there)] for here, there in pairwise(route)]


@dataclass(frozen=True)
class _Stretch:
    """The straight part of a lane on one link, and its distance from the middle of the link."""

    start: Point
    end: Point
    aside: Point


def _lane(places: Sequence[Point], shifts: Sequence[float], turn: float) -> Point:
    """A lane along some points, beside the straight lines between them."""
    stretches = [
        _stretch(here, there, shift, turn)
        for (here, there), shift in zip(pairwise(places), shifts, strict=True)
    ]
    pieces = [places[0][None, :], stretches[0].start[None, :]]
    for (before, after), router in zip(pairwise(stretches), places[1:-1], strict=True):
        corner = router + (before.aside + after.aside) / 2
        pieces.append(_curve(before.end, corner, after.start, _ARC))
    pieces += [stretches[-1].end[None, :], places[-1][None, :]]
    return np.concatenate(pieces)


def _stretch(here: Point, there: Point, shift: float, turn: float) -> _Stretch:
    """The straight part of a lane on one link.

    Lanes are counted from the same side for all links that go the same way across the picture, so
    that they seldom change sides at a router.
    """
    along = there - here
    length = float(np.hypot(*along)) or 1.0
    facing = 1.0 if (along[0], along[1]) > (0.0, 0.0) else -1.0
    aside = facing * np.array([-along[1], along[0]]) / length * shift
    cut = min(_LONGEST_TURN, turn / length) * along
    return _Stretch(here + aside + cut, there + aside - cut, aside)


def _curve(start: Point, corner: Point, end: Point, steps: Point) -> Point:
    """A parabola whose tangents at both ends go through the corner."""
    curve: Point = (1 - steps) ** 2 * start + 2 * steps * (1 - steps) * corner + steps**2 * end
    return curve
