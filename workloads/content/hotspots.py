"""Regions of interest, and the widths of ranges in them for a given share of matches.

A region has a share of all subscriptions and of all events, and a probability of each value of each
attribute. `uniform` is one region in which all values are equally likely; `zipf` is five regions
around hotspots, which are random points. Zipf's law gives the popularity of hotspots by rank, and
the probability of a value by its distance d from the hotspot: proportional to 1 / (d + 1) ** skew.

The paper's hotspots are of interest only; `assign_by_place` also gives them places, so that peers
that are close to each other share a hotspot.

A range has a middle and a radius, and is cut at the ends of the domain. In the uniform region,
middles may be outside of the domain; so values at its ends are in as many ranges as others, and
all events are equally likely to match.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, dist, log
from random import Random
from typing import Literal, NamedTuple, get_args

from workloads.content.subscription import HIGHEST, VALUES, ContentError

WorkloadKind = Literal["uniform", "zipf"]
Radii = Literal["fitted", "equal"]
KINDS: tuple[str, ...] = get_args(WorkloadKind)
Weights = tuple[float, ...]
Place = tuple[float, float]

HOTSPOTS = 5
_POPULARITY_SKEW = 1
# With 1, as for popularity, subscriptions would have less in common than uniform ones, because five
# regions of that width fill the space.
_DISTANCE_SKEW = 2
WIDEST = VALUES  # a radius that covers the whole domain from any middle
# Largest share of the domain in a range, if attributes can be left out instead.
_USUAL_COVERAGE = 1 / 3
_NARROW = 0.001  # a radius that counts as 0
# Largest radius of a single region, so that its few subscriptions do not match all events.
_BROAD = 4
_ROUNDS, _HALVINGS = 8, 16  # tolerance: a hundredth of the given share


class Fit(NamedTuple):
    """The number of attributes of a subscription, and the radius of its ranges in each region.

    A radius of 2.25 means 2 in three of four cases, and 3 in the fourth.
    """

    restricted: int
    radii: list[float]


@dataclass(frozen=True, slots=True)
class Region:
    """A share of subscriptions and events, and the weights of the values of each attribute."""

    share: float
    values: tuple[Weights, ...]
    is_unbounded: bool  # middles of ranges may be outside of the domain

    def middles(self, attribute: int, radius: int) -> tuple[range, Weights]:
        """The possible middles of ranges of a radius, with their weights."""
        if not self.is_unbounded or radius >= WIDEST:
            return range(VALUES), self.values[attribute]
        places = range(-radius, VALUES + radius)
        return places, (1.0,) * len(places)


@dataclass(frozen=True, slots=True)
class _Scene:
    """All that determines the share of subscriptions that an event matches, except the radii.

    `chances` has, for the region of an event, that of a subscription, an attribute and a radius,
    the chance that the value is in the range.
    """

    regions: list[Region]
    chances: list[list[list[Weights]]]
    restricted: int

    def share(self, own: int, radii: list[float]) -> float:
        """The share of all subscriptions that an event of one region matches."""
        parts = zip(self.regions, self.chances[own], radii, strict=True)
        return sum(
            region.share * _all_of_some([_between(c, radius) for c in chances], self.restricted)
            for region, chances, radius in parts
        )

    def average(self, radii: list[float]) -> float:
        """The share that any event matches."""
        return sum(r.share * self.share(own, radii) for own, r in enumerate(self.regions))


def make_regions(kind: str, attributes: int, chance: Random) -> list[Region]:
    """The regions of a kind of workload."""
    if kind not in KINDS:
        raise ContentError(f"workload: expected one of {', '.join(KINDS)}, found {kind!r}")
    if kind == "uniform":
        return [Region(1.0, ((1.0,) * VALUES,) * attributes, is_unbounded=True)]
    popularity = [1 / rank**_POPULARITY_SKEW for rank in range(1, HOTSPOTS + 1)]
    return [
        Region(part / sum(popularity), _around_a_point(attributes, chance), is_unbounded=False)
        for part in popularity
    ]


def fit_ranges(regions: list[Region], match: float, kind: Radii = "fitted") -> Fit:
    """Ranges with which an event matches this share of all subscriptions on average.

    The events of each region match this share as well, if possible. If not, because the share is
    large and a region has few subscriptions, ranges of all regions become wider together. Ranges
    of `equal` radii have the same width in all regions, so events of a popular region match more.
    """
    attributes = len(regions[0].values)
    chances = [[_chances(events, ranges) for ranges in regions] for events in regions]
    nothing = [0.0] * len(regions)
    usual = round(log(match) / log(_USUAL_COVERAGE))
    for restricted in range(min(max(usual, 1), attributes), attributes + 1):
        scene = _Scene(regions, chances, restricted)
        radii = _solve(scene, match) if kind == "fitted" else _balance(scene, nothing, match)
        if min(radii) > _NARROW:
            break  # otherwise use more attributes, if there are more
    lowest = scene.average(nothing)
    if lowest > match:
        raise ContentError(
            f"workload: match: expected at least {lowest:.4g}, which is what the narrowest ranges "
            f"over {attributes} attributes give, found {match}"
        )
    return Fit(restricted, _balance(scene, radii, match))


def assign_by_place(regions: list[Region], places: Sequence[Place], chance: Random) -> list[int]:
    """A region for each peer, so that the peers of a region are close to each other.

    The most popular region comes first. Each begins at a random peer, and takes its share of all
    peers: the nearest ones without a region.
    """
    free, owner = list(range(len(places))), [0] * len(places)
    for number, region in enumerate(regions):
        if not free:
            break
        middle = places[chance.choice(free)]
        free.sort(key=lambda peer: (dist(places[peer], middle), peer))
        is_last = number == len(regions) - 1
        count = len(free) if is_last else round(region.share * len(places))
        for peer in free[:count]:
            owner[peer] = number
        free = free[count:]
    return owner


def _around_a_point(attributes: int, chance: Random) -> tuple[Weights, ...]:
    centre = [chance.randrange(VALUES) for _ in range(attributes)]
    return tuple(
        tuple(1 / (abs(value - middle) + 1) ** _DISTANCE_SKEW for value in range(VALUES))
        for middle in centre
    )


def _solve(scene: _Scene, match: float) -> list[float]:
    """The radii with which the events of every region match this share, or come close."""
    radii = [0.0] * len(scene.regions)
    for _ in range(_ROUNDS if len(radii) > 1 else 1):  # each region depends on all others
        for own in range(len(radii)):

            def share_with(radius: float, own: int = own) -> float:
                return scene.share(own, [*radii[:own], radius, *radii[own + 1 :]])

            radii[own] = _where_it_reaches(match, share_with, 0, _BROAD)
    return radii


def _balance(scene: _Scene, radii: list[float], match: float) -> list[float]:
    """The radii, all changed by one amount, so that the average is the given share."""

    def moved(by: float) -> list[float]:
        return [min(max(radius + by, 0.0), float(WIDEST)) for radius in radii]

    by = _where_it_reaches(match, lambda by: scene.average(moved(by)), -WIDEST, WIDEST)
    return moved(by)


def _where_it_reaches(
    goal: float, growing: Callable[[float], float], low: float, high: float
) -> float:
    """The argument at which a growing function has a value, or the nearest end."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if growing(middle) > goal else (middle, high)
    return (low + high) / 2


def _all_of_some(chances: list[float], restricted: int) -> float:
    """The probability of `restricted` random ones of some independent events.

    It is the elementary symmetric polynomial, divided by the number of its terms.
    """
    sums = [1.0] + [0.0] * restricted
    for chance in chances:
        for size in range(restricted, 0, -1):
            sums[size] += sums[size - 1] * chance
    return sums[restricted] / comb(len(chances), restricted)


def _between(chances: Weights, radius: float) -> float:
    whole = min(int(radius), WIDEST - 1)
    return chances[whole] + (radius - whole) * (chances[whole + 1] - chances[whole])


def _chances(events: Region, ranges: Region) -> list[Weights]:
    """For each attribute and radius, the chance that a value of an event is in a range."""
    return [
        tuple(_chance(events.values[a], *ranges.middles(a, r), r) for r in range(WIDEST + 1))
        for a in range(len(events.values))
    ]


def _chance(values: Weights, places: range, weights: Weights, radius: int) -> float:
    hits = 0.0
    for middle, weight in zip(places, weights, strict=True):
        hits += weight * sum(values[max(0, middle - radius) : min(HIGHEST, middle + radius) + 1])
    return hits / (sum(values) * sum(weights))
