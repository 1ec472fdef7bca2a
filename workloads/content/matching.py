"""An index that finds the subscriptions that match an event.

An attribute has only eleven values. For each value, the index has the set of subscriptions that
refuse it, as the bits of one number; a subscription matches if it refuses none of the
event's five values. That is five operations on numbers with a bit for each subscription, and an
attribute that a subscription does not mention costs nothing.
"""

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from workloads.content.subscription import ATTRIBUTES, HIGHEST, VALUES, Point, Subscription

Owner = TypeVar("Owner", bound=Hashable)


class MatchIndex(Generic[Owner]):
    """Subscriptions, each with its owner, for example a neighbour or a link."""

    def __init__(self) -> None:
        self._refusing = [[0] * VALUES for _ in range(ATTRIBUTES)]
        self._taken = 0  # the places in use, as bits
        self._place: dict[tuple[Owner, Subscription], int] = {}
        self._entries: list[tuple[Owner, Subscription]] = []  # entries of free places are stale
        self._free: list[int] = []
        self._owned: dict[Owner, int] = {}  # the places of each owner, as bits

    def __len__(self) -> int:
        """The number of subscriptions, counted for each owner."""
        return len(self._place)

    def __contains__(self, entry: object) -> bool:
        """Whether an owner has a subscription, both as one tuple."""
        return entry in self._place

    def add(self, owner: Owner, subscription: Subscription) -> bool:
        """Add a subscription; returns whether it is new to its owner."""
        entry = (owner, subscription)
        if entry in self._place:
            return False
        place = self._place[entry] = self._take_place(entry)
        bit = 1 << place
        self._taken |= bit
        self._owned[owner] = self._owned.get(owner, 0) | bit
        for attribute, value in _refused(subscription):
            self._refusing[attribute][value] |= bit
        return True

    def remove(self, owner: Owner, subscription: Subscription) -> bool:
        """Remove a subscription; returns whether its owner had it."""
        place = self._place.pop((owner, subscription), None)
        if place is None:
            return False
        bit = 1 << place
        self._taken ^= bit
        self._free.append(place)
        self._owned[owner] ^= bit
        if not self._owned[owner]:
            del self._owned[owner]
        for attribute, value in _refused(subscription):
            self._refusing[attribute][value] ^= bit
        return True

    def remove_owner(self, owner: Owner) -> list[Subscription]:
        """Remove all subscriptions of an owner, and return them."""
        gone = [subscription for _, subscription in self._listed(self._owned.get(owner, 0))]
        for subscription in gone:
            self.remove(owner, subscription)
        return gone

    def count(self, point: Point) -> int:
        """The number of subscriptions that match an event."""
        return self._matching(point).bit_count()

    def matching(self, point: Point) -> list[tuple[Owner, Subscription]]:
        """The subscriptions that match an event, with their owners.

        Their order depends only on earlier additions and removals.
        """
        return self._listed(self._matching(point))

    def owners(self, point: Point) -> list[Owner]:
        """The owners with at least one subscription that matches an event, each once."""
        found = self._matching(point)
        if (
            len(self._owned) <= found.bit_count()
        ):  # many subscriptions of few owners: test each owner
            return [owner for owner, places in self._owned.items() if places & found]
        return list(dict.fromkeys(owner for owner, _ in self._listed(found)))

    def _matching(self, point: Point) -> int:
        refusing = 0
        for row, value in zip(self._refusing, point.values, strict=True):
            refusing |= row[value]
        return self._taken & ~refusing

    def _take_place(self, entry: tuple[Owner, Subscription]) -> int:
        if not self._free:
            self._entries.append(entry)
            return len(self._entries) - 1
        place = self._free.pop()
        self._entries[place] = entry
        return place

    def _listed(self, places: int) -> list[tuple[Owner, Subscription]]:
        """The entries whose bits are set."""
        # Removing the lowest bit repeatedly would copy the whole number each time.
        at, found = -1, []
        for zeros in bin(places)[:1:-1].split("1")[:-1]:
            at += len(zeros) + 1
            found.append(self._entries[at])
        return found


def _refused(subscription: Subscription) -> Iterator[tuple[int, int]]:
    """The attributes and values that a subscription refuses."""
    for attribute, (low, high) in enumerate(subscription.ranges):
        for value in (*range(low), *range(high + 1, HIGHEST + 1)):
            yield attribute, value
