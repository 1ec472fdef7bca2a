"""The division of an event's range by a peer: the rules of NSMF and BeaConvey.

Positions are counted clockwise from the peer, where the range begins. `po` is the rule of NSMF: a
part begins at the nearest subscriber, and at each finger that subscribes. `pie` adds a pivot to a
range in whose far half no part begins: the finger there that is nearest to the middle. `pal` takes
the middle itself if there is no such finger, or the next rank after it on a ring of ranks. A range
without subscribers is not divided.
"""

from collections.abc import Sequence
from typing import Literal

Rule = Literal["po", "pal", "pie"]


def divide(
    rule: Rule,
    span: int,
    nearest: int | None,
    fingers: Sequence[int],
    matched: Sequence[int],
    to_rank: int = 0,
    spacing: int = 1,
) -> list[tuple[int, int]]:
    """The parts of a range in clockwise order: the beginning and the end of each.

    `fingers` are all fingers, in clockwise order, and `matched` those that subscribe to the topic.
    Ranks are `spacing` apart, and the first one at the peer or after it is at `to_rank`.
    """
    if nearest is None or nearest >= span:
        return []
    starts = {nearest, *(finger for finger in matched if finger < span)}
    half = (span + 1) // 2
    if rule != "po" and max(starts) < half:
        pivot = next((finger for finger in fingers if half <= finger < span), None)
        if pivot is not None:
            starts.add(pivot)
        elif rule == "pal":
            middle = half + (to_rank - half) % spacing
            starts.update({middle} if middle < span else ())
    begin = sorted(starts)
    return list(zip(begin, [*begin[1:], span], strict=True))
