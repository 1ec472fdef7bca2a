"""One key on the rings of a skip graph: it links itself, level by level, and mends its links.

Each key is responsible for its own link from the left. It asks a key that is on the same ring to
point right to it (`SetRight`). That key does so if its right neighbour is the one expected, and
tells the former one (`SetLeft`); or it names one that is closer (`Refused`), until there is none.
A right pointer is never wrong about order: it moves to a closer key when asked, and farther only
when its key is lost or leaves.

We depart from DDLL in three ways. Keys are never locked out while they join: each begins as a ring
of its own on every level, and two rings that meet merge key by key, also after a partition of the
network. The left pointer has no sequence number, as it is a copy that its owner checks: a key that
is told of another left neighbour asks that one to point to it. And a key whose right neighbour
fails goes on with the next of its `rights`, so repair begins on both sides.
"""

from collections.abc import Callable, Sequence

from agents.overlays.skip_graph.keys import Key, closest_before, common_levels, is_between
from agents.overlays.skip_graph.level import Level
from agents.overlays.skip_graph.messages import (
    Refused,
    Rights,
    RightSet,
    RingMessage,
    SetLeft,
    SetRight,
    Unlink,
)
from agents.protocol import PeerId

_MOST_LEVELS = 64
_MOST_STEPS = 200
_PATIENCE_US = 2_500_000  # until a key that was asked is taken for silent


class VirtualNode:
    """A key with its levels; `send` takes its messages, `is_lost` tells which peers are dead."""

    def __init__(
        self, key: Key, send: Callable[[RingMessage], None], is_lost: Callable[[PeerId], bool]
    ) -> None:
        self.key = key
        self.levels = [Level(0, key)]
        self._send = send
        self._is_lost = is_lost

    @property
    def known(self) -> set[Key]:
        """All keys that this one knows."""
        found = {key for level in self.levels for key in level.rights}
        return found | {level.left for level in self.levels if level.left is not None}

    @property
    def neighbours(self) -> set[Key]:
        """The keys next to this one on any level."""
        rights = {level.right for level in self.levels}
        lefts = {level.left for level in self.levels if level.left is not None}
        return (rights | lefts) - {self.key}

    @property
    def is_settled(self) -> bool:
        """Whether nothing is about to change on any level, as far as this key knows."""
        return all(level.is_settled for level in self.levels)

    def seek(self, now_us: int, number: int, start: Key) -> None:
        """Look for the left neighbour on a level, from a key of that ring on."""
        level = self.levels[number]
        level.steps = 0
        self._ask(now_us, level, start, expected=start)

    def check(self, now_us: int, starts: Sequence[Key]) -> None:
        """See whether left neighbours point here, and whether levels fit those below them.

        From `starts`, the left neighbour on level 0 is looked for, which may be in another ring.
        """
        while len(self.levels) > 1 and self.levels[-1].is_alone and self.levels[-2].is_alone:
            self.levels.pop()
        for level in list(self.levels):
            start = level.left or next(iter(self._starts(level.number)), None)
            if start is not None:
                self.seek(now_us, level.number, start)
            self._climb(now_us, level, is_check=True)
        if starts:
            self.seek(now_us, 0, starts[0])

    def try_again(self, now_us: int, starts: Sequence[Key]) -> None:
        """Ask somebody else where one that was asked is silent."""
        for level in self.levels:
            is_overdue = level.asked is not None and now_us > level.asked_us + _PATIENCE_US
            is_cut_off = level.asked is None and level.left is None and not level.is_alone
            if is_overdue or is_cut_off:
                others = self._starts(level.number) or (starts if level.number == 0 else ())
                others = [key for key in others if key != level.asked] or list(others)
                level.asked = None
                if others:
                    self.seek(now_us, level.number, others[now_us // 7 % len(others)])

    def on_message(self, now_us: int, message: RingMessage) -> None:
        """Follow a message to this key, or to its peer if the sender did not know its key."""
        if message.of == self.key or message.level > min(
            _MOST_LEVELS - 1, common_levels(message.of, self.key)
        ):
            return
        if isinstance(message, SetRight):
            self._on_set_right(now_us, message)
        elif message.level < len(self.levels):
            level = self.levels[message.level]
            match message:
                case RightSet():
                    self._on_right_set(now_us, level, message)
                case Refused():
                    self._on_refused(now_us, level, message)
                case SetLeft():
                    self._on_set_left(now_us, level, message)
                case Rights():
                    if message.of == level.right:
                        self._set_rights(now_us, level, (message.of, *message.rights))
                case Unlink():
                    self._on_unlink(now_us, level, message)

    def lose(self, now_us: int, peer: PeerId) -> None:
        """Do without the keys of a peer that is dead."""
        for level in self.levels:
            self._drop(now_us, level, {key for key in level.rights if key.peer == peer})
            if level.left is not None and level.left.peer == peer:
                level.left = None
            if level.asked is not None and level.asked.peer == peer:
                level.asked = None
            if level.left is None and level.asked is None and not level.is_alone:
                self.seek(now_us, level.number, level.right)

    def leave(self) -> None:
        """Tell the neighbours on all levels of each other."""
        for level in self.levels:
            left = level.left or self.key
            for to in dict.fromkeys((left, level.right)):
                if to != self.key:
                    self._send(Unlink(level.number, to, self.key, left, level.right))

    def _ask(self, now_us: int, level: Level, to: Key, expected: Key) -> None:
        level.asked, level.asked_us = to, now_us
        level.steps += 1
        self._send(SetRight(level.number, to, self.key, expected))

    def _on_set_right(self, now_us: int, ask: SetRight) -> None:
        """Point right to a key that is the next one, or say who may."""
        level = self._level(ask.level)
        new, right = ask.of, level.right
        if right == new:
            self._reply_set(level, new)
        elif not is_between(self.key, new, right):
            better = closest_before(new, right, self._starts(ask.level, new))
            self._send(Refused(level.number, new, self.key, better, better))
        elif ask.expected != right:
            self._send(Refused(level.number, new, self.key, self.key, right))
        else:
            beyond = (*level.rights, self.key) if level.is_closed else level.rights
            self._set_rights(now_us, level, (new, *beyond))
            self._reply_set(level, new)
            self._hint(now_us, level, right, new)

    def _reply_set(self, level: Level, new: Key) -> None:
        self._send(RightSet(level.number, new, self.key, _from(level, new)))

    def _on_right_set(self, now_us: int, level: Level, told: RightSet) -> None:
        """Take a key that points here as the left neighbour, and what came after it as one's own.

        A former left neighbour has to find the new one.
        """
        former, left = level.left, told.of
        if level.asked == left:
            level.asked = None
        elif former is not None and not is_between(former, left, self.key):
            self._hint(now_us, level, former, left)
            return
        level.left = left
        if former == left:
            self._compare_rights(level, told)
            return
        right, rights = level.right, [key for key in told.rights if not self._is_lost(key.peer)]
        if level.is_alone and rights in ([], [self.key]):
            rights = [left, self.key]
        if rights and is_between(self.key, rights[0], right):
            self._set_rights(now_us, level, rights)
            self._hint(now_us, level, right, rights[0])
        self._tell_rights(level)
        if former is not None:
            self._hint(now_us, level, left, former)

    def _compare_rights(self, level: Level, told: RightSet) -> None:
        """Tell the left neighbour again what is to the right if it believes something else."""
        seen = Level(level.number, told.of)
        seen.set_rights((self.key, *level.rights))
        if told.rights != _from(seen, self.key):
            self._tell_rights(level)

    def _on_refused(self, now_us: int, level: Level, told: Refused) -> None:
        """Ask the next one; a key that is dead will soon be replaced where it was named."""
        is_wrong = told.ask == self.key or common_levels(told.ask, self.key) < level.number
        if level.asked != told.of or is_wrong or level.steps > _MOST_STEPS:
            return
        if not self._is_lost(told.ask.peer):
            self._ask(now_us, level, told.ask, told.expected)

    def _on_set_left(self, now_us: int, level: Level, told: SetLeft) -> None:
        """Ask a key that points here, or should, to do so; it may have to ask the left neighbour.

        That is where this key has a closer left neighbour, which has to be found from there.
        """
        new = told.left
        if new in (self.key, level.left) or self._is_lost(new.peer):
            return
        if common_levels(new, self.key) < level.number:
            return
        if level.left is None or is_between(level.left, new, self.key):
            level.steps = 0
            self._ask(now_us, level, new, expected=self.key)
        else:
            self._hint(now_us, level, level.left, new)

    def _on_unlink(self, now_us: int, level: Level, told: Unlink) -> None:
        """Close the gap that a key leaves behind."""
        if told.of in level.rights:
            rights = [key for key in level.rights if key != told.of]
            if level.right == told.of and told.right not in (told.of, *rights[:1]):
                rights.insert(0, told.right)
            end = (self.key,) if level.is_closed else ()
            self._set_rights(now_us, level, (*rights, *end))
        if level.left == told.of:
            level.left = level.asked = None
            if told.left not in (self.key, told.of):
                self.seek(now_us, level.number, told.left)

    def _drop(self, now_us: int, level: Level, gone: set[Key]) -> None:
        """Do without some keys; the next one takes the place of the right neighbour."""
        if not gone:
            return
        right = level.right
        rights = [key for key in level.rights if key not in gone]
        if not rights and level.number > 0:
            partner = self.levels[level.number - 1].partner
            rights = [partner] if partner is not None and partner not in gone else []
        end = (self.key,) if level.is_closed and rights else ()
        self._set_rights(now_us, level, (*rights, *end))
        if level.right not in (right, self.key):
            self._hint(now_us, level, level.right, self.key)

    def _hint(self, now_us: int, level: Level, to: Key, left: Key) -> None:
        """Tell a key of one that points to it, or should."""
        hint = SetLeft(level.number, to, self.key, left)
        if to == self.key:
            self._on_set_left(now_us, level, hint)
        elif to != left:
            self._send(hint)

    def _set_rights(self, now_us: int, level: Level, rights: Sequence[Key]) -> None:
        """Have other neighbours to the right; the left one and the next level depend on them."""
        if not level.set_rights(rights):
            return
        if level.is_alone:
            level.left = level.asked = None
        self._tell_rights(level)
        self._climb(now_us, level)

    def _tell_rights(self, level: Level) -> None:
        if level.left is not None:
            self._send(Rights(level.number, level.left, self.key, level.rights))

    def _climb(self, now_us: int, level: Level, is_check: bool = False) -> None:
        """Link on the next level if another peer is there, or see whether both levels agree."""
        partner = level.partner
        if partner is None or level.number + 1 >= _MOST_LEVELS:
            return
        above = self._level(level.number + 1)
        if above.is_alone:
            if above.asked is None:
                self.seek(now_us, above.number, partner)
        elif is_between(self.key, partner, above.right) and (is_check or above.hinted != partner):
            above.hinted = partner
            self._hint(now_us, above, partner, self.key)

    def _level(self, number: int) -> Level:
        while len(self.levels) <= number:
            self.levels.append(Level(len(self.levels), self.key))
        return self.levels[number]

    def _starts(self, number: int, of: Key | None = None) -> list[Key]:
        """The keys known that are on the ring of a key on a level."""
        other = of or self.key
        return sorted(
            key
            for key in self.known
            if key != other and common_levels(key, other) >= number and not self._is_lost(key.peer)
        )


def _from(level: Level, right: Key) -> tuple[Key, ...]:
    """What is to the right of a right neighbour, up to itself where the ring is known to end."""
    end = (level.me, right) if level.is_closed else ()
    return (*level.after(right), *end)
