"""Records and announcements of the links of a ring overlay."""

from collections.abc import Set as AbstractSet

from agents.announcements import RingView, Watch
from agents.protocol import (
    Announce,
    Delay,
    Effect,
    MeasureDelay,
    Neighbours,
    PeerId,
    Record,
    Value,
)

Roles = dict[PeerId, frozenset[str]]
_ROLES = ("successor", "finger")


class RingLinks:
    """The links of a ring as last recorded and announced.

    A neighbour is announced once its delay is known; a ring view names it at once.
    """

    def __init__(self, watcher: str) -> None:
        self._watcher = watcher
        self._roles: Roles = {}
        self._delays_us: dict[PeerId, int] = {}  # measured at any time
        self._view: RingView | None = None
        self._watched: AbstractSet[PeerId] = frozenset()
        self._announced: object = None

    @property
    def peers(self) -> list[PeerId]:
        """The peers at the other ends of the links."""
        return sorted(self._roles)

    def update(
        self, view: RingView | None, roles: Roles, watched: AbstractSet[PeerId]
    ) -> list[Effect]:
        """Record and announce changes; without a view, that of the ring is announced."""
        effects: list[Effect] = []
        if watched != self._watched:
            self._watched = watched
            effects.append(Announce(Watch(self._watcher, frozenset(watched))))
        if roles != self._roles:
            effects += self._change_links(roles)
        if view is not None and view != self._view:
            self._view = view
            effects.append(Announce(view))
        return [*effects, *self._announce()]

    def on_delay(self, delay: Delay) -> list[Effect]:
        """Record the delay to a neighbour; one that did not answer is measured again."""
        peer = delay.target
        if delay.samples_us:
            self._delays_us[peer] = delay.min_us // 2
            return self._announce()
        return [MeasureDelay(peer)] if peer in self._roles else []

    def _change_links(self, roles: Roles) -> list[Effect]:
        effects: list[Effect] = []
        for peer in sorted({*roles, *self._roles}):
            now, before = roles.get(peer, frozenset()), self._roles.get(peer, frozenset())
            for role in _ROLES:
                values: dict[str, Value] = {"peer": peer, "role": role}
                if role in now - before:
                    effects.append(Record("neighbour_added", values))
                elif role in before - now:
                    effects.append(Record("neighbour_removed", {**values, "reason": "changed"}))
            if now and not before and peer not in self._delays_us:
                effects.append(MeasureDelay(peer))
        self._roles = roles
        return effects

    def _announce(self) -> list[Effect]:
        """Announce the neighbours whose delays are known, if these have changed."""
        known = [peer for peer in sorted(self._roles) if peer in self._delays_us]
        roles = {peer: self._main_role(peer) for peer in known}
        if not known or (self._announced is not None and roles == self._announced):
            return []
        self._announced = roles
        return [Announce(Neighbours({peer: self._delays_us[peer] for peer in known}, roles))]

    def _main_role(self, peer: PeerId) -> str:
        return next(role for role in _ROLES if role in self._roles[peer])
