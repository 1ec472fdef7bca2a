"""The failure detector of an agent: heartbeats to all peers that its other layers depend on.

A layer announces the peers that it depends on (`Watch`); the detector watches each of them once,
and announces `PeerLost` and `PeerRestarted`. `agents.kinds` puts it below overlays with
`needs_failure_detector`; their settings are a `FailureDetectorSettings`.

A peer is lost when it announces that it leaves, or when nothing is received from it for `detect_s`.
Four heartbeats are sent in that time, and five times as many once an answer is overdue, so that
lost packets are not mistaken for a lost peer. Peers that watch each other do not answer heartbeats
that are on time, because their own heartbeats are sufficient. A lost peer is not watched until a
layer announces it again.

Heartbeats carry an incarnation: the time, by the sender's clock, since when it has known the
receiver. It is the time at which the sender started, or at which it last considered the receiver
lost. So a peer that restarted and one that dropped this one by mistake are treated equally: either
has no state about this one, and `PeerRestarted` is announced.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Annotated, Any, final

from msgspec import Meta, Struct

from agents.announcements import PeerLost, PeerRestarted, Watch
from agents.protocol import (
    Announce,
    CancelTimer,
    Effect,
    Effects,
    PeerId,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
)
from agents.wire.codec import U64, message

_HEARTBEATS = 4  # in the time in which a silent peer is detected
_OVERDUE_HEARTBEATS = 20  # the same, once an answer is overdue
_OVERDUE = 1.4  # heartbeats without an answer until it is


@message(30, role="upkeep")
class Heartbeat(Struct, frozen=True):
    """The sender is up and watches the receiver."""

    incarnation: U64
    wants_answer: bool


@message(31, role="upkeep")
class Alive(Struct, frozen=True):
    """The answer to a heartbeat."""

    incarnation: U64


@message(32, role="upkeep")
class Farewell(Struct, frozen=True):
    """The sender leaves now."""


class FailureDetectorSettings(Struct, frozen=True, kw_only=True):
    """Settings of the failure detector, which overlays with one include."""

    detect_s: Annotated[
        float, Meta(gt=0, description="time of silence after which a peer is considered lost")
    ] = 3.0


@final
@dataclass(slots=True)
class _Watched:
    """A watched peer, the time of its last message, and its incarnation."""

    heard_us: int
    incarnation: int | None = None


class FailureDetector(Protocol):
    """Announces to the layers of an agent which of their watched peers failed."""

    Settings = FailureDetectorSettings
    messages = (Heartbeat, Alive, Farewell)

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._detect_us = int(self.settings.detect_s * 1e6)
        self._period_us = max(1, self._detect_us // _HEARTBEATS)
        self._watched_by: dict[str, frozenset[PeerId]] = {}
        self._watched: dict[PeerId, _Watched] = {}
        self._watchers_us: dict[PeerId, int] = {}  # time of the last heartbeat from each peer
        self._lost_us: dict[PeerId, int] = {}
        self._start_us = 0

    def on_start(self, now_us: int) -> Effects:
        """Begin an incarnation."""
        self._start_us = now_us
        return ()

    def on_stop(self, now_us: int) -> Effects:
        """Send `Farewell` to all peers that watch this one or are watched by it."""
        oldest_us = now_us - self._detect_us
        watchers = {peer for peer, at_us in self._watchers_us.items() if at_us >= oldest_us}
        return [Send(peer, Farewell()) for peer in sorted(watchers | self._watched.keys())]

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Watch the peers that layers depend on, and no others."""
        if not isinstance(content, Watch):
            return ()
        self._watched_by[content.watcher] = content.peers - {self.me}
        wanted: frozenset[PeerId] = frozenset().union(*self._watched_by.values())
        effects: list[Effect] = []
        for peer in sorted(self._watched.keys() - wanted):
            del self._watched[peer]
            effects.append(CancelTimer(peer))
        for peer in sorted(wanted - self._watched.keys()):
            self._watched[peer] = _Watched(now_us)
            effects += self._beat(now_us, peer, wants_answer=True)
            effects.append(SetTimer(peer, self.random.randrange(self._period_us)))
        return effects

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Record a sign of life, and answer it if this peer sends none to the sender."""
        if isinstance(message, Farewell):
            self._watchers_us.pop(sender, None)
            return self._lose(now_us, sender, "left") if sender in self._watched else ()
        effects = self._hear(now_us, sender, message.incarnation)
        if isinstance(message, Heartbeat):
            self._watchers_us[sender] = now_us
            if message.wants_answer or sender not in self._watched:
                return [Send(sender, Alive(self._incarnation_for(sender))), *effects]
        return effects

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Send the next heartbeat to a peer, or announce that the peer is lost."""
        assert isinstance(name, PeerId)
        silent_us = now_us - self._watched[name].heard_us
        left_us = self._detect_us - silent_us
        if left_us <= 0:
            return self._lose(now_us, name, "silent")
        is_overdue = silent_us > _OVERDUE * self._period_us
        beats = _OVERDUE_HEARTBEATS if is_overdue else _HEARTBEATS
        next_us = max(1, min(self._detect_us // beats, left_us))
        return [*self._beat(now_us, name, is_overdue), SetTimer(name, next_us)]

    def _beat(self, now_us: int, peer: PeerId, wants_answer: bool) -> Effects:
        return [Send(peer, Heartbeat(self._incarnation_for(peer), wants_answer))]

    def _incarnation_for(self, peer: PeerId) -> int:
        return max(self._start_us, self._lost_us.get(peer, 0))

    def _hear(self, now_us: int, peer: PeerId, incarnation: int) -> Effects:
        """Record a sign of life of a watched peer, unless it is of a former incarnation."""
        watched = self._watched.get(peer)
        if watched is None or incarnation < (watched.incarnation or 0):
            return ()
        is_known = watched.incarnation in (None, incarnation)
        watched.heard_us, watched.incarnation = now_us, incarnation
        if is_known:
            return ()
        restarted = Record("peer_restarted", {"peer": peer})
        return [restarted, Announce(PeerRestarted(peer, incarnation))]

    def _lose(self, now_us: int, peer: PeerId, reason: str) -> Effects:
        """Remove all state of a peer, so that a layer can watch it again from the start."""
        del self._watched[peer]
        for watcher, peers in self._watched_by.items():
            self._watched_by[watcher] = peers - {peer}
        self._lost_us[peer] = now_us
        lost = Record("peer_lost", {"peer": peer, "reason": reason})
        return [CancelTimer(peer), lost, Announce(PeerLost(peer))]
