"""Who is the first among those that live: election by numbers that go on increasing.

Each candidate has a rank, and the lowest rank wins. The winner raises a sequence number from time
to time, which travels on the messages of all others. If it stands still the winner is taken for
dead, and what is heard of it counts again only with a higher number; so old news, which may go
around for a while, cannot bring it back, and it need not be known who is dead.
"""


class Pulse:
    """The lowest rank that is alive, as far as one peer knows; its own rank is a candidate."""

    def __init__(self, own: int | None) -> None:
        self.own = own
        self.lowest = own
        self.sequence = 0
        self.changed_us = 0
        self._floor: dict[int, int] = {}  # of the dead: the last number of each

    @property
    def is_mine(self) -> bool:
        """Whether this peer itself is the winner."""
        return self.own is not None and self.lowest == self.own

    def beat(self, now_us: int) -> None:
        """Raise the own number; it follows the time, so that it is new after a restart too."""
        self.sequence = max(self.sequence + 1, now_us // 1_000) & 0xFFFFFFFF
        self.changed_us = now_us

    def is_news(self, rank: int, sequence: int) -> bool:
        """Whether a rank is lower than all that live, or the same with a higher number."""
        if rank == self.own or sequence <= self._floor.get(rank, -1):
            return False
        if self.lowest is None or rank < self.lowest:
            return True
        return rank == self.lowest and sequence > self.sequence

    def adopt(self, now_us: int, rank: int, sequence: int) -> None:
        """Take over what was heard."""
        self.lowest, self.sequence, self.changed_us = rank, sequence, now_us

    def expire(self, now_us: int, patience_us: int) -> bool:
        """Give up a winner whose number has stood still for long; says whether that was so."""
        if self.lowest is None or self.is_mine or now_us - self.changed_us <= patience_us:
            return False
        self.give_up(now_us)
        return True

    def give_up(self, now_us: int) -> None:
        """Take the winner for dead, until a higher number is heard."""
        if self.lowest is not None:
            self._floor[self.lowest] = self.sequence
        self.lowest, self.sequence, self.changed_us = self.own, 0, now_us
