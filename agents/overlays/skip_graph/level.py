"""What a key knows of its ring on one level."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.overlays.skip_graph.keys import Key, common_levels

_FEWEST_RIGHTS = 4  # so many neighbours in a row may fail at once
_MOST_RIGHTS = 64  # whatever a neighbour says


@dataclass(slots=True)
class Level:
    """The neighbours of a key on one level.

    `rights` are the next ones to the right. There are at least some, and so many that another peer
    with the same next bit and one with the other bit are among them, or all of the ring: then it
    `is_closed`. So a key knows its neighbour on the next level, and whether its ring has both bits.
    `left` is the key that is known to point here. `asked` is the key that was last asked to do so,
    at `asked_us`, after so many `steps`; `hinted` was told that it should be the right neighbour.
    """

    number: int
    me: Key
    rights: tuple[Key, ...] = ()
    is_closed: bool = True
    left: Key | None = None
    asked: Key | None = None
    asked_us: int = 0
    steps: int = 0
    hinted: Key | None = None

    @property
    def right(self) -> Key:
        """The right neighbour; this key itself if it is alone."""
        return self.rights[0] if self.rights else self.me

    @property
    def is_alone(self) -> bool:
        """Whether no other key is known to be on the ring."""
        return not self.rights

    @property
    def is_settled(self) -> bool:
        """Whether nothing is about to change, as far as this key knows."""
        return self.asked is None and self.is_alone == (self.left is None) and self._is_enough()

    @property
    def partner(self) -> Key | None:
        """The first key of another peer to the right that is on the next level."""
        for key in self.rights:
            if key.peer != self.me.peer and common_levels(key, self.me) > self.number:
                return key
        return None

    def set_rights(self, rights: Sequence[Key]) -> bool:
        """Take over the keys to the right, of which this key may be the last; was it news?"""
        old = self.rights, self.is_closed
        others: list[Key] = []
        self.is_closed = False
        has_same = has_other = False
        for key in rights[:_MOST_RIGHTS]:
            if key == self.me:
                self.is_closed = True
                break
            if common_levels(key, self.me) < self.number or key in others:
                continue
            if len(others) >= _FEWEST_RIGHTS and has_same and has_other:
                break
            others.append(key)
            if key.peer != self.me.peer:
                is_same = common_levels(key, self.me) > self.number
                has_same, has_other = has_same or is_same, has_other or not is_same
        self.rights, self.is_closed = tuple(others), self.is_closed or not others
        return old != (self.rights, self.is_closed)

    def after(self, key: Key) -> tuple[Key, ...]:
        """The keys to the right of one that is among them."""
        return self.rights[self.rights.index(key) + 1 :]

    def _is_enough(self) -> bool:
        if self.is_closed:
            return True
        shared = [common_levels(key, self.me) > self.number for key in self.rights]
        return any(shared) and not all(shared)
