"""Fingers: a far link in each phase of clockwise distance (Stoica et al., SIGCOMM 2001).

A rule says which position of each phase is wanted. The finger is the root of that position, or else
the first peer of the phase; a phase that holds nobody has no finger.
"""

from collections.abc import Iterable, Sequence
from random import Random

from agents.announcements import Place
from agents.overlays.ring.circle import Circle, Phase
from agents.protocol import PeerId


class FingerRule:
    """Which distance is wanted in each phase: `chord`, the nearest."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self.phases = tuple(phases)

    def wanted(self, index: int) -> int:
        """The wanted clockwise distance in a phase."""
        return self.phases[index].start

    def note_root(self, index: int, root: Place | None) -> None:
        """Note who is the root of the wanted position; nobody but this peer if it is None."""


class RandomFingers(FingerRule):
    """Any distance at random, drawn once for each phase, in whole spacings."""

    def __init__(self, phases: Sequence[Phase], circle: Circle, random: Random) -> None:
        super().__init__(phases)
        step = circle.spacing
        self._wanted = [
            random.randrange(phase.start // step, phase.end // step) * step for phase in phases
        ]

    def wanted(self, index: int) -> int:
        """The distance that was drawn."""
        return self._wanted[index]


class PlannedFingers(FingerRule):
    """Positions that were planned, one in each phase; the first of each phase without a plan."""

    def __init__(self, phases: Sequence[Phase], distances: Sequence[int]) -> None:
        super().__init__(phases)
        self._distances = distances or [phase.start for phase in phases]

    def wanted(self, index: int) -> int:
        """The planned distance."""
        return self._distances[index]


class Fingers:
    """The fingers of a peer by phase, and which of them are still to be found."""

    def __init__(self, me: Place, circle: Circle, rule: FingerRule) -> None:
        self._me = me
        self._circle = circle
        self.rule = rule
        self.version = 0
        self._held: dict[int, Place] = {}
        self._first: set[int] = set()  # phases where nobody is at the wanted position or after it

    @property
    def places(self) -> list[Place]:
        """The fingers, each once."""
        return list(dict.fromkeys(self._held[index] for index in sorted(self._held)))

    @property
    def roles(self) -> Iterable[tuple[int, Place]]:
        """Each phase that has a finger, with it."""
        return sorted(self._held.items())

    def phases_beyond(self, successor: Place | None) -> list[int]:
        """The phases that may hold somebody."""
        if successor is None:
            return []
        nearest = self._circle.distance(self._me.position, successor.position)
        return [i for i, phase in enumerate(self.rule.phases) if nearest < phase.end]

    def begin(self, index: int) -> None:
        """Look for the finger of a phase from the wanted position on."""
        self._first.discard(index)

    def position(self, index: int) -> int:
        """The position whose root is to be looked up for a phase."""
        distance = self.rule.wanted(index)
        if index in self._first:
            distance = self.rule.phases[index].start
        return (self._me.position + distance) % self._circle.modulus

    def settle(self, index: int, root: Place | None) -> bool:
        """Take the root of the position; whether another position is to be looked up now."""
        phase = self.rule.phases[index]
        if index not in self._first:
            self.rule.note_root(index, root)
        if root is not None and phase.has(self._circle.distance(self._me.position, root.position)):
            self._hold(index, root)
        elif index not in self._first and self.rule.wanted(index) != phase.start:
            self._first.add(index)
            return True
        else:
            self._hold(index, None)
        self._first.discard(index)
        return False

    def keep(self, indices: Iterable[int]) -> None:
        """Drop the fingers of all other phases."""
        for index in sorted(self._held.keys() - set(indices)):
            self._hold(index, None)

    def lose(self, peer: PeerId) -> list[int]:
        """Drop a peer; returns the phases that it leaves empty."""
        empty = sorted(index for index, place in self._held.items() if place.peer == peer)
        for index in empty:
            self._hold(index, None)
        return empty

    def _hold(self, index: int, place: Place | None) -> None:
        if self._held.get(index) == place:
            return
        self.version += 1
        if place is None:
            del self._held[index]
        else:
            self._held[index] = place
