"""The subscriptions that a peer holds in one tree, and which of them each link is told.

A link is told what is held locally or came over any other link, without what is covered by
another that it is told (Carzaniga, Rosenblum and Wolf, ACM TOCS 19(3), 2001). Who is told of a
subscription follows from the sources of those that cover it, and does not depend on the link:

    no coverer          every link but the only source
    one source s of all coverers    link s alone, to which the coverers are not announced
    several sources     nobody

So one table serves all links of a peer. If asked to, it also merges boxes whose union is a box
(`agents.box_merger`), of those that are for every link and have no time. That is done once for all
links; one that is not to be told of all parts of a merged box is told of the others. With one
subscription at each of 1,024 peers on a random tree, links know 15 to 18 % fewer boxes in the end.
But on the way as many are announced and 75 to 80 % more withdrawn, since merged boxes grow while
subscriptions come in, and the tables take about 23 s instead of 6 to 8 s. So merging is a setting,
and off by default.

Places are bits: what a link is told is one number, and a difference is one operation.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.box_merger import Box, BoxMerger
from agents.protocol import PeerId
from agents.subscription import Point, Subscription

LOCAL: PeerId = 0  # the source of this peer's own subscriptions
_Places = tuple[int, ...]
_FREE = np.uint64(1 << 63)  # neither covers nor matches, nor is covered or matched


class Difference(NamedTuple):
    """What a link is to be told: numbers with the time since when, and numbers withdrawn."""

    added: dict[int, int]
    withdrawn: tuple[int, ...]


@dataclass(slots=True)
class Told:
    """What one link knows of: places as bits, and the times that are not 0.

    It was told some of them as the merged boxes that stand for them.
    """

    places: int = 0
    since_ms: dict[int, int] = field(default_factory=dict)
    merged: list[Box] = field(default_factory=list)

    @property
    def alone(self) -> int:
        """The places that it was told of each on its own."""
        return self.places & ~_places_of(self.merged)


@dataclass(slots=True)
class _Audience:
    """Who is to be told of some places: all of them for everybody, less or more for a few."""

    considered: int = 0
    everybody: int = 0
    but: defaultdict[PeerId, int] = field(default_factory=lambda: defaultdict(int))
    only: defaultdict[PeerId, int] = field(default_factory=lambda: defaultdict(int))
    merged: list[Box] = field(default_factory=list)  # that stand for any of these places
    stirred: int = 0  # places whose merged boxes are to be told anew

    def of(self, link: PeerId) -> int:
        return self.everybody & ~self.but.get(link, 0) | self.only.get(link, 0)


class CoverTable:
    """Subscriptions by number, each with its sources, and since when each source wants events."""

    def __init__(self, is_merging: bool = False) -> None:
        self._bits: NDArray[np.uint64] = np.full(16, _FREE, dtype=np.uint64)
        self._place_of: dict[int, int] = {}
        self._number: list[int] = []
        self._sources: list[tuple[PeerId, ...]] = []
        self._above: list[_Places] = []  # that cover this one
        self._below: list[_Places] = []  # that this one covers
        self._since_ms: dict[tuple[int, PeerId], int] = {}  # of a place and source, unless 0
        self._changed: set[int] = set()
        self._free: list[int] = []
        self._merger = BoxMerger() if is_merging else None

    def __len__(self) -> int:
        """How many different subscriptions are held."""
        return len(self._place_of)

    def add(self, source: PeerId, number: int, since_ms: int) -> None:
        """Hold a subscription of a source; of one that is held, the time is replaced."""
        place = self._place_of.get(number)
        if place is None:
            place = self._take_place(number)
        sources = self._sources[place]
        if source not in sources:
            self._sources[place] = (*sources, source)
            self._touch(place)
        elif since_ms == self._since_ms.get((place, source), 0):
            return
        if since_ms or self._since_ms:
            self._set_since(place, source, since_ms)

    def remove(self, source: PeerId, number: int) -> None:
        """Let go of a subscription of a source, if it is held."""
        place = self._place_of.get(number)
        if place is not None and source in self._sources[place]:
            self._sources[place] = tuple(s for s in self._sources[place] if s != source)
            self._since_ms.pop((place, source), None)
            self._touch(place)

    def held_of(self, source: PeerId) -> dict[int, int]:
        """The subscriptions of a source, and since when."""
        return {
            self._number[place]: self._since_ms.get((place, source), 0)
            for place, sources in enumerate(self._sources)
            if source in sources
        }

    def matching(self, point: Point, published_us: int) -> set[PeerId]:
        """The sources with a subscription that wants an event."""
        bits = np.uint64(point.bits)
        places = ((self._bits & bits) == bits).nonzero()[0].tolist()
        held, since_ms = self._sources, self._since_ms
        if not since_ms:
            return set(chain.from_iterable(map(held.__getitem__, places)))
        return {
            source
            for place in places
            for source in held[place]
            if since_ms.get((place, source), 0) * 1_000 <= published_us
        }

    def differences(
        self, links: Iterable[tuple[PeerId, Told]]
    ) -> Iterator[tuple[PeerId, Difference]]:
        """What each link is to be told now, all links of the peer, and note it as told."""
        audience = self._audience_of(self._changed)
        if self._merger is not None:
            self._merge(self._merger, audience)
        everything: _Audience | None = None
        for link, told in links:
            aim = audience
            if not told.places:  # a new one
                everything = everything or self._everything()
                aim = everything
            yield link, self._tell(link, told, aim)
        self._settle()

    def _everything(self) -> _Audience:
        audience = self._audience_of(self._place_of.values())
        if self._merger is not None:
            audience.merged = self._merger.merged(self._place_of.values())
        return audience

    def _merge(self, merger: BoxMerger, audience: _Audience) -> None:
        """Merge those for everybody anew; note which merged boxes may concern links, and where."""
        timed = {place for place, _ in self._since_ms}
        stirred = 0
        everybody = [place for place in _listed(audience.everybody) if place not in timed]
        for place in sorted({*_listed(audience.considered)}.difference(everybody)):
            if place in merger:
                stirred |= merger.remove(place)
        for place in everybody:
            if place not in merger:
                stirred |= merger.add(place, self._number[place])
        audience.merged = merger.merged(_listed(audience.considered | stirred))
        audience.stirred = stirred | _places_of(audience.merged)

    def _tell(self, link: PeerId, told: Told, audience: _Audience) -> Difference:
        before, boxes = told.alone, told.merged
        told.places = told.places & ~audience.considered | audience.of(link)
        told.merged = [box for box in boxes if not box.places & audience.stirred]
        told.merged += [box for top in audience.merged for box in top.within(told.places)]
        alone = told.alone
        withdrawn = _listed(before & ~alone)
        for place in withdrawn:
            told.since_ms.pop(place, None)
        added = {self._number[p]: 0 for p in _listed(alone & ~before)}
        if self._since_ms or told.since_ms:
            added = self._with_times(link, told, before, alone & (audience.considered | ~before))
        gone = dict.fromkeys(self._number[place] for place in withdrawn)
        if boxes or told.merged:
            kept = set(boxes).intersection(told.merged)
            gone |= dict.fromkeys(box.number for box in boxes if box not in kept)
            added |= {box.number: 0 for box in told.merged if box not in kept}
        # What is withdrawn and added at once has another reason now, and is only added.
        return Difference(added, tuple(number for number in gone if number not in added))

    def _with_times(self, link: PeerId, told: Told, before: int, places: int) -> dict[int, int]:
        """What is new to a link, or wanted since an earlier time than it was told."""
        added = {}
        for place in _listed(places):
            since_ms = self._since(place, link)
            if not before >> place & 1 or since_ms < told.since_ms.get(place, 0):
                added[self._number[place]] = since_ms
                told.since_ms[place] = since_ms
        return added

    def _since(self, place: int, link: PeerId) -> int:
        """Since when any source but this one wants events: of a subscription, or one it covers."""
        return min(
            self._since_ms.get((some, source), 0)
            for some in (place, *self._below[place])
            for source in self._sources[some]
            if source != link
        )

    def _audience_of(self, places: Iterable[int]) -> _Audience:
        audience = _Audience()
        for place in places:
            bit = 1 << place
            audience.considered |= bit
            sources = self._sources[place]
            hiding = {s for above in self._above[place] for s in self._sources[above]}
            if not hiding and sources:
                audience.everybody |= bit
                if len(sources) == 1:
                    audience.but[sources[0]] |= bit
            elif len(hiding) == 1 and not hiding.issuperset(sources):
                audience.only[hiding.pop()] |= bit
        return audience

    def _set_since(self, place: int, source: PeerId, since_ms: int) -> None:
        if since_ms:
            self._since_ms[place, source] = since_ms
        else:
            self._since_ms.pop((place, source), None)
        self._changed.add(place)
        self._changed.update(self._above[place])  # which stand for it

    def _touch(self, place: int) -> None:
        self._changed.add(place)
        self._changed.update(self._below[place])

    def _take_place(self, number: int) -> int:
        place = self._free.pop() if self._free else self._new_place()
        bits = _bits_of(number)
        common = self._bits & bits
        above = tuple((common == bits).nonzero()[0].tolist())
        below = tuple((common == self._bits).nonzero()[0].tolist())
        self._bits[place] = bits
        self._number[place], self._place_of[number] = number, place
        self._above[place], self._below[place] = above, below
        for other in above:
            self._below[other] += (place,)
        for other in below:
            self._above[other] += (place,)
        return place

    def _new_place(self) -> int:
        place = len(self._number)
        if place == len(self._bits):
            self._bits = np.concatenate([self._bits, np.full(place, _FREE, dtype=np.uint64)])
        self._number.append(0)
        self._sources.append(())
        self._above.append(())
        self._below.append(())
        return place

    def _settle(self) -> None:
        """Free the places that nobody holds, now that all links know."""
        for place in sorted(self._changed):
            if not self._sources[place]:
                self._free_place(place)
        self._changed.clear()

    def _free_place(self, place: int) -> None:
        for other in self._above[place]:
            self._below[other] = tuple(p for p in self._below[other] if p != place)
        for other in self._below[place]:
            self._above[other] = tuple(p for p in self._above[other] if p != place)
        self._above[place] = self._below[place] = ()
        self._bits[place] = _FREE
        del self._place_of[self._number[place]]
        self._free.append(place)


@lru_cache(maxsize=1 << 16)
def _bits_of(number: int) -> np.uint64:
    return np.uint64(Subscription(number).bits)


def _places_of(boxes: Iterable[Box]) -> int:
    """The places that boxes stand for."""
    places = 0
    for box in boxes:
        places |= box.places
    return places


def _listed(places: int) -> list[int]:
    """The places whose bits are set."""
    at, found = -1, []
    for zeros in bin(places)[:1:-1].split("1")[:-1]:
        at += len(zeros) + 1
        found.append(at)
    return found
