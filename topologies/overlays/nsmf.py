"""NSMF (Chen and Tock, Middleware Industry 2015) and its variants of BeaConvey (Chen et al.).

A publication is sent to a range of the ring, at first all of it. The node at the beginning of a
range divides it at its nearest subscriber and at its fingers that subscribe to the topic, and
sends each of them the part that begins with it, by way of the fingers that are nearest before it.
Ranges are (low, span): a pair of ends could not tell the whole ring from nothing. On a full ring
they count ranks, on a sparse ring positions of 64 bits.

The rule `po` does only that. `pie` also divides a range whose far half would have no part of
its own, at the finger that is nearest to the middle; `pal` divides it at the middle itself if there
is no such finger. Where no subscriber is left in a range, nothing divides it.

The nearest subscriber outside the range, which the pseudo-code of NSMF adds to the range's parts,
is not added, as in the paper's text and example. All ranges of many publications are walked at
once, hop by hop.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.dissemination import Counts, OfflinePubsub, PubsubSettings
from topologies.overlays.key_routes import NOWHERE, Targets
from topologies.overlays.kinds import ROUTES
from topologies.overlays.overlay import Keys, Overlay
from topologies.overlays.position_routes import PositionRoutes
from topologies.overlays.publications import NOBODY

Rule = Literal["po", "pal", "pie"]

# Largest number of subscribers of publications that are walked together.
_SUBSCRIBERS_AT_ONCE = 500_000
_ONE = np.uint64(1)


class Nsmf(OfflinePubsub):
    """Nearest subscribers and matched fingers."""

    @classmethod
    def disseminate(cls, overlay: Overlay, publications: Numbers, settings: Any) -> Counts:
        """The counts of publications, given as rows (publisher, topic)."""
        del settings
        return walk_ranges(overlay, publications, "po").total()


class BeaConveySettings(PubsubSettings, frozen=True, kw_only=True):
    """Settings of BeaConvey."""

    rule: Annotated[
        Rule,
        Meta(
            description="pivots in the far half of a range: po, never; pal, always; pie, if a "
            "finger is there"
        ),
    ] = "pie"
    min_subscribers: Annotated[
        int,
        Meta(ge=0, description="minimum number of subscribers of a topic with drawn publications"),
    ] = 2


class BeaConvey(OfflinePubsub):
    """NSMF with pivots."""

    Settings = BeaConveySettings

    @classmethod
    def disseminate(
        cls, overlay: Overlay, publications: Numbers, settings: BeaConveySettings
    ) -> Counts:
        """The counts of publications, given as rows (publisher, topic)."""
        return walk_ranges(overlay, publications, settings.rule).total()


@dataclass(frozen=True, slots=True, eq=False)
class RangeCounts:
    """The cost of each publication: arrays with the meanings of `Counts`."""

    messages: Numbers
    pure_forwarding: Numbers
    deliveries: Numbers
    missed: Numbers
    hops: Numbers
    longest: Numbers

    def total(self) -> Counts:
        """The counts of all publications; parts of a range are disjoint, so no duplicates occur."""
        return Counts(
            publications=len(self.messages),
            messages=int(self.messages.sum()),
            pure_forwarding=int(self.pure_forwarding.sum()),
            deliveries=int(self.deliveries.sum()),
            missed=int(self.missed.sum()),
            hops=int(self.hops.sum()),
            longest=int(self.longest.max(initial=0)),
        )


def walk_ranges(
    overlay: Overlay, publications: Numbers, rule: Rule, span: int | None = None
) -> RangeCounts:
    """The cost of each publication, a row (publisher, topic), by a rule.

    With a span, publications go to `span` positions clockwise from their publishers, not to all.
    """
    if overlay.kind in ROUTES:
        raise TopologyError(
            f"nsmf, beaconvey: expected an overlay that routes by position, found {overlay.kind}"
        )
    walker = _Walker(overlay, publications, rule, span)
    for some in _batches(overlay.interests.sizes[publications[:, 1]]):
        walker.walk(some[publications[some, 0] != NOBODY])
    return walker.counts()


def _batches(subscribers: Numbers) -> Iterator[Numbers]:
    batch = np.cumsum(subscribers) // _SUBSCRIBERS_AT_ONCE
    yield from np.split(np.arange(len(batch)), np.flatnonzero(np.diff(batch)) + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Ranges under way, a row for each: its publication, its current node and its first key.

    `root` is the first node at or after `low`, and `rest` the span without its first position, as
    the span of a whole ring of 64 bits would not fit.
    """

    publication: Numbers
    at: Numbers
    root: Numbers
    low: Keys
    rest: Keys
    hops: Numbers

    def take(self, which: NDArray[np.bool_]) -> "_Parts":
        """A selection of the rows."""
        return _Parts(*(getattr(self, name)[which] for name in self.__slots__))

    def join(self, other: "_Parts") -> "_Parts":
        """The rows of both."""
        return _Parts(
            *(
                np.concatenate((getattr(self, name), getattr(other, name)))
                for name in self.__slots__
            )
        )


# Rows (row of a range, root of a part, key that it begins with).
_Divisions = tuple[Numbers, Numbers, Keys]


def _join(some: _Divisions, others: _Divisions) -> _Divisions:
    row, node, low = (np.concatenate(both) for both in zip(some, others, strict=True))
    return row, node, low


class _Walker:
    """Walks ranges, and counts for each publication."""

    def __init__(
        self, overlay: Overlay, publications: Numbers, rule: Rule, span: int | None
    ) -> None:
        self._interests = overlay.interests
        self._ring = PositionRoutes(overlay)
        self._rule = rule
        self._rest = self._ring.last_position if span is None else np.uint64(span - 1)
        self._publisher, self._topic = publications[:, 0], publications[:, 1]
        self._index_subscribers()
        self._counts = {
            name: np.zeros(len(publications), dtype=np.int64)
            for name in ("messages", "pure_forwarding", "deliveries", "hops", "longest")
        }

    def counts(self) -> RangeCounts:
        """What has been counted."""
        is_own = self._wants(self._topic, self._publisher) & (self._publisher != NOBODY)
        wanted = self._interests.sizes[self._topic] - is_own
        return RangeCounts(missed=wanted - self._counts["deliveries"], **self._counts)

    def walk(self, publications: Numbers) -> None:
        """Disseminate some publications, given by their numbers."""
        at = self._publisher[publications]
        low = self._ring.keys_of(at)
        rest = np.full(len(at), self._rest)
        parts = _Parts(publications, at, at, low, rest, np.zeros(len(at), dtype=np.int64))
        while len(parts.at):
            is_there = parts.at == parts.root
            here = self._trim(parts.take(is_there))
            self._deliver(here)
            parts = self._send(parts.take(~is_there).join(self._divide(here)))

    def _trim(self, parts: _Parts) -> _Parts:
        """Ranges that have reached their roots begin there; those that end before are done."""
        start = self._ring.keys_of(parts.root)
        gap = self._ring.distance(parts.low, start)
        trimmed = _Parts(
            parts.publication, parts.at, parts.root, start, parts.rest - gap, parts.hops
        )
        return trimmed.take(gap <= parts.rest)

    def _deliver(self, here: _Parts) -> None:
        topic, publisher = self._topic[here.publication], self._publisher[here.publication]
        got = here.take(self._wants(topic, here.at) & (here.at != publisher))
        self._add("deliveries", got.publication, np.ones_like(got.hops))
        self._add("hops", got.publication, got.hops)
        np.maximum.at(self._counts["longest"], got.publication, got.hops)

    def _send(self, parts: _Parts) -> _Parts:
        """Send each range one hop towards its root; without a finger towards it, the range ends."""
        to = self._ring.next_hops(parts.at, Targets(parts.root, parts.low))
        sent = _Parts(
            parts.publication, to, parts.root, parts.low, parts.rest, parts.hops + 1
        ).take(to != NOWHERE)
        self._add("messages", sent.publication, np.ones_like(sent.hops))
        is_stranger = ~self._wants(self._topic[sent.publication], sent.at)
        self._add("pure_forwarding", sent.publication, is_stranger.astype(np.int64))
        return sent

    def _divide(self, here: _Parts) -> _Parts:
        """The parts of ranges that are at their roots."""
        row, node, low = self._next_hops(here)
        offset = self._ring.distance(here.low[row], low)
        order = np.lexsort((offset, row))
        row, node, low, offset = row[order], node[order], low[order], offset[order]
        # A part ends before the next one of the same range, the last one where the range ends.
        is_last = np.append(row[1:] != row[:-1], True)
        following = np.append(offset[1:], _ONE) - _ONE
        rest = np.where(is_last, here.rest[row], following) - offset
        parts = _Parts(here.publication[row], here.at[row], node, low, rest, here.hops[row])
        # The root of a middle is the dividing node itself if no other node follows in the range.
        return parts.take(parts.root != parts.at)

    def _next_hops(self, here: _Parts) -> _Divisions:
        """The nodes and keys at which ranges are divided."""
        nearest = self._nearest(self._topic[here.publication], here.at)
        is_inside = (nearest != here.at) & (self._offset(here, nearest) <= here.rest)
        row = np.flatnonzero(is_inside)
        finger_row, finger = self._ring.fingers_of(here.at[row])
        finger_row = row[finger_row]
        offset = self._ring.distance(here.low[finger_row], self._ring.keys_of(finger))
        is_in_range = offset <= here.rest[finger_row]
        finger_row, finger, offset = (
            finger_row[is_in_range],
            finger[is_in_range],
            offset[is_in_range],
        )
        is_matched = self._wants(self._topic[here.publication[finger_row]], finger)
        is_matched &= finger != nearest[finger_row]
        row = np.concatenate((row, finger_row[is_matched]))
        node = np.concatenate((nearest[is_inside], finger[is_matched]))
        low = self._ring.keys_of(node)
        if self._rule == "po":
            return row, node, low
        pivots = self._pivots(here, (row, low), (finger_row, finger, offset))
        return _join((row, node, low), pivots)

    def _pivots(
        self, here: _Parts, parts: tuple[Numbers, Keys], fingers: tuple[Numbers, Numbers, Keys]
    ) -> _Divisions:
        """Pivots of ranges whose parts all begin in their near halves."""
        half = (here.rest >> _ONE) + _ONE
        needs = np.zeros(len(here.at), dtype=bool)
        needs[parts[0]] = True
        is_far = self._ring.distance(here.low[parts[0]], parts[1]) >= half[parts[0]]
        needs[parts[0][is_far]] = False
        row, finger, offset = fingers
        is_pivot = needs[row] & (offset >= half[row])
        row, finger = row[is_pivot], finger[is_pivot]
        # Fingers of a range are in clockwise order, so its first one is nearest to the middle.
        row, first = np.unique(row, return_index=True)
        pivots = row, finger[first], self._ring.keys_of(finger[first])
        if self._rule == "pie":
            return pivots
        needs[row] = False
        row = np.flatnonzero(needs)
        targets = self._ring.roots_of(self._ring.add(here.low[row], half[row]))
        middles = row, targets.root, targets.key
        return _join(pivots, middles)

    def _offset(self, here: _Parts, nodes: Numbers) -> Keys:
        return self._ring.distance(here.low, self._ring.keys_of(nodes))

    def _index_subscribers(self) -> None:
        """Sort subscriptions by topic and rank, after a dummy one."""
        nodes, interests = self._interests.nodes, self._interests
        order = np.argsort(interests.topic * nodes + self._ring.rank_of(interests.node))
        key = interests.topic * nodes + self._ring.rank_of(interests.node)
        self._key = np.append(key[order], interests.topics * nodes)
        self._subscriber = np.append(interests.node[order], NOBODY)

    def _wants(self, topic: Numbers, node: Numbers) -> NDArray[np.bool_]:
        """Whether nodes subscribe to topics."""
        key = topic * self._interests.nodes + self._ring.rank_of(node)
        return np.asarray(self._key[np.searchsorted(self._key, key)] == key)

    def _nearest(self, topic: Numbers, node: Numbers) -> Numbers:
        """The first subscriber after each node: the node itself if it is the only one.

        Without subscribers, it is the node.
        """
        key = topic * self._interests.nodes + self._ring.rank_of(node)
        place = np.searchsorted(self._key, key, side="right")
        first, end = self._interests.first[topic], self._interests.first[topic + 1]
        found = self._subscriber[np.where(place < end, place, first)]
        return np.where(first < end, found, node)

    def _add(self, name: str, publication: Numbers, value: Numbers) -> None:
        # Not `counts[publication] += value`, because a publication may have several rows.
        np.add.at(self._counts[name], publication, value)
