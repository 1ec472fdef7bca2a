"""Fingers: a far link in each phase of clockwise distance (Stoica et al., SIGCOMM 2001).

A rule determines the wanted position in each phase. The finger is the root of that position, or
else the first peer of the phase; an empty phase has no finger.
"""

from collections.abc import Iterable, Sequence
from random import Random

from agents.announcements import Place
from agents.overlays.ring.circle import Circle, Phase
from agents.protocol import PeerId


class FingerRule:
    """The rule of the wanted distance in each phase: `chord`, the nearest."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        self.phases = tuple(phases)

    def wanted(self, index: int) -> int:
        """The wanted clockwise distance in a phase."""
        return self.phases[index].start

    def note_root(self, index: int, root: Place | None) -> None:
        """Record the root of the wanted position; None stands for this peer."""


class RandomFingers(FingerRule):
    """A random distance, drawn once for each phase, in whole spacings."""

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
    """Planned positions, one in each phase; the first position of a phase without a plan."""

    def __init__(self, phases: Sequence[Phase], distances: Sequence[int]) -> None:
        super().__init__(phases)
        self._distances = distances or [phase.start for phase in phases]

    def wanted(self, index: int) -> int:
        """The planned distance."""
        return self._distances[index]


class Fingers:
    """The fingers of a peer by phase, and the phases whose finger must still be found."""

    def __init__(self, me: Place, circle: Circle, rule: FingerRule) -> None:
        self._me = me
        self._circle = circle
        self.rule = rule
        self.version = 0
        self._held: dict[int, Place] = {}
        self._first: set[int] = set()  # phases without a peer at or after the wanted position

    @property
    def places(self) -> list[Place]:
        """The fingers, each once."""
        return list(dict.fromkeys(self._held[index] for index in sorted(self._held)))

    @property
    def roles(self) -> Iterable[tuple[int, Place]]:
        """Each phase with a finger, and the finger."""
        return sorted(self._held.items())

    def phases_beyond(self, successor: Place | None) -> list[int]:
        """The phases that may have peers."""
        if successor is None:
            return []
        nearest = self._circle.distance(self._me.position, successor.position)
        return [i for i, phase in enumerate(self.rule.phases) if nearest < phase.end]

    def begin(self, index: int) -> None:
        """Start to look for the finger of a phase at the wanted position."""
        self._first.discard(index)

    def position(self, index: int) -> int:
        """The position whose root is to be looked up for a phase."""
        distance = self.rule.wanted(index)
        if index in self._first:
            distance = self.rule.phases[index].start
        return (self._me.position + distance) % self._circle.modulus

    def settle(self, index: int, root: Place | None) -> bool:
        """Use the root of the position; returns whether another position must be looked up."""
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
        """Remove the fingers of all other phases."""
        for index in sorted(self._held.keys() - set(indices)):
            self._hold(index, None)

    def lose(self, peer: PeerId) -> list[int]:
        """Remove a peer; returns the phases that are empty then."""
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
