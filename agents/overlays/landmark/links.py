"""The overlay links of a peer: their liveness and delay.

While many peers join, links change often. Therefore a new link is measured and announced only from
the next heartbeat on.
"""

from collections.abc import Collection

from agents.protocol import (
    Announce,
    Delay,
    Effect,
    MeasureDelay,
    Neighbours,
    PeerId,
    Record,
)

_DOUBTED_AFTER = 2  # heartbeats


class Links:
    """The neighbours of a peer; one is announced once its delay is known."""

    def __init__(self, heartbeat_us: int, missed_heartbeats: int) -> None:
        self._heartbeat_us = heartbeat_us
        self._patience_us = heartbeat_us * missed_heartbeats
        self._heard_us: dict[PeerId, int] = {}
        self._delays_us: dict[PeerId, int] = {}  # at any time
        self._unmeasured: set[PeerId] = set()
        self._announced: dict[PeerId, int] = {}

    def hear(self, now_us: int, peer: PeerId) -> None:
        """Record a sign of life of a peer."""
        if peer in self._heard_us:
            self._heard_us[peer] = now_us

    def lost(self, now_us: int) -> list[PeerId]:
        """The neighbours that missed too many heartbeats."""
        return sorted(
            p for p, at_us in self._heard_us.items() if now_us - at_us > self._patience_us
        )

    def is_doubted(self, now_us: int, peer: PeerId) -> bool:
        """Whether to ask a neighbour for a sign of life now: once in each silence."""
        silent_for = (now_us - self._heard_us.get(peer, now_us)) // self._heartbeat_us
        return silent_for == _DOUBTED_AFTER

    def update(self, now_us: int, neighbours: Collection[PeerId], reason: str) -> list[Effect]:
        """Replace the neighbours; removed ones are recorded with a reason."""
        new = sorted(peer for peer in neighbours if peer not in self._heard_us)
        gone = sorted(peer for peer in self._heard_us if peer not in neighbours)
        if not new and not gone:
            return []
        self._heard_us.update((peer, now_us) for peer in new)
        effects = [effect for peer in new for effect in self._welcome(peer)]
        for peer in gone:
            del self._heard_us[peer]
            self._unmeasured.discard(peer)
            if self._announced.pop(peer, None) is not None:
                effects.append(Record("neighbour_removed", {"peer": peer, "reason": reason}))
        return [*effects, self._announce()]

    def measure(self) -> list[Effect]:
        """Measure the delays to new neighbours."""
        effects = [MeasureDelay(peer) for peer in sorted(self._unmeasured)]
        self._unmeasured.clear()
        return list(effects)

    def on_delay(self, delay: Delay) -> list[Effect]:
        """Record the delay to a neighbour; one that did not answer is measured again."""
        if delay.samples_us:
            self._delays_us[delay.target] = delay.min_us // 2
        if delay.target not in self._heard_us or delay.target in self._announced:
            return []
        return [*self._welcome(delay.target), self._announce()]

    def _welcome(self, peer: PeerId) -> list[Effect]:
        delay_us = self._delays_us.get(peer)
        if delay_us is None:
            self._unmeasured.add(peer)
            return []
        self._announced[peer] = delay_us
        values = {"peer": peer, "delay_us": delay_us, "is_distant": False}
        return [Record("neighbour_added", values)]

    def _announce(self) -> Announce:
        return Announce(Neighbours(dict(self._announced)))
