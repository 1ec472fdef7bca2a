"""Measurement of peers that may become entries, some at a time."""

from collections.abc import Callable, Iterable

from agents.protocol import Delay, Effect, MeasureDelay, PeerId

_AT_ONCE = 32
_MOST_WAITING = 1_024  # even if others name it
_MOST_MEASURED = 256
_SILENT_US = 10_000_000


class Probing:
    """Measures peers and stores delays; a silent peer is not measured again for some time."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self._under_way: set[PeerId] = set()
        self._waiting: dict[PeerId, None] = {}  # in the order of measurement
        self._missed: set[PeerId] = set()  # peers that did not answer the first time
        self._silent_us: dict[PeerId, int] = {}  # with the time of their silence
        self.measured_us: dict[PeerId, int] = {}  # one-way delays, the last measured last

    @property
    def is_busy(self) -> bool:
        """Whether peers are still to be measured."""
        return bool(self._under_way or self._waiting)

    def add(self, now_us: int, peers: Iterable[PeerId]) -> None:
        """Add peers to measure, unless they were silent a short time ago."""
        for peer in peers:
            silent_us = self._silent_us.get(peer)
            if silent_us is not None and now_us < silent_us + _SILENT_US:
                continue
            if peer not in self._under_way and len(self._waiting) < _MOST_WAITING:
                self._waiting[peer] = None

    def start(self, is_wanted: Callable[[PeerId], bool]) -> list[Effect]:
        """Begin measurements of peers that are still wanted, up to the limit of parallel ones."""
        effects: list[Effect] = []
        while self._waiting and len(self._under_way) < _AT_ONCE:
            peer = next(iter(self._waiting))
            del self._waiting[peer]
            if is_wanted(peer):
                self._under_way.add(peer)
                effects.append(MeasureDelay(peer, self._samples))
            else:
                self._missed.discard(peer)
        return effects

    def on_delay(self, now_us: int, delay: Delay) -> int | None:
        """The one-way delay to a peer that was measured; None if it was silent.

        A peer is asked a second time, because packets may be lost.
        """
        peer = delay.target
        is_asked = peer in self._under_way
        self._under_way.discard(peer)
        if not delay.samples_us:
            if is_asked and peer not in self._missed:
                self._missed.add(peer)
                self._waiting[peer] = None
            else:
                self.avoid(now_us, peer)
            return None
        self.hear(peer)
        self.measured_us.pop(peer, None)
        self.measured_us[peer] = delay.min_us // 2
        if len(self.measured_us) > _MOST_MEASURED:
            del self.measured_us[next(iter(self.measured_us))]
        return delay.min_us // 2

    def avoid(self, now_us: int, peer: PeerId) -> None:
        """Consider a peer dead until it sends a message."""
        self._waiting.pop(peer, None)
        self._missed.discard(peer)
        self.measured_us.pop(peer, None)
        self._silent_us.pop(peer, None)
        self._silent_us[peer] = now_us
        if len(self._silent_us) > _MOST_MEASURED:
            del self._silent_us[next(iter(self._silent_us))]

    def hear(self, peer: PeerId) -> None:
        """A message of a peer has arrived."""
        self._missed.discard(peer)
        self._silent_us.pop(peer, None)

    def fitting(self, is_fit: Callable[[PeerId], bool]) -> list[PeerId]:
        """The measured peers that meet a condition."""
        return [peer for peer in self.measured_us if is_fit(peer)]
