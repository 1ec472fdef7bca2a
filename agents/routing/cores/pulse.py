"""Election of the live candidate with the lowest rank, by increasing sequence numbers.

Each candidate has a rank, and the lowest live rank wins. The winner raises a sequence number from
time to time, which all other peers' messages carry. If the number does not increase, the winner is
considered dead, and counts again only with a higher number. Therefore old messages cannot revive
it, and peers need not agree on which candidates are dead.
"""


class Pulse:
    """The lowest live rank that one peer knows; its own rank is a candidate."""

    def __init__(self, own: int | None) -> None:
        self.own = own
        self.lowest = own
        self.sequence = 0
        self.changed_us = 0
        self._floor: dict[int, int] = {}  # of dead candidates: the last number of each

    @property
    def is_mine(self) -> bool:
        """Whether this peer is the winner."""
        return self.own is not None and self.lowest == self.own

    def beat(self, now_us: int) -> None:
        """Raise the own number; it follows the time, so it is higher after a restart, too."""
        self.sequence = max(self.sequence + 1, now_us // 1_000) & 0xFFFFFFFF
        self.changed_us = now_us

    def is_news(self, rank: int, sequence: int) -> bool:
        """Whether a rank is lower than all live ones, or the same with a higher number."""
        if rank == self.own or sequence <= self._floor.get(rank, -1):
            return False
        if self.lowest is None or rank < self.lowest:
            return True
        return rank == self.lowest and sequence > self.sequence

    def adopt(self, now_us: int, rank: int, sequence: int) -> None:
        """Adopt a rank and number from a message."""
        self.lowest, self.sequence, self.changed_us = rank, sequence, now_us

    def expire(self, now_us: int, patience_us: int) -> bool:
        """Give up a winner whose number has not increased for long; returns whether it did."""
        if self.lowest is None or self.is_mine or now_us - self.changed_us <= patience_us:
            return False
        self.give_up(now_us)
        return True

    def give_up(self, now_us: int) -> None:
        """Consider the winner dead until a higher number arrives."""
        if self.lowest is not None:
            self._floor[self.lowest] = self.sequence
        self.lowest, self.sequence, self.changed_us = self.own, 0, now_us
