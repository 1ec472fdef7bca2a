"""The cover table against filters worked out by hand: what each link is told, and since when."""

from collections.abc import Iterable, Iterator

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.pubsub.content.box_index import BoxIndex, list_places
from agents.pubsub.content.cover_table import LOCAL, CoverTable, Told
from workloads.content.subscription import Point, Subscription, make_point, subscribe

LINKS = (1, 2, 3)
Held = dict[tuple[int, int], int]

_range = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda r: (min(r), max(r) + 6))
_box = st.dictionaries(st.integers(0, 1), _range).map(lambda ranges: subscribe(ranges).number)
_step = st.one_of(
    st.tuples(
        st.just("add"), st.sampled_from((LOCAL, *LINKS)), _box, st.sampled_from((0, 0, 5, 9))
    ),
    st.tuples(st.just("remove"), st.sampled_from((LOCAL, *LINKS)), _box, st.just(0)),
    st.tuples(st.just("tell"), st.just(0), st.just(0), st.just(0)),
    st.tuples(st.just("renew"), st.sampled_from(LINKS), st.just(0), st.just(0)),
)


def maximal(held: Held, link: int) -> set[int]:
    """The subscriptions of other sources that no other of these covers."""
    others = {Subscription(number) for source, number in held if source != link}
    return {s.number for s in others if not any(o.covers(s) for o in others - {s})}


def since(held: Held, link: int, number: int) -> int:
    """The earliest time of those that a subscription stands for."""
    box = Subscription(number)
    return min(
        since_ms
        for (source, other), since_ms in held.items()
        if source != link and box.covers(Subscription(other))
    )


def play(
    table: CoverTable, steps: list, said: list | None = None
) -> Iterator[tuple[Held, dict[int, dict[int, int]]]]:
    """Take some steps; each time that links are told, what is held and what each of them knows.

    What was told is added to `said`.
    """
    said = [] if said is None else said
    held: Held = {}
    told = {link: Told() for link in LINKS}
    known: dict[int, dict[int, int]] = {link: {} for link in LINKS}
    for action, source, number, since_ms in [*steps, ("tell", 0, 0, 0)]:
        if action == "add":
            table.add(source, number, since_ms)
            held[source, number] = since_ms
        elif action == "remove":
            table.remove(source, number)
            held.pop((source, number), None)
        elif action == "renew":
            told[source], known[source] = Told(), {}
        else:
            for link, difference in table.differences(sorted(told.items())):
                said.append((link, [*difference.added.items()], difference.withdrawn))
                assert not set(difference.withdrawn) - set(known[link])
                known[link].update(difference.added)  # as a link does it: first what is new
                for gone in difference.withdrawn:
                    del known[link][gone]
            yield held, known


@settings(max_examples=400, deadline=None)
@given(st.lists(_step, max_size=40))
def test_links_are_told_what_is_not_covered_and_no_later_than_it_is_wanted(steps: list) -> None:
    table = CoverTable(BoxIndex())
    for held, known in play(table, steps):
        for link in LINKS:
            assert set(known[link]) == maximal(held, link)
            for box, time_ms in known[link].items():
                assert time_ms <= since(held, link, box)
        assert len(table) == len({number for _, number in held})


@given(st.lists(st.tuples(st.booleans(), _box), max_size=40))
def test_an_index_knows_what_covers_and_matches_what_and_uses_places_again(steps: list) -> None:
    boxes, used = BoxIndex(), []
    most = 0
    for is_taken, number in steps:
        if is_taken:
            used.append(number)
            boxes.take(number)
        elif number in used:
            used.remove(number)
            boxes.give_back(boxes.place_of[number])
        assert boxes.place_of.keys() == set(used)
        most = max(most, len(set(used)))
        there = {Subscription(number): place for number, place in boxes.place_of.items()}
        for box, place in there.items():
            others = [(o, p) for o, p in there.items() if o != box]
            assert list_places(boxes.above[place]) == sorted(p for o, p in others if o.covers(box))
            assert list_places(boxes.below[place]) == sorted(p for o, p in others if box.covers(o))
        for point in (make_point([v, v]) for v in range(0, 11, 5)):
            matched = sorted(place for box, place in there.items() if box.matches(point))
            assert list_places(boxes.matching(point)) == matched
    assert len(boxes.number) == most


_narrow = st.tuples(st.integers(0, 3), st.integers(0, 1)).map(lambda r: (r[0], r[0] + r[1]))
_small = st.tuples(_narrow, _narrow).map(lambda two: subscribe({0: two[0], 1: two[1]}).number)
_anybody = st.sampled_from((LOCAL, *LINKS))
_merging_step = st.one_of(
    st.tuples(st.just("add"), _anybody, _small, st.sampled_from((0, 0, 0, 0, 5))),
    st.tuples(st.just("remove"), _anybody, _small, st.just(0)),
    st.tuples(st.just("tell"), st.just(0), st.just(0), st.just(0)),
    st.tuples(st.just("renew"), st.sampled_from(LINKS), st.just(0), st.just(0)),
)
POINTS = [make_point([v, w]) for v in range(6) for w in range(6)]


def accepted(boxes: Iterable[tuple[int, int]]) -> dict[int, int]:
    """The points in any of some boxes, by number, and since when the first wants them."""
    found: dict[int, int] = {}
    for number, since_ms in boxes:
        for point in filter(Subscription(number).matches, POINTS):
            found[point.number] = min(since_ms, found.get(point.number, since_ms))
    return found


@settings(max_examples=300, deadline=None)
@given(st.lists(_merging_step, max_size=60))
def test_merged_boxes_accept_the_points_of_their_parts_and_no_others(steps: list) -> None:
    for held, known in play(CoverTable(BoxIndex(), is_merging=True), steps):
        for link in LINKS:
            wanted = accepted((n, since) for (s, n), since in held.items() if s != link)
            found = accepted(known[link].items())
            assert found.keys() == wanted.keys()
            assert all(found[point] <= wanted[point] for point in wanted)
            assert len(known[link]) <= len(maximal(held, link))


def tell(table: CoverTable, steps: list) -> list[tuple[object, ...]]:
    """What links are told in the course of some steps, in its order."""
    said: list[tuple[object, ...]] = []
    for _ in play(table, steps, said):
        pass
    return said


# Two pairs that merge, which have their places in the other order if somebody was there before.
_PAIRS = [
    ("add", LOCAL, subscribe({0: (low, low + 1), 1: (high, high)}).number, 0)
    for high in (3, 8)
    for low in (0, 2)
]


@settings(max_examples=300, deadline=None)
@given(st.lists(_merging_step), st.lists(_merging_step), st.booleans())
@example(_PAIRS, _PAIRS[::-1], True)
def test_who_else_uses_an_index_makes_no_difference_to_what_is_told(
    steps: list, others: list, is_merging: bool
) -> None:
    boxes = BoxIndex()
    before, table = CoverTable(boxes, is_merging), CoverTable(boxes, is_merging)
    tell(before, others)
    assert tell(table, steps) == tell(CoverTable(BoxIndex(), is_merging), steps)
    before.close()
    assert len(boxes.place_of) == len(table)
    table.close()
    assert not boxes.place_of


@given(st.sets(st.integers(0, 2_000)))
def test_places_are_listed_in_their_order(places: set[int]) -> None:
    assert list_places(sum(1 << place for place in places)) == sorted(places)


def test_touching_boxes_are_told_as_one_until_one_of_them_goes() -> None:
    table, told = CoverTable(BoxIndex(), is_merging=True), Told()
    parts = [subscribe({0: (low, low + 1), 1: (3, 4)}).number for low in (0, 2, 4)]
    for number in parts:
        table.add(LOCAL, number, 0)
    whole = subscribe({0: (0, 5), 1: (3, 4)}).number
    ((_, first),) = table.differences([(1, told)])
    assert first == ({whole: 0}, ())
    table.remove(LOCAL, parts[1])
    ((_, then),) = table.differences([(1, told)])
    assert then == ({parts[0]: 0, parts[2]: 0}, (whole,))
    table.add(LOCAL, parts[1], 7)  # which only wants what comes from now on
    ((_, last),) = table.differences([(1, told)])
    assert last == ({parts[1]: 7}, ())


@given(st.lists(st.tuples(st.sampled_from(LINKS), _box, st.sampled_from((0, 5))), max_size=30))
def test_matching_finds_the_sources_that_want_an_event(entries: list) -> None:
    table = CoverTable(BoxIndex())
    for source, number, since_ms in entries:
        table.add(source, number, since_ms)
    last = {(source, number): since_ms for source, number, since_ms in entries}
    for point in (make_point([v, w]) for v in range(0, 11, 2) for w in range(0, 11, 2)):
        for published_us in (4_999, 5_000):
            wanted = {
                source
                for (source, number), since_ms in last.items()
                if Subscription(number).matches(Point(point.number))
                and since_ms * 1_000 <= published_us
            }
            assert table.matching(point, published_us) == wanted
