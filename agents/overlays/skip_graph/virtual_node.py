"""One key on the rings of a skip graph: it is linked level by level, and repairs its links.

Each key is responsible for the link from its left neighbour. It asks a key on the same ring to make
it the right neighbour (`SetRight`). That key does so if its right neighbour is the expected one,
and notifies the former one (`SetLeft`); or it names a closer key (`Refused`), until there is none.
A right pointer is never wrong about order: it moves to a closer key when asked, and farther only
when its key is lost or leaves.

We depart from DDLL in three ways. Keys need not wait while others join: each begins as a separate
ring on every level, and two rings that meet merge key by key, also after a partition of the
network. The left pointer has no sequence number, because it is a copy that its owner checks: a key
that is notified of another left neighbour asks that one to confirm it. A key whose right neighbour
fails continues with the next of its `rights`, so repair begins on both sides.
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
_PATIENCE_US = 2_500_000  # until a key that was asked counts as silent


class VirtualNode:
    """A key with its levels; `send` gets its messages, `is_lost` tests whether a peer is dead."""

    def __init__(
        self, key: Key, send: Callable[[RingMessage], None], is_lost: Callable[[PeerId], bool]
    ) -> None:
        self.key = key
        self.levels = [Level(0, key)]
        self._send = send
        self._is_lost = is_lost

    @property
    def known(self) -> set[Key]:
        """All known keys."""
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
        """Whether no change is known to be under way on any level."""
        return all(level.is_settled for level in self.levels)

    def seek(self, now_us: int, number: int, start: Key) -> None:
        """Look for the left neighbour on a level, from a key of that ring on."""
        level = self.levels[number]
        level.steps = 0
        self._ask(now_us, level, start, expected=start)

    def check(self, now_us: int, starts: Sequence[Key]) -> None:
        """Check the left neighbours, and that each level agrees with the one below.

        The left neighbour on level 0, which may be in another ring, is looked for from `starts`.
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
        """Ask another key where one was silent."""
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
        """Handle a message to this key, or to its peer if the sender did not know its key."""
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
        """Remove the keys of a dead peer."""
        for level in self.levels:
            self._drop(now_us, level, {key for key in level.rights if key.peer == peer})
            if level.left is not None and level.left.peer == peer:
                level.left = None
            if level.asked is not None and level.asked.peer == peer:
                level.asked = None
            if level.left is None and level.asked is None and not level.is_alone:
                self.seek(now_us, level.number, level.right)

    def leave(self) -> None:
        """Send the two neighbours on each level the other one."""
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
        """Make a key the right neighbour if it is the next one, or name a closer key."""
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
        """Make the sender the left neighbour, and use the keys after it.

        The former left neighbour must find the new one.
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
        """Send the left neighbour the keys to the right again if its own differ."""
        seen = Level(level.number, told.of)
        seen.set_rights((self.key, *level.rights))
        if told.rights != _from(seen, self.key):
            self._tell_rights(level)

    def _on_refused(self, now_us: int, level: Level, told: Refused) -> None:
        """Ask the named key; a dead one will soon be replaced where it was named."""
        is_wrong = told.ask == self.key or common_levels(told.ask, self.key) < level.number
        if level.asked != told.of or is_wrong or level.steps > _MOST_STEPS:
            return
        if not self._is_lost(told.ask.peer):
            self._ask(now_us, level, told.ask, told.expected)

    def _on_set_left(self, now_us: int, level: Level, told: SetLeft) -> None:
        """Ask the named key to make this one its right neighbour.

        If the present left neighbour is closer, that one is notified of the named key instead.
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
        """Remove some keys; the next one becomes the right neighbour."""
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
        """Notify a key of its left neighbour."""
        hint = SetLeft(level.number, to, self.key, left)
        if to == self.key:
            self._on_set_left(now_us, level, hint)
        elif to != left:
            self._send(hint)

    def _set_rights(self, now_us: int, level: Level, rights: Sequence[Key]) -> None:
        """Change the right neighbours; the left neighbour and the next level depend on them."""
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
        """Link on the next level if it has another peer, or check that both levels agree."""
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
        """The known keys on the ring of a key on a level."""
        other = of or self.key
        return sorted(
            key
            for key in self.known
            if key != other and common_levels(key, other) >= number and not self._is_lost(key.peer)
        )


def _from(level: Level, right: Key) -> tuple[Key, ...]:
    """The keys to the right of a right neighbour, up to itself if the ring is known to end."""
    end = (level.me, right) if level.is_closed else ()
    return (*level.after(right), *end)
