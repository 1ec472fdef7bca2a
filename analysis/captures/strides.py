"""Walking over many records at once, where it is certain that none is missed or made up.

Only a record says where the next one begins, so a walk goes from one to the next. To walk many
stretches side by side, places are guessed where records seem to begin. A guess is proven when the
walk from the place before it comes to exactly there: the first place is known, and each one that
is proven is known in turn. From the first that is not, one record is walked after another.
"""

from collections.abc import Callable

import numpy as np

from analysis.captures.arrays import Ints

RECORDS_A_STRETCH = 64
_LEAST_STRETCHES = 16  # with fewer, one record after another is quicker
_MOST_STEPS = 8 * RECORDS_A_STRETCH  # records are not all of one size, and guesses not all right
_STEPS_A_LOOK = 8
_TRIES = 4  # for a guess


def guess_places(
    data: bytearray,
    mark: bytes,
    looks_right: Callable[[int], bool],
    first: int,
    apart: int,
    end: int,
) -> list[int]:
    """Places that are marked and look right, about so many bytes apart, the first of them known."""
    places, tried = [first], 0
    at = data.find(mark, first + apart, end)
    while at >= 0:
        tried += 1
        if looks_right(at):
            places.append(at)
        elif tried < _TRIES:
            at = data.find(mark, at + 1, end)
            continue
        at, tried = data.find(mark, at + apart, end), 0
    return places


def walk_abreast(places: Ints, following: Callable[[Ints], Ints]) -> tuple[Ints, int]:
    """Where records begin from the first place on, and the last place that is proven.

    `following` says where the records behind those at some places begin, and stays within the
    data wherever these are.
    """
    if len(places) <= _LEAST_STRETCHES:
        return places[:0], int(places[0])
    steps, at, stop = [places[:-1]], places[:-1], places[1:]
    while len(steps) < _MOST_STEPS and (at < stop).any():
        for _ in range(_STEPS_A_LOOK):
            at = following(at)
            steps.append(at)
    walked = np.stack(steps)
    is_before = walked < stop
    arrived = np.minimum(is_before.sum(axis=0), len(steps) - 1)
    is_proven = walked[arrived, np.arange(len(stop))] == stop
    proven = len(stop) if is_proven.all() else int(np.argmin(is_proven))
    return walked.T[:proven][is_before.T[:proven]], int(places[proven])
