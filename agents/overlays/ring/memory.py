"""Peers that a peer remembers outside of its tables: its contacts, and peers that it lost.

A lost peer may be in another part of a partitioned network. Looking up the own position through
a remembered peer joins the two rings again once both parts can communicate.
"""

from collections.abc import Iterable
from random import Random

from agents.protocol import PeerId

_MOST_LOST = 32


class Memory:
    """Contacts, and peers that were lost, the latest last."""

    def __init__(self, contacts: Iterable[PeerId], random: Random, doubted_us: int) -> None:
        """Begin with the contacts; within `doubted_us`, all other peers drop a dead peer."""
        self._contacts = tuple(contacts)
        self._random = random
        self._doubted_us = doubted_us
        self._lost_us: dict[PeerId, int] = {}
        self._last_us: int | None = None

    def lose(self, now_us: int, peer: PeerId) -> None:
        """Remember a lost peer; if there are many, it replaces the first one lost."""
        self._lost_us.pop(peer, None)
        self._lost_us[peer] = self._last_us = now_us
        if len(self._lost_us) > _MOST_LOST:
            del self._lost_us[next(iter(self._lost_us))]

    def hear(self, peer: PeerId) -> None:
        """Record that a peer is alive."""
        self._lost_us.pop(peer, None)

    def is_doubtful(self, now_us: int, peer: PeerId) -> bool:
        """Whether a peer was lost so recently that others may not have noticed it."""
        lost_us = self._lost_us.get(peer)
        return lost_us is not None and now_us - lost_us < self._doubted_us

    def has_doubts(self, now_us: int) -> bool:
        """Whether any peer is doubtful."""
        return self._last_us is not None and now_us - self._last_us < self._doubted_us

    def all(self) -> list[PeerId]:
        """All remembered peers."""
        return list(dict.fromkeys((*self._contacts, *self._lost_us)))

    def draw(self) -> list[PeerId]:
        """A random remembered peer, if there is any."""
        known = self.all()
        return [self._random.choice(known)] if known else []
