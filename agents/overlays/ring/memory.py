"""The peers that a peer remembers beyond its tables: those it knew first, and those it lost.

Whoever was lost may be in another part of a partitioned network. Looking up one's own position by
way of a remembered peer joins the two rings again once both parts can talk to each other.
"""

from collections.abc import Iterable
from random import Random

from agents.protocol import PeerId

_MOST_LOST = 32


class Memory:
    """Contacts, and peers that were lost, the latest last."""

    def __init__(self, contacts: Iterable[PeerId], random: Random, doubted_us: int) -> None:
        """Contacts are known; within `doubted_us` all others drop a peer that is dead."""
        self._contacts = tuple(contacts)
        self._random = random
        self._doubted_us = doubted_us
        self._lost_us: dict[PeerId, int] = {}
        self._last_us: int | None = None

    def lose(self, now_us: int, peer: PeerId) -> None:
        """Remember a peer that was lost, instead of the one that was lost first of many."""
        self._lost_us.pop(peer, None)
        self._lost_us[peer] = self._last_us = now_us
        if len(self._lost_us) > _MOST_LOST:
            del self._lost_us[next(iter(self._lost_us))]

    def hear(self, peer: PeerId) -> None:
        """Note that a peer is alive."""
        self._lost_us.pop(peer, None)

    def is_doubtful(self, now_us: int, peer: PeerId) -> bool:
        """Whether a peer was lost so lately that others may not know it."""
        lost_us = self._lost_us.get(peer)
        return lost_us is not None and now_us - lost_us < self._doubted_us

    def has_doubts(self, now_us: int) -> bool:
        """Whether any peer may be doubtful."""
        return self._last_us is not None and now_us - self._last_us < self._doubted_us

    def all(self) -> list[PeerId]:
        """All that are remembered."""
        return list(dict.fromkeys((*self._contacts, *self._lost_us)))

    def draw(self) -> PeerId | None:
        """One of them, or None if there is none."""
        known = self.all()
        return self._random.choice(known) if known else None
