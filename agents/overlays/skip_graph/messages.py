"""The messages between neighbours on the rings of a skip graph.

Each is from the key `of` to the key `to`, about one level.
"""

from msgspec import Struct

from agents.overlays.skip_graph.keys import Key
from agents.wire.codec import U8, message


@message(200, role="join")
class SetRight(Struct, frozen=True):
    """Point right to me, if your right neighbour is the one that I expect."""

    level: U8
    to: Key
    of: Key
    expected: Key


@message(201, role="join")
class RightSet(Struct, frozen=True):
    """I point right to you; these come after you, you yourself last if the ring ends there."""

    level: U8
    to: Key
    of: Key
    rights: tuple[Key, ...]


@message(202, role="join")
class Refused(Struct, frozen=True):
    """I do not point to you: ask this one; if that is me, my right neighbour is another one."""

    level: U8
    to: Key
    of: Key
    ask: Key
    expected: Key


@message(203, role="join")
class SetLeft(Struct, frozen=True):
    """This one points right to you, or should."""

    level: U8
    to: Key
    of: Key
    left: Key


@message(204, role="control")
class Rights(Struct, frozen=True):
    """My next neighbours to the right, the nearest first."""

    level: U8
    to: Key
    of: Key
    rights: tuple[Key, ...]


@message(205, role="join")
class Unlink(Struct, frozen=True):
    """I leave; these were my neighbours."""

    level: U8
    to: Key
    of: Key
    left: Key
    right: Key


RING_MESSAGES = (SetRight, RightSet, Refused, SetLeft, Rights, Unlink)
RingMessage = SetRight | RightSet | Refused | SetLeft | Rights | Unlink
