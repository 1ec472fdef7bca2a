"""A peer's knowledge of positions and interests of others, and the choice of fingers from it.

Gossip carries samples of a pool of recently known peers. In addition, the peers with most
common topics are remembered in each phase. Fingers are chosen greedily: the peer with most common
topics that no finger covers yet becomes the finger of its phase, repeatedly.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from random import Random
from typing import NamedTuple

from agents.announcements import Place
from agents.overlays.ring.circle import Circle, Phase
from agents.overlays.small_world.messages import Sample
from agents.protocol import PeerId
from agents.wire.codec import U32_MAX

_POOL = 128  # peers in the pool of gossip
_MOST_AGE_US = 120_000_000  # older samples are not sent
_PIECE_TOPICS = 250
_MOST_PIECES = 64
_MOST_PARTIAL = 64
_MOST_FORGOTTEN = 256
_MOST_AGE_S = 0xFFFF

Topics = frozenset[int]


class Known(NamedTuple):
    """A peer with its topics, and the time of its own message."""

    place: Place
    version: int
    topics: Topics
    heard_us: int


class Knowledge:
    """The known peers, by phase and for gossip."""

    def __init__(
        self, me: Place, circle: Circle, phases: Sequence[Phase], per_phase: int, random: Random
    ) -> None:
        self._me, self._circle, self._phases = me, circle, phases
        self._per_phase = per_phase
        self._random = random
        self.mine: Topics = frozenset()
        self.version = 0  # of the own topics
        self._pool: dict[PeerId, Known] = {}  # the most recent one last
        self._best: list[dict[PeerId, Known]] = [{} for _ in phases]
        self._partial: dict[tuple[PeerId, int], dict[int, Sample]] = {}
        self._forgotten_us: dict[PeerId, int] = {}

    @property
    def peers(self) -> list[PeerId]:
        """Peers to exchange samples with."""
        return list(self._pool)

    def want(self, now_us: int, topics: Topics) -> None:
        """Set the topics of this peer, and weigh all others by them."""
        sayable = frozenset(topic for topic in topics if topic <= U32_MAX)
        if sayable != self.mine or not self.version:
            self.mine, self.version = sayable, max(self.version + 1, now_us // 1_000)

    def take(self, now_us: int, sample: Sample) -> bool:
        """Add a sample; returns whether a peer is newly among the best of its phase."""
        known = self._complete(now_us, sample)
        if known is None or known.heard_us <= self._forgotten_us.get(sample.peer, -1):
            return False
        before = self._pool.pop(sample.peer, None)
        if before is not None and before[1:] > known[1:]:
            known = before
        self._pool[sample.peer] = known
        if len(self._pool) > _POOL:
            del self._pool[next(iter(self._pool))]
        return self._rank(known)

    def forget(self, now_us: int, peer: PeerId) -> None:
        """Remove a failed peer, until a sample is more recent than now."""
        self._pool.pop(peer, None)
        for best in self._best:
            best.pop(peer, None)
        self._forgotten_us.pop(peer, None)
        self._forgotten_us[peer] = now_us
        if len(self._forgotten_us) > _MOST_FORGOTTEN:
            del self._forgotten_us[next(iter(self._forgotten_us))]

    def samples(self, now_us: int, count: int) -> list[Sample]:
        """Samples of this peer and of some others at random."""
        me = Known(self._me, self.version, self.mine, now_us)
        fresh = [one for one in self._pool.values() if now_us - one.heard_us < _MOST_AGE_US]
        told = [me, *self._random.sample(fresh, min(count - 1, len(fresh)))]
        return [sample for known in told for sample in _pieces(now_us, known)]

    def choose(self) -> dict[int, Place]:
        """The peers that cover most topics, by phase; phases without such a peer are left out."""
        chosen: dict[int, Place] = {}
        uncovered = set(self.mine)
        if self._best and (near := self._best[0]):  # the successor is a finger in any case
            successor = min(near.values(), key=self._distance)
            chosen[0] = successor.place
            uncovered -= successor.topics
        heap = [
            (-len(self.mine & known.topics), index, known.place, known.topics)
            for index, best in enumerate(self._best[1:], 1)
            for known in best.values()
        ]
        heapify(heap)
        while heap and heap[0][0]:
            bound, index, place, topics = heappop(heap)
            if index in chosen:
                continue
            gain = len(uncovered & topics)
            if gain == -bound:
                chosen[index] = place
                uncovered -= topics
            else:  # gains only fall, so those of others are upper bounds
                heappush(heap, (-gain, index, place, topics))
        return chosen

    def _rank(self, known: Known) -> bool:
        """Store a peer if it is among the best of its phase; returns whether it is new there."""
        distance = self._distance(known)
        index = next((i for i, phase in enumerate(self._phases) if phase.has(distance)), None)
        if index is None:
            return False
        best = self._best[index]
        before = best.get(known.place.peer)
        if before is not None and before.topics == known.topics:
            return False
        best[known.place.peer] = known
        if len(best) > self._per_phase:
            del best[min(best, key=lambda peer: (len(self.mine & best[peer].topics), peer))]
        return known.place.peer in best

    def _distance(self, known: Known) -> int:
        return self._circle.distance(self._me.position, known.place.position)

    def _complete(self, now_us: int, sample: Sample) -> Known | None:
        """The complete topics from a sample and the earlier pieces of its version, or None."""
        is_sound = sample.piece < sample.pieces <= _MOST_PIECES
        if not is_sound or sample.position >= self._circle.modulus or sample.peer == self._me.peer:
            return None
        place = Place(sample.peer, sample.position)
        heard_us = now_us - sample.age_s * 1_000_000
        if sample.pieces == 1:
            return Known(place, sample.version, frozenset(sample.topics), heard_us)
        parts = self._partial.setdefault((sample.peer, sample.version), {})
        parts[sample.piece] = sample
        if len(parts) < sample.pieces:
            if len(self._partial) > _MOST_PARTIAL:
                del self._partial[next(iter(self._partial))]
            return None
        del self._partial[sample.peer, sample.version]
        topics = frozenset(topic for part in parts.values() for topic in part.topics)
        return Known(place, sample.version, topics, heard_us)


def _pieces(now_us: int, known: Known) -> list[Sample]:
    """A known peer as samples that fit a datagram."""
    topics = sorted(known.topics)
    parts = [topics[at : at + _PIECE_TOPICS] for at in range(0, len(topics), _PIECE_TOPICS)] or [[]]
    age_s = min(max(0, now_us - known.heard_us) // 1_000_000, _MOST_AGE_S)
    return [
        Sample(*known.place, known.version, age_s, piece, len(parts), tuple(part))
        for piece, part in enumerate(parts[:_MOST_PIECES])
    ]


def pack(
    samples: Sequence[Sample], most_bytes: int, size: Callable[[Sample], int]
) -> list[tuple[Sample, ...]]:
    """Samples in groups that fit messages."""
    groups: list[list[Sample]] = []
    left = 0
    for sample in samples:
        if not groups or size(sample) > left:
            groups.append([])
            left = most_bytes
        groups[-1].append(sample)
        left -= size(sample)
    return [tuple(group) for group in groups]
