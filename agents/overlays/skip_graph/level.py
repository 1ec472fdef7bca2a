"""The knowledge of a key about its ring on one level."""

from collections.abc import Sequence
from dataclasses import dataclass

from agents.overlays.skip_graph.keys import Key, common_levels

_FEWEST_RIGHTS = 4  # number of consecutive neighbours that may fail at once
_MOST_RIGHTS = 64  # even if a neighbour names more


@dataclass(slots=True)
class Level:
    """The neighbours of a key on one level.

    `rights` are the next keys to the right: a minimum number, and enough that another peer with the
    same next bit and one with the other bit are among them, or all of the ring: then the level
    `is_closed`. So a key knows its neighbour on the next level, and whether its ring has both bits.
    `left` is the key whose right neighbour this key is. `asked` is the key that was last asked to
    become that, at `asked_us`, after `steps` steps; `hinted` is the key that was notified that this
    one is its left neighbour.
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
        """Whether no change is known to be under way."""
        return self.asked is None and self.is_alone == (self.left is None) and self._is_enough()

    @property
    def partner(self) -> Key | None:
        """The first key of another peer to the right that is on the next level."""
        for key in self.rights:
            if key.peer != self.me.peer and common_levels(key, self.me) > self.number:
                return key
        return None

    def set_rights(self, rights: Sequence[Key]) -> bool:
        """Replace the keys to the right (possibly up to this key); returns whether they changed."""
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
        """The keys to the right of one of them."""
        return self.rights[self.rights.index(key) + 1 :]

    def _is_enough(self) -> bool:
        if self.is_closed:
            return True
        shared = [common_levels(key, self.me) > self.number for key in self.rights]
        return any(shared) and not all(shared)
