"""A peer's knowledge of subscribers on one ring: the nearest one of each topic, matched fingers.

A peer reads the table of its successor: the nearest subscriber of each topic at or after it. Its
own nearest subscriber is the same one, unless that lies beyond itself. So subscribers that left
vanish from all tables: a peer adopts from its successor only subscribers between the two, clockwise
from the successor. The table that a peer offers to its own reader, the predecessor, has itself for
all topics that it subscribes to.

Tables are correct for a part of the ring. A peer that has just joined has no entries; its table
would remove subscribers from those of others. So a peer states how far its table covers the ring:
as far as its successor's, plus the distance to the successor. The peer with the lowest position
covers itself at the start. Once a peer has covered the whole ring, it continues to offer its old
table until that of a new successor covers the whole ring, too. A peer tells this only to its
predecessor: one that has just joined may take any peer for its successor, and all peers between
the two are missing in its table.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agents.announcements import Place, RingView
from agents.protocol import Effect, PeerId, Send, SetTimer
from agents.pubsub.nsmf.feed import Offer, Piece, Reading
from agents.pubsub.nsmf.messages import Follow, Lapsed, TablePiece

_PUSH_US = 20_000  # changes are sent at once, but not more often than this
_TICK_US = 1_000_000
_REFRESH_US = 5_000_000  # between two messages to a peer that is followed
_FORGET_US = 4 * _REFRESH_US


class Tables:
    """The tables of one peer on a ring, kept by messages."""

    def __init__(self, now_us: int, me: PeerId, view: RingView, topics: frozenset[int]) -> None:
        self.view = view
        self.version = 0  # number of changes of the view and of tables read
        self.was_covered = False
        self._me = me
        self._topics = topics
        self._session = now_us // 1_000
        self._readings: dict[PeerId, Reading] = {}
        self._adopted: Reading | None = None
        self._offers: dict[PeerId, Offer] = {}
        self._changed: set[int] = set()  # changed topics that were not sent to readers
        self._told: object = None  # what readers were told last of the covered part
        self._pushed_us = -_PUSH_US
        self._is_push_due = False
        self._place_fingers()

    @property
    def epoch(self) -> int:
        """The epoch of the ring."""
        return self.view.epoch

    @property
    def is_confirmed(self) -> bool:
        """Whether a table of the whole ring was read from the current successor."""
        adopted = self._adopted
        successor = self._successor
        return (
            adopted is not None
            and successor is not None
            and self._readings.get(successor.peer) is adopted
            and self._is_whole(adopted)
        )

    @property
    def is_placed(self) -> bool:
        """Whether the predecessor reads this peer's table: both agree that none is between."""
        before = self.view.predecessor
        offer = self._offers.get(before.peer) if before is not None else None
        return offer is not None and offer.wants_table

    @property
    def is_isolated(self) -> bool:
        """Whether this peer knows no other peer."""
        return self._successor is None

    @property
    def is_settled(self) -> bool:
        """Whether this peer has its place, and has received all tables and interests."""
        is_told = all(one.is_synced for one in self._readings.values())
        return is_told and self.is_confirmed and self.is_placed

    def distance(self, start: int, end: int) -> int:
        """The clockwise distance from one position to another."""
        return (end - start) % self.view.modulus

    def owns(self, position: int) -> bool:
        """Whether this peer is the first at or after a position."""
        if self._successor is None or position == self.view.position:
            return True
        before = self.view.predecessor
        if before is None:
            return False
        way = self.distance(before.position, self.view.position)
        return 0 < self.distance(before.position, position) <= way

    def next_hop(self, position: int) -> PeerId | None:
        """The finger nearest before a position or at it, else the successor."""
        limit = self.distance(self.view.position, position)
        place = bisect_right(self.fingers, limit)
        if place:
            return self._finger_peers[place - 1]
        return None if self._successor is None else self._successor.peer

    def nearest(self, topic: int) -> int | None:
        """The distance of the nearest subscriber, which may be at the successor if unconfirmed."""
        if self._successor is None:
            return None
        if not self.is_confirmed:
            return self.distance(self.view.position, self._successor.position)
        found = self._find_nearest(topic)
        return None if found is None else self.distance(self.view.position, found.position)

    def matched(self, topic: int) -> list[int]:
        """The distances of the fingers that subscribe to a topic."""
        return [
            distance
            for distance, peer in zip(self.fingers, self._finger_peers, strict=True)
            if self._subscribes(peer, topic)
        ]

    def entries(self) -> Iterator[tuple[int, PeerId]]:
        """Each topic with its nearest subscriber, and with the fingers that subscribe to it."""
        for topic in self._adopted.held if self._adopted is not None else ():
            found = self._find_nearest(topic)
            if found is not None:
                yield topic, found.peer
        for peer, reading in self._readings.items():
            yield from ((topic, peer) for topic in reading.held if self._subscribes(peer, topic))

    def start(self, now_us: int) -> list[Effect]:
        """Begin to read, and the periodic work."""
        return [SetTimer(self._timer("tick"), _TICK_US), *self._follow_all(now_us)]

    @property
    def timers(self) -> list[tuple[str, int, str]]:
        """The names of timers that may be set."""
        return [self._timer("tick"), self._timer("push")]

    def change_view(self, now_us: int, view: RingView) -> list[Effect]:
        """Handle a change of the ring."""
        self.view = view
        self.version += 1
        self._place_fingers()
        return [*self._follow_all(now_us), *self._adopt(now_us, set())]

    def change_topics(self, now_us: int, topics: frozenset[int]) -> list[Effect]:
        """Send readers a change of this peer's interests."""
        changed = self._topics ^ topics
        self._topics = topics
        return self._tell(now_us, changed)

    def restart(self, now_us: int, peer: PeerId) -> list[Effect]:
        """Read a restarted peer again."""
        if peer not in self._readings:
            return []
        return self._follow(now_us, self._readings[peer].place)

    def lose(self, peer: PeerId) -> None:
        """Remove a peer from the readers."""
        self._offers.pop(peer, None)

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> list[Effect]:
        """Take part in feeds."""
        if isinstance(message, Follow):
            return self._on_follow(now_us, sender, message)
        if isinstance(message, Lapsed):
            return self._on_lapsed(now_us, sender, message)
        return self._on_piece(now_us, sender, message)

    def on_timer(self, now_us: int, what: str) -> list[Effect]:
        """Push changes, or do the work of a period."""
        if what == "push":
            self._is_push_due = False
            return self._push(now_us)
        oldest_us = now_us - _FORGET_US
        self._offers = {p: one for p, one in self._offers.items() if one.heard_us >= oldest_us}
        effects: list[Effect] = [SetTimer(self._timer("tick"), _TICK_US)]
        for reading in list(self._readings.values()):
            effects += self._refresh(now_us, reading)
        return effects

    @property
    def _successor(self) -> Place | None:
        return self.view.successors[0] if self.view.successors else None

    def _place_fingers(self) -> None:
        position = self.view.position
        places = sorted(
            (self.distance(position, place.position), place.peer) for place in self.view.fingers
        )
        self.fingers = [distance for distance, _ in places]
        self._finger_peers = [peer for _, peer in places]

    def _subscribes(self, peer: PeerId, topic: int) -> bool:
        reading = self._readings.get(peer)
        if reading is None or topic not in reading.held:
            return False
        place = reading.held[topic]
        return place is None or place.peer == peer

    def _find_nearest(self, topic: int) -> Place | None:
        """The nearest subscriber that the adopted table has, if it is not this peer or beyond."""
        adopted = self._adopted
        found = adopted.held.get(topic) if adopted is not None else None
        if adopted is None or found is None:
            return None
        start = adopted.place.position
        way = self.distance(start, self.view.position)
        return found if self.distance(start, found.position) < way else None

    def _is_whole(self, reading: Reading) -> bool:
        return reading.is_synced and (reading.covers or 0) >= self.view.modulus - 1

    def _may_adopt(self, reading: Reading) -> bool:
        return self._is_whole(reading) if self.was_covered else reading.is_synced

    def _count_covered(self) -> int | None:
        """The number of positions after this peer's own that its table covers."""
        if self.was_covered:
            return self.view.modulus - 1
        adopted, before = self._adopted, self.view.predecessor
        if adopted is not None and adopted.covers is not None:
            way = self.distance(self.view.position, adopted.place.position)
            return min(way + adopted.covers, self.view.modulus - 1)
        is_lowest = before is not None and before.position > self.view.position
        return 0 if is_lowest else None

    def _follow_all(self, now_us: int) -> list[Effect]:
        """Read the table of the successor and the interests of the other fingers."""
        successor = self._successor
        wanted = {place.peer: place for place in self.view.fingers}
        if successor is not None:
            wanted[successor.peer] = successor
        for peer in self._readings.keys() - wanted.keys():
            del self._readings[peer]
        effects: list[Effect] = []
        for peer, place in sorted(wanted.items()):
            reading = self._readings.get(peer)
            wants_table = place == successor
            if reading is None or (reading.place, reading.wants_table) != (place, wants_table):
                effects += self._follow(now_us, place)
        return effects

    def _follow(self, now_us: int, place: Place) -> list[Effect]:
        """Begin a session."""
        self._session += 1
        wants_table = place == self._successor
        reading = Reading(place, self._session & 0xFFFFFFFF, wants_table)
        reading.told_us = now_us
        self._readings[place.peer] = reading
        self.version += 1
        return [Send(place.peer, self._follow_message(reading), reliable=True)]

    def _follow_message(self, reading: Reading) -> Follow:
        return Follow(self.epoch, reading.session, reading.pieces, reading.wants_table)

    def _refresh(self, now_us: int, reading: Reading) -> list[Effect]:
        """Report the number of pieces read, now and then; begin again if some are missing."""
        age_us = now_us - reading.told_us
        if age_us < _REFRESH_US and (reading.is_synced or age_us < _TICK_US):
            return []
        if reading.has_gap and age_us >= _REFRESH_US:
            return self._follow(now_us, reading.place)
        if reading.is_synced or age_us >= _REFRESH_US:
            reading.told_us = now_us
        return [Send(reading.place.peer, self._follow_message(reading), reliable=True)]

    def _on_follow(self, now_us: int, reader: PeerId, message: Follow) -> list[Effect]:
        offer = self._offers.get(reader)
        if offer is not None and offer.session == message.session:
            offer.heard_us = now_us
            if not offer.has_lapsed(now_us, message.pieces):
                return []
            del self._offers[reader]
        elif not message.pieces:
            offer = Offer(now_us, message.session, message.wants_table)
            self._offers[reader] = offer
            self.version += 1
            return list(self._news(now_us, reader, offer, None))
        return [Send(reader, Lapsed(self.epoch, message.session, by_reader=False), reliable=True)]

    def _on_lapsed(self, now_us: int, sender: PeerId, message: Lapsed) -> list[Effect]:
        if message.by_reader:
            offer = self._offers.get(sender)
            if offer is not None and offer.session == message.session:
                del self._offers[sender]
            return []
        reading = self._readings.get(sender)
        if reading is None or reading.session != message.session:
            return []
        return self._follow(now_us, reading.place)

    def _on_piece(self, now_us: int, sender: PeerId, piece: Piece) -> list[Effect]:
        reading = self._readings.get(sender)
        if reading is None or piece.session != reading.session:
            return [Send(sender, Lapsed(self.epoch, piece.session, by_reader=True), reliable=True)]
        if reading.wants_table != isinstance(piece, TablePiece):
            return []
        before = (reading.covers, reading.is_synced)
        changed = reading.take(piece)
        if not changed and before == (reading.covers, reading.is_synced):
            return []
        self.version += 1
        return self._adopt(now_us, changed if reading is self._adopted else set())

    def _adopt(self, now_us: int, changed: set[int]) -> list[Effect]:
        """Adopt the table of the current successor as soon as that is allowed."""
        successor = self._successor
        reading = self._readings.get(successor.peer) if successor is not None else None
        if reading is not None and reading is not self._adopted and self._may_adopt(reading):
            before = self._adopted.held.keys() if self._adopted is not None else set()
            changed = {*before, *reading.held}
            self._adopted = reading
        self.was_covered |= self.is_confirmed
        return self._tell(now_us, changed)

    def _tell(self, now_us: int, changed: Iterable[int]) -> list[Effect]:
        """Send changed topics to readers, at once if nothing was sent shortly before."""
        self._changed.update(changed)
        told = (self._count_covered(), self.view.predecessor)
        if (not self._changed and told == self._told) or self._is_push_due:
            return []
        self._told = told
        wait_us = self._pushed_us + _PUSH_US - now_us
        if wait_us <= 0:
            return self._push(now_us)
        self._is_push_due = True
        return [SetTimer(self._timer("push"), wait_us)]

    def _push(self, now_us: int) -> list[Effect]:
        self._pushed_us = now_us
        self._told = (self._count_covered(), self.view.predecessor)
        changed, self._changed = sorted(self._changed), set()
        return [
            effect
            for reader, offer in sorted(self._offers.items(), key=lambda one: one[0])
            for effect in self._news(now_us, reader, offer, changed)
        ]

    def _news(
        self, now_us: int, reader: PeerId, offer: Offer, changed: list[int] | None
    ) -> Iterator[Send]:
        """Pieces for a reader about changed topics, or about all."""
        now: Mapping[int, Place | None]
        if offer.wants_table:
            now = self._offered(self._all_topics() if changed is None else changed)
        else:
            now = dict.fromkeys(self._topics)
        topics = sorted(now) if changed is None else changed
        before = self.view.predecessor
        is_next = before is not None and before.peer == reader
        covers = self._count_covered() if is_next else None
        for piece in offer.news(now_us, self.epoch, topics, now, covers):
            yield Send(reader, piece, reliable=True)

    def _all_topics(self) -> set[int]:
        return {*self._topics, *(self._adopted.held if self._adopted is not None else ())}

    def _offered(self, topics: Iterable[int]) -> dict[int, Place | None]:
        """The nearest subscribers of some topics at or after this peer."""
        me, offered = Place(self._me, self.view.position), dict[int, Place | None]()
        for topic in topics:
            found = me if topic in self._topics else self._find_nearest(topic)
            if found is not None:
                offered[topic] = found
        return offered

    def _timer(self, what: str) -> tuple[str, int, str]:
        return "tables", self.epoch, what
