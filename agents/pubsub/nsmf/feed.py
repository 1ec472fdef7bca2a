"""Feeds: one peer reads the interests or the table of another, which sends it all changes.

A reader follows another peer in a session, whose number it chooses. It is sent everything first,
then changes, in numbered pieces that each fit a datagram. Pieces are sent reliably and applied in
the order of their numbers. The reader repeats from time to time how many pieces it has; if either
end has lost its state, the reader begins a new session, and everything is sent again.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, final

from agents.announcements import Place
from agents.pubsub.nsmf.messages import InterestPiece, Nearest, TablePiece

Held = dict[int, Place | None]  # by topic: the nearest subscriber, or None if only topics are read

_CHANGES = 80  # most entries in one piece of a table
_TOPICS = 320  # most topics in one piece of interests
_MOST_WAITING = 10_000  # pieces that arrived out of order
_LAPSE_US = 3_000_000  # time after which a sent piece has arrived, or its reader has lost its state

Piece = TablePiece | InterestPiece


@final
class Reading:
    """The content that a peer has read from another in one session."""

    def __init__(self, place: Place, session: int, wants_table: bool) -> None:
        self.place = place
        self.session = session
        self.wants_table = wants_table
        self.held: Held = {}
        self.covers: int | None = None
        self.pieces = 0
        self.is_synced = False  # everything was read once
        self.told_us = 0  # time of the last report to the other
        self._waiting: dict[int, Piece] = {}

    @property
    def has_gap(self) -> bool:
        """Whether a piece is missing before others."""
        return bool(self._waiting)

    def take(self, piece: Piece) -> set[int]:
        """Apply a piece, and those that waited for it; returns the topics that change."""
        if piece.number >= self.pieces and len(self._waiting) < _MOST_WAITING:
            self._waiting[piece.number] = piece
        changed: set[int] = set()
        while self.pieces in self._waiting:
            changed |= self._apply(self._waiting.pop(self.pieces))
            self.pieces += 1
        return changed

    def _apply(self, piece: Piece) -> set[int]:
        told: Held
        if isinstance(piece, TablePiece):
            told = {one.topic: Place(one.peer, one.position) for one in piece.nearest}
            self.covers = piece.covers
        else:
            told = dict.fromkeys(piece.topics)
        self.held.update(told)
        for topic in piece.gone:
            self.held.pop(topic, None)
        self.is_synced |= piece.is_last
        return {*told, *piece.gone}


@final
class Offer:
    """The content that a reader was sent in its session."""

    def __init__(self, now_us: int, session: int, wants_table: bool) -> None:
        self.session = session
        self.wants_table = wants_table
        self.heard_us = now_us
        self._sent_us = now_us
        self._pieces = 0
        self._told: Held = {}
        self._covers: int | None = None

    def has_lapsed(self, now_us: int, pieces: int) -> bool:
        """Whether a reader with so many pieces has missed some."""
        return pieces != self._pieces and now_us - self._sent_us > _LAPSE_US

    def news(
        self, now_us: int, epoch: int, topics: Iterable[int], now: Mapping[int, Place | None],
        covers: int | None,
    ) -> Iterator[Any]:  # fmt: skip
        """The pieces with the changes of some topics for the reader."""
        changed = [topic for topic in topics if self._is_news(topic, now)]
        if self._pieces and not changed and (covers == self._covers or not self.wants_table):
            return
        before, self._covers = self._covers, covers
        self._sent_us = now_us
        size = _CHANGES if self.wants_table else _TOPICS
        for start in range(0, max(len(changed), 1), size):
            some = changed[start : start + size]
            is_last = start + size >= len(changed)
            yield self._piece(epoch, some, now, is_last, covers if is_last else before)
            self._pieces += 1

    def _is_news(self, topic: int, now: Mapping[int, Place | None]) -> bool:
        if topic not in now:
            return topic in self._told
        return topic not in self._told or self._told[topic] != now[topic]

    def _piece(
        self, epoch: int, topics: list[int], now: Mapping[int, Place | None], is_last: bool,
        covers: int | None,
    ) -> Piece:  # fmt: skip
        held = [topic for topic in topics if topic in now]
        gone = tuple(topic for topic in topics if topic not in now)
        for topic in held:
            self._told[topic] = now[topic]
        for topic in gone:
            del self._told[topic]
        if not self.wants_table:
            return InterestPiece(epoch, self.session, self._pieces, is_last, tuple(held), gone)
        nearest = []
        for topic in held:
            place = now[topic]
            assert place is not None
            nearest.append(Nearest(topic, place.peer, place.position))
        return TablePiece(epoch, self.session, self._pieces, is_last, covers, tuple(nearest), gone)
