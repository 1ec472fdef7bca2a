"""The subscriptions announced over one link, as few as say the same.

Subscriptions are forwarded over a tree, and a peer need not tell its neighbour of one that
is covered by another (Carzaniga, Rosenblum and Wolf, "Design and evaluation of a wide-area event
notification service", ACM TOCS 19(3), 2001), nor of two whose union is a box (Mühl, "Large-scale
content-based publish/subscribe systems", PhD thesis, TU Darmstadt, 2002). Each announced box
stands for a group of held subscriptions, so that a withdrawal brings back what it had hidden.

Which boxes are announced depends on the order of additions, their union does not. A box that
only several others together cover is announced all the same: finding those takes more than
comparing pairs.
"""

from collections import Counter
from typing import NamedTuple

from agents.subscription import ContentError, Subscription, bounding_merge, perfect_merge

_Group = dict[Subscription, None]  # a set that keeps its order


class Change(NamedTuple):
    """What to tell the neighbour, each in order of number."""

    added: tuple[Subscription, ...] = ()
    withdrawn: tuple[Subscription, ...] = ()


class Filter:
    """Held subscriptions, some more than once, and the announced boxes that stand for them.

    Merges may add `extra_points` points each that nobody asked for: by default none.
    """

    def __init__(self, extra_points: int = 0) -> None:
        self._extra_points = extra_points
        self._held: Counter[Subscription] = Counter()
        self._groups: dict[Subscription, _Group] = {}
        self._announced_by: dict[Subscription, Subscription] = {}
        self._balance: Counter[Subscription] = Counter()  # of announcements in one operation

    @property
    def announced(self) -> tuple[Subscription, ...]:
        """What the neighbour has been told, in order of number."""
        return tuple(sorted(self._groups))

    def __contains__(self, subscription: object) -> bool:
        """Whether a subscription is held, announced or not."""
        return subscription in self._held

    def __len__(self) -> int:
        """How many different subscriptions are held."""
        return len(self._held)

    def add(self, subscription: Subscription) -> Change:
        """Hold a subscription once more."""
        self._held[subscription] += 1
        if self._held[subscription] == 1:
            self._insert(subscription)
        return self._change()

    def remove(self, subscription: Subscription) -> Change:
        """Hold a subscription once less."""
        if subscription not in self._held:
            raise ContentError(f"filter: expected a held subscription, found {subscription}")
        self._held[subscription] -= 1
        if not self._held[subscription]:
            del self._held[subscription]
            self._take_out(subscription)
        return self._change()

    def _take_out(self, subscription: Subscription) -> None:
        box = self._announced_by.pop(subscription)
        group = self._groups[box]
        del group[subscription]
        if any(other.covers(subscription) for other in group):
            return  # the rest of the group has the same union
        self._withdraw(box)
        # Large ones first: most of the others are then covered, and nothing has to be merged.
        for other in sorted(group, key=lambda held: (-held.volume, held.number)):
            self._insert(other)

    def _insert(self, subscription: Subscription) -> None:
        """Let an announced box stand for a subscription: one there is, or one to be made."""
        group: _Group = {subscription: None}
        box = next((there for there in self._groups if there.covers(subscription)), None)
        if box is None:
            box = self._grow(subscription, group)
            self._groups[box] = {}
            self._balance[box] += 1
        self._groups[box].update(group)
        self._announced_by.update(dict.fromkeys(group, box))

    def _grow(self, box: Subscription, group: _Group) -> Subscription:
        """Merge a box with announced ones, whose groups join its own, until none is left."""
        for there in [there for there in self._groups if box.covers(there)]:
            group.update(self._withdraw(there))
        for there in self._groups:
            merged = self._merge(box, there)
            if merged is not None:
                group.update(self._withdraw(there))
                return self._grow(merged, group)
        return box

    def _merge(self, one: Subscription, other: Subscription) -> Subscription | None:
        if self._extra_points:
            merged, extra_points = bounding_merge(one, other)
            return merged if extra_points <= self._extra_points else None
        return perfect_merge(one, other)

    def _withdraw(self, box: Subscription) -> _Group:
        self._balance[box] -= 1
        return self._groups.pop(box)

    def _change(self) -> Change:
        """What the operation came to; what was withdrawn and made again is no change."""
        added = tuple(sorted(box for box, n in self._balance.items() if n > 0))
        withdrawn = tuple(sorted(box for box, n in self._balance.items() if n < 0))
        self._balance.clear()
        return Change(added, withdrawn)
