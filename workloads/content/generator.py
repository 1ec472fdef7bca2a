"""Subscriptions and events of content-based workloads (Tariq, Koldehofe and Rothermel,
"Efficient content-based routing with network topology inference", DEBS 2013, section 6):
independent at random (`uniform`), or around hotspots (`zipf`).

The paper says that each event matches 5 % of the subscriptions, but not how this is achieved. Here
the width of ranges in each region (`hotspots`) follows from that share, so ranges are narrow in
popular regions; with equal radii they have the same width everywhere. Each event is the best of a
few drawn in its region: the one that brings the mean share of all events closest to the given one.

Everything follows from the seed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import NamedTuple

from workloads.content.hotspots import (
    Fit,
    Place,
    Radii,
    Region,
    assign_by_place,
    fit_ranges,
    make_regions,
)
from workloads.content.matching import MatchIndex
from workloads.content.subscription import (
    ATTRIBUTES,
    HIGHEST,
    VALUES,
    ContentError,
    Point,
    Range,
    Subscription,
    make_point,
    subscribe,
)

# Points drawn for each event. More points would bring each event closer to the share, and
# farther from the distribution of its region: uniform events should be independent.
_CANDIDATES = {"uniform": 2, "zipf": 4}


class Publication(NamedTuple):
    """An event, and the peer that publishes it, counted from 0."""

    publisher: int
    point: Point


@dataclass(frozen=True, slots=True)
class DrawnContent:
    """The subscriptions of each peer, and the events in the order of publication."""

    subscriptions: tuple[tuple[Subscription, ...], ...]
    events: tuple[Publication, ...]

    def index(self) -> MatchIndex[int]:
        """All subscriptions, each owned by its peer."""
        index: MatchIndex[int] = MatchIndex()
        for peer, held in enumerate(self.subscriptions):
            for subscription in held:
                index.add(peer, subscription)
        return index

    def receivers(self) -> Iterator[tuple[int, ...]]:
        """For each event the peers with a subscription that matches, the publisher among them."""
        index = self.index()
        return (tuple(index.owners(event.point)) for event in self.events)


def make_workload(
    kind: str,
    seed: int | str,
    peers: int,
    subscriptions_per_peer: int = 1,
    events: int = 2_000,
    match: float = 0.05,
    attributes: int = ATTRIBUTES,
    radii: Radii = "fitted",
    places: Sequence[Place] = (),
) -> DrawnContent:
    """A workload in which each event matches the share `match` of all subscriptions on average.

    With `places`, one for each peer, the subscriptions of a hotspot belong to peers close by.
    """
    _check(peers, subscriptions_per_peer, events, match, attributes)
    regions = make_regions(kind, attributes, Random(f"{seed}/hotspots"))
    fit, drawing = fit_ranges(regions, match, radii), Random(f"{seed}/subscriptions")
    owner = assign_by_place(regions, places, Random(f"{seed}/places")) if places else [None] * peers
    held = tuple(
        tuple(_draw_subscription(regions, fit, own, drawing) for _ in range(subscriptions_per_peer))
        for own in owner
    )
    chance = Random(f"{seed}/events")
    points = _draw_points(regions, held, match, _CANDIDATES[kind], chance)
    made = tuple(Publication(chance.randrange(peers), next(points)) for _ in range(events))
    return DrawnContent(held, made)


def _draw_subscription(
    regions: list[Region], fit: Fit, own: int | None, chance: Random
) -> Subscription:
    """A subscription in one of the regions, or in any."""
    if own is None:
        (own,) = chance.choices(range(len(regions)), [region.share for region in regions])
    region = regions[own]
    mentioned = chance.sample(range(len(region.values)), fit.restricted)
    return subscribe({a: _draw_range(region, a, fit.radii[own], chance) for a in mentioned})


def _draw_range(region: Region, attribute: int, radius: float, chance: Random) -> Range:
    whole = int(radius)
    whole += chance.random() < radius - whole
    places, weights = region.middles(attribute, whole)
    (middle,) = chance.choices(places, weights)
    return max(0, middle - whole), min(HIGHEST, middle + whole)


def _draw_points(
    regions: list[Region],
    held: tuple[tuple[Subscription, ...], ...],
    match: float,
    candidates: int,
    chance: Random,
) -> Iterator[Point]:
    index: MatchIndex[int] = MatchIndex()
    for serial, subscription in enumerate(chain.from_iterable(held)):
        index.add(serial, subscription)  # a peer may have drawn the same twice
    shares = [region.share for region in regions]
    owed = 0.0  # matches, until the average is right
    while True:
        owed += match * len(index)
        (region,) = chance.choices(regions, shares)
        columns = [chance.choices(range(VALUES), w, k=candidates) for w in region.values]
        points = [make_point(values) for values in zip(*columns, strict=True)]
        counts = [index.count(point) for point in points]
        best = min(range(candidates), key=lambda at: abs(counts[at] - owed))
        owed -= counts[best]
        yield points[best]


def _check(peers: int, per_peer: int, events: int, match: float, attributes: int) -> None:
    wrong = [
        f"{name}: expected {expected}, found {found}"
        for name, is_right, expected, found in (
            ("peers", peers >= 1, "at least 1", peers),
            ("subscriptions_per_peer", per_peer >= 0, "at least 0", per_peer),
            ("events", events >= 0, "at least 0", events),
            ("match", 0 < match <= 1, "more than 0 and at most 1", match),
            ("attributes", 1 <= attributes <= ATTRIBUTES, f"1 to {ATTRIBUTES}", attributes),
        )
        if not is_right
    ]
    if wrong:
        raise ContentError(f"workload: {wrong[0]}")
