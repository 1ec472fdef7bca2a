"""The similarity of the traffic of two peers (Tariq, Koldehofe and Rothermel, DEBS 2013, section
5).

Of the last psi events of the system, a peer keeps those that it matched or produced. The similarity
of two peers is the Jaccard index, the common events divided by those of either peer:

    sim = |A and B| / |A or B|    dsim = (1 - sim) * alpha    w = delay + dsim

The paper adds a delay and a dissimilarity, so alpha has the unit of delays, here microseconds. It
is added to the delay of a link between peers with nothing in common.

If neither peer had any of the events, the fraction is 0 / 0. For the weight of a link such peers
count as alike: as long as nothing is known, delays alone decide. For strategies that look for
similar peers they count as not similar: similar peers consume the same events, these consume none.

No peer knows all events of the system. Events are numbered from 1, and a peer's window ends at the
highest number that it has heard of. Two windows are compared on the psi events before the later
end.
"""

from msgspec import Struct

from agents.wire.codec import U32


class EventWindow(Struct, frozen=True):
    """The last events that a peer matched or produced, as sent in messages.

    The lowest bit of `matched`, a big-endian number, is event `newest`, the next is the one before.
    """

    newest: U32
    matched: bytes


class RecentEvents:
    """The window of one peer as events arrive."""

    def __init__(self, psi: int) -> None:
        if psi < 1:
            raise ValueError(f"psi: expected at least 1 event, found {psi}")
        self.psi = psi
        self.newest = 0
        self._matched = 0

    def hear_of(self, number: int) -> None:
        """An event with this number exists; those before the last psi are removed."""
        if number > self.newest:
            self._matched = _moved(self._matched, number - self.newest, self.psi)
            self.newest = number

    def note(self, number: int) -> None:
        """The peer has matched or produced an event; one that is too old is ignored."""
        self.hear_of(number)
        age = self.newest - number
        if age < self.psi:
            self._matched |= 1 << age

    def window(self) -> EventWindow:
        """The window for a message: at most about psi / 8 bytes, fewer if it begins with zeros."""
        size = (self._matched.bit_length() + 7) // 8
        return EventWindow(self.newest, self._matched.to_bytes(size))


def similarity(one: EventWindow, other: EventWindow, psi: int) -> float:
    """Common events divided by those of either peer, 0 if there are none."""
    common, either = _counts(one, other, psi)
    return common / either if either else 0.0


def dissimilarity_us(one: EventWindow, other: EventWindow, psi: int, alpha_us: int) -> int:
    """The dissimilarity, from 0 (the same events) to alpha (none in common)."""
    common, either = _counts(one, other, psi)
    return alpha_us * (either - common) // either if either else 0


def weight_us(delay_us: int, dissimilarity_us: int) -> int:
    """The weight of an overlay link; that of a path is the sum over its links."""
    return delay_us + dissimilarity_us


def _counts(one: EventWindow, other: EventWindow, psi: int) -> tuple[int, int]:
    """The number of the last psi events that both had, and that at least one of them had."""
    newest = max(one.newest, other.newest)
    a, b = (
        _moved(int.from_bytes(window.matched), newest - window.newest, psi)
        for window in (one, other)
    )
    return (a & b).bit_count(), (a | b).bit_count()


def _moved(matched: int, steps: int, psi: int) -> int:
    """A window moved to a later end."""
    # A peer may send any number; a shift by billions of bits would take all memory.
    return (matched << steps) & ((1 << psi) - 1) if steps < psi else 0
