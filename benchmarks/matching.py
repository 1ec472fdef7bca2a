"""Events that the index matches per second, compared with brute force."""

import time
from collections.abc import Callable
from itertools import cycle, islice

from workloads.content.generator import DrawnContent, make_workload
from workloads.content.matching import MatchIndex
from workloads.content.subscription import Point, Subscription

_SEED = 1
_SIZES = {"100": 100, "1k": 1_000, "10k": 10_000}
_EVENTS, _REPEATS = 500, 5
_NEIGHBOURS = 10  # which share the subscriptions; the result is the neighbours to send to
_TURN_S = 0.2  # approximate time of each method in a turn
_Match = Callable[[Point], object]


def run() -> dict[str, float]:
    """Print rates, and return the measurements."""
    print(f"zipf, 5 % of the subscriptions match, one core, the best of {_REPEATS}, in events/s")
    figures: dict[str, float] = {}
    for label, size in _SIZES.items():
        workload = make_workload("zipf", _SEED, size, events=_EVENTS)
        figures |= {f"{name}_at_{label}": value for name, value in _measure(workload).items()}
        print(
            f"  {size:6,} subscriptions: index {figures[f'matches_per_s_at_{label}']:9,.0f}, "
            f"brute force {figures[f'brute_force_per_s_at_{label}']:9,.0f}, "
            f"one by one {figures[f'one_by_one_per_s_at_{label}']:9,.0f}, "
            f"which of {_NEIGHBOURS} neighbours {figures[f'neighbours_per_s_at_{label}']:9,.0f}; "
            f"add {figures[f'add_us_at_{label}']:.1f} us, "
            f"remove {figures[f'remove_us_at_{label}']:.1f} us",
            flush=True,
        )
    return figures


def _measure(workload: DrawnContent) -> dict[str, float]:
    held = list(enumerate(subscriptions[0] for subscriptions in workload.subscriptions))
    index = workload.index()
    points = [event.point for event in workload.events]
    rates = _compare(_contestants(index, held), points)
    shared: MatchIndex[int] = MatchIndex()
    for peer, subscription in held:
        shared.add(peer % _NEIGHBOURS, subscription)
    rates |= _compare({"neighbours_per_s": shared.owners}, points)
    return {
        **rates,
        # The fastest brute force in Python.
        "speedup": rates["matches_per_s"] / rates["brute_force_per_s"],
        **_changes(index, held),
    }


def _contestants(index: MatchIndex[int], held: list[tuple[int, Subscription]]) -> dict[str, _Match]:
    boxes = [(entry, entry[1].bits) for entry in held]

    def go_through(point: Point) -> object:
        wanted = point.bits
        return [entry for entry, box in boxes if box & wanted == wanted]

    def ask_each(point: Point) -> object:
        return [entry for entry in held if entry[1].matches(point)]

    return {
        "matches_per_s": index.matching,
        "brute_force_per_s": go_through,
        "one_by_one_per_s": ask_each,
    }


def _compare(contestants: dict[str, _Match], points: list[Point]) -> dict[str, float]:
    """The best rate of each method; methods alternate, so other programs affect all of them."""
    answers = {str([match(point) for point in points[:20]]) for match in contestants.values()}
    if len(answers) != 1:
        raise AssertionError("the matchers do not agree on which events match")
    turns = [
        {name: _rate(match, points) for name, match in contestants.items()} for _ in range(_REPEATS)
    ]
    return {name: max(turn[name] for turn in turns) for name in contestants}


def _rate(match: _Match, points: list[Point]) -> float:
    """Events per second, measured for at least the time of a turn."""
    stream, done, start_s = cycle(points), 0, time.process_time()
    while (spent_s := time.process_time() - start_s) < _TURN_S:
        for point in islice(stream, 20):
            match(point)
        done += 20
    return done / spent_s


def _changes(index: MatchIndex[int], held: list[tuple[int, Subscription]]) -> dict[str, float]:
    """The times to remove a subscription from a full index, and to add it again."""
    few = held[:: max(1, len(held) // 100)]
    start_s = time.process_time()
    for entry in few:
        index.remove(*entry)
    removed_s = time.process_time()
    for entry in few:
        index.add(*entry)
    added_s = time.process_time()
    per_us = 1e6 / len(few)
    return {
        "add_us": (added_s - removed_s) * per_us,
        "remove_us": (removed_s - start_s) * per_us,
    }
