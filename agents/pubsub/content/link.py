"""One link of a tree: the ordered subscription updates of its two ends.

Reliable messages arrive in any order. Each end numbers its updates within an epoch. An epoch begins
when the link is added, when the other end asks for it, or when an update was given up. Its number
is the time when it began, so epochs after a restart are later than those before.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from agents.pubsub.content.cover_table import Difference, Told
from agents.pubsub.content.messages import NUMBERS_PER_UPDATE, SubscriptionUpdate

_MOST_EARLY = 256  # updates that wait for one before them


@dataclass(slots=True)
class Incoming:
    """The updates of the other end: the epoch, the next number, and updates that arrived early."""

    epoch: int = 0
    next_serial: int = 0
    is_complete: bool = False
    early: dict[int, SubscriptionUpdate] = field(default_factory=dict)

    @property
    def is_current(self) -> bool:
        """Whether no update is missing."""
        return self.is_complete and not self.early

    def is_new_epoch(self, update: SubscriptionUpdate) -> bool:
        """Whether the other end has started a new epoch; if so, the state is reset."""
        if update.epoch <= self.epoch:
            return False
        self.epoch, self.next_serial, self.is_complete = update.epoch, 0, False
        self.early.clear()
        return True

    def in_order(self, update: SubscriptionUpdate) -> Iterator[SubscriptionUpdate]:
        """The updates that can be applied now."""
        is_late = update.epoch < self.epoch or update.serial < self.next_serial
        if is_late or len(self.early) >= _MOST_EARLY:
            return
        self.early[update.serial] = update
        while self.next_serial in self.early:
            yield self.early.pop(self.next_serial)
            self.next_serial += 1


@dataclass(slots=True)
class Outgoing:
    """The state that the other end has been sent."""

    epoch: int = 0
    serial: int = 0
    told: Told = field(default_factory=Told)

    def begin(self, now_us: int) -> None:
        """Start a new epoch with nothing sent."""
        self.epoch = max(now_us, self.epoch + 1)
        self.serial = 0
        self.told = Told()

    def updates(self, version: int, difference: Difference) -> Iterator[SubscriptionUpdate]:
        """The update as few messages; an epoch has at least one."""
        if not (difference.added or difference.withdrawn or self.serial == 0):
            return
        has_times = any(difference.added.values())
        added, withdrawn = iter(difference.added.items()), iter(difference.withdrawn)
        left = len(difference.added) * (1 + has_times) + len(difference.withdrawn)
        while True:
            now = dict(islice(added, NUMBERS_PER_UPDATE // (1 + has_times)))
            room = NUMBERS_PER_UPDATE - len(now) * (1 + has_times)
            gone = tuple(islice(withdrawn, room))
            left -= len(now) * (1 + has_times) + len(gone)
            times = tuple(now.values()) if has_times else ()
            yield SubscriptionUpdate(
                version, self.epoch, self.serial, left == 0, tuple(now), times, gone
            )
            self.serial += 1
            if left == 0:
                return


@dataclass(slots=True)
class ContentLink:
    """Both directions of a link; `kept` is what arrived while the link is not in the tree."""

    is_up: bool = False
    incoming: Incoming = field(default_factory=Incoming)
    outgoing: Outgoing = field(default_factory=Outgoing)
    kept: dict[int, int] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)  # of the last epoch, until this is complete
    moved_us: int = 0  # when the link was added, or the last update was applied
    asked: int = 0  # unanswered requests
