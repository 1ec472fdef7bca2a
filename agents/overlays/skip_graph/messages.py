"""The messages between neighbours on the rings of a skip graph.

Each is from the key `of` to the key `to`, about one level.
"""

from msgspec import Struct

from agents.overlays.skip_graph.keys import Key
from agents.wire.codec import U8, message


@message(200, role="join")
class SetRight(Struct, frozen=True):
    """A request: make me your right neighbour, if your present one is `expected`."""

    level: U8
    to: Key
    of: Key
    expected: Key


@message(201, role="join")
class RightSet(Struct, frozen=True):
    """Agreement: the receiver is the right neighbour; on a closed ring, it ends `rights`."""

    level: U8
    to: Key
    of: Key
    rights: tuple[Key, ...]


@message(202, role="join")
class Refused(Struct, frozen=True):
    """Refusal: ask this key. If it is the sender, its right neighbour is not the expected one."""

    level: U8
    to: Key
    of: Key
    ask: Key
    expected: Key


@message(203, role="join")
class SetLeft(Struct, frozen=True):
    """A notification: the key `left` is, or should be, the left neighbour of the receiver."""

    level: U8
    to: Key
    of: Key
    left: Key


@message(204, role="control")
class Rights(Struct, frozen=True):
    """The sender's next neighbours to the right, the nearest first."""

    level: U8
    to: Key
    of: Key
    rights: tuple[Key, ...]


@message(205, role="join")
class Unlink(Struct, frozen=True):
    """The sender leaves; these were its neighbours."""

    level: U8
    to: Key
    of: Key
    left: Key
    right: Key


RING_MESSAGES = (SetRight, RightSet, Refused, SetLeft, Rights, Unlink)
RingMessage = SetRight | RightSet | Refused | SetLeft | Rights | Unlink
