"""A peer of skip-net: one key on the rings of a skip graph, and routes by numeric identifier.

Keys are ordered by addresses. The links of a peer are its neighbours on all
levels, to both sides.
"""

from collections.abc import Hashable
from typing import Any, ClassVar

from agents.announcements import NextHop, PeerLost, PeerRestarted, Watch
from agents.overlays.identifiers import as_hex, identifier_of
from agents.overlays.skip_graph.keys import Key
from agents.overlays.skip_graph.messages import RING_MESSAGES
from agents.overlays.skip_graph.rings import Rings
from agents.overlays.skip_net.routing import NumericRouter
from agents.overlays.skip_net.settings import SkipNetSettings
from agents.protocol import (
    Announce,
    Delay,
    Effect,
    Effects,
    MeasureDelay,
    Neighbours,
    PeerId,
    Protocol,
    Record,
    SetTimer,
    Surroundings,
    Value,
)

_STABLE_TICKS = 3
_ROLE = "level"
_NEW_TICKS = 5  # every check begins at a contact, which may be on another ring
_CHECKS_AT_CONTACTS = 3  # later, checks of links until one begins at a contact


class SkipNetOverlay(Protocol):
    """Rings of a skip graph, routed by numeric identifier, base 2."""

    Settings = SkipNetSettings
    messages = RING_MESSAGES
    offers = frozenset({"neighbours", "mutual neighbours", "keys"})
    needs_failure_detector: ClassVar[bool] = True

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._key = _key_of(self.me)
        self.rings = Rings(self.me)
        self._period_us = int(self.settings.period_s * 1e6)
        self._check_ticks = max(1, round(self.settings.check_s / self.settings.period_s))
        self._tick = 0
        self._settled_ticks = 0
        self._is_alone = given.peers == 1
        self._is_placed = False
        self._watched: frozenset[PeerId] = frozenset()
        self._delays_us: dict[PeerId, int] = {}  # of measured neighbours
        self._measured_us: dict[PeerId, int] = {}

    def on_start(self, now_us: int) -> Effects:
        """Look for the own place from a contact, and begin the periodic work at a random time."""
        timer = SetTimer("tick", self.random.randrange(self._period_us))
        return [*self.rings.insert(now_us, self._key, self._starts()), timer, *self._settle()]

    def on_stop(self, now_us: int) -> Effects:
        """Send the two neighbours on each level the other one."""
        return self.rings.delete(now_us, self._key)

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Repeat unanswered messages, and check all links now and then."""
        self._tick += 1
        is_alone = self.rings.nodes[self._key].levels[0].is_alone
        self._count_settled(is_alone)
        effects = [*self.rings.try_again(now_us, self._starts()), *self._measure()]
        is_new = self._tick <= _NEW_TICKS
        if is_alone or is_new or self._tick % (_CHECKS_AT_CONTACTS * self._check_ticks) == 0:
            effects += self.rings.check(now_us, self._starts())
        elif self._tick % self._check_ticks == 0:
            effects += self.rings.check(now_us, ())
        return [*effects, SetTimer("tick", self._period_us), *self._settle()]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle a message about a ring."""
        return [*self.rings.on_message(now_us, sender, message), *self._settle()]

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Add a measured neighbour."""
        if not delay.samples_us or delay.target not in self._watched:
            return ()
        self._measured_us[delay.target] = delay.min_us // 2
        return self._settle()

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Remove a lost peer; check the links to one that restarted."""
        if isinstance(content, PeerLost):
            return [*self.rings.lose(now_us, content.peer), *self._settle()]
        if isinstance(content, PeerRestarted):
            return [*self.rings.check(now_us, ()), *self._settle()]
        return ()

    def _starts(self) -> list[Key]:
        """Keys from which level 0 can be searched, in random order."""
        known = [*self.contacts, *self.rings.lost]
        return [_key_of(self.random.choice(known))] if known else []

    def _measure(self) -> Effects:
        """Measure neighbours whose delays are not known; one may have been silent before."""
        unknown = sorted(self.rings.neighbours - self._measured_us.keys())
        return [MeasureDelay(peer, self.settings.delay_samples) for peer in unknown]

    def _count_settled(self, is_alone: bool) -> None:
        is_settled = self.rings.is_settled and not is_alone
        self._settled_ticks = self._settled_ticks + 1 if is_settled else 0

    def _settle(self) -> Effects:
        """Announce and record changes."""
        peers = self.rings.neighbours
        effects: list[Effect] = []
        if peers != self._watched:
            gained = sorted(peers - self._watched)
            effects += [MeasureDelay(peer, self.settings.delay_samples) for peer in gained]
            self._watched = frozenset(peers)
            self._measured_us = {p: us for p, us in self._measured_us.items() if p in peers}
            effects.append(Announce(Watch("skip-net", self._watched)))
        if self._measured_us != self._delays_us:
            effects += self._record_changes()
            self._delays_us = dict(self._measured_us)
            roles = dict.fromkeys(self._delays_us, _ROLE)
            effects.append(Announce(Neighbours(dict(self._delays_us), roles)))
        return [*effects, *self._announce_place()]

    def _record_changes(self) -> Effects:
        old, new = self._delays_us, self._measured_us
        effects: list[Effect] = []
        for peer in sorted(old.keys() - new):
            values: dict[str, Value] = {"peer": peer, "role": _ROLE, "reason": "replaced"}
            effects.append(Record("neighbour_removed", values))
        for peer in sorted(new.keys() - old):
            values = {"peer": peer, "delay_us": new[peer], "role": _ROLE}
            effects.append(Record("neighbour_added", values))
        return effects

    def _announce_place(self) -> Effects:
        is_stable = self._is_alone or self._settled_ticks >= _STABLE_TICKS
        if self._is_placed or not is_stable:
            return ()
        self._is_placed = True
        router = NumericRouter(self.rings.nodes[self._key])
        values = {"id": as_hex(identifier_of(self.me)), "position": as_hex(self.me)}
        placed = Record("placed", values)
        return [placed, Announce(NextHop(router))]


def _key_of(peer: PeerId) -> Key:
    """The only key of a peer."""
    return Key(0, 0, peer)
