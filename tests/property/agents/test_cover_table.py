"""The cover table compared with filters computed directly: subscriptions and times on each link."""

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
    """The subscriptions of other sources that no other such subscription covers."""
    others = {Subscription(number) for source, number in held if source != link}
    return {s.number for s in others if not any(o.covers(s) for o in others - {s})}


def since(held: Held, link: int, number: int) -> int:
    """The earliest time of the subscriptions that one subscription represents."""
    box = Subscription(number)
    return min(
        since_ms
        for (source, other), since_ms in held.items()
        if source != link and box.covers(Subscription(other))
    )


def play(
    table: CoverTable, steps: list, said: list | None = None
) -> Iterator[tuple[Held, dict[int, dict[int, int]]]]:
    """Take some steps; at each update, yields the held subscriptions and those known to each link.

    The updates are added to `said`.
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
                known[link].update(difference.added)  # A link also applies additions first.
                for gone in difference.withdrawn:
                    del known[link][gone]
            yield held, known


@settings(max_examples=400, deadline=None)
@given(st.lists(_step, max_size=40))
def test_links_get_uncovered_subscriptions_with_the_earliest_time(steps: list) -> None:
    table = CoverTable(BoxIndex())
    for held, known in play(table, steps):
        for link in LINKS:
            assert set(known[link]) == maximal(held, link)
            for box, time_ms in known[link].items():
                assert time_ms <= since(held, link, box)
        assert len(table) == len({number for _, number in held})


@given(st.lists(st.tuples(st.booleans(), _box), max_size=40))
def test_an_index_finds_covering_and_matching_subscriptions_and_reuses_slots(steps: list) -> None:
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
    """The numbers of the points in any of some boxes, with the earliest time of such a box."""
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
    """The updates for links during some steps, in order."""
    said: list[tuple[object, ...]] = []
    for _ in play(table, steps, said):
        pass
    return said


# Two pairs that merge; their slots have the opposite order if another user was there before.
_PAIRS = [
    ("add", LOCAL, subscribe({0: (low, low + 1), 1: (high, high)}).number, 0)
    for high in (3, 8)
    for low in (0, 2)
]


@settings(max_examples=300, deadline=None)
@given(st.lists(_merging_step), st.lists(_merging_step), st.booleans())
@example(_PAIRS, _PAIRS[::-1], True)
def test_other_users_of_an_index_do_not_change_the_updates(
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
def test_slots_are_listed_in_order(places: set[int]) -> None:
    assert list_places(sum(1 << place for place in places)) == sorted(places)


def test_touching_boxes_are_sent_as_one_until_one_is_removed() -> None:
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
    table.add(LOCAL, parts[1], 7)  # which subscribes only from now on
    ((_, last),) = table.differences([(1, told)])
    assert last == ({parts[1]: 7}, ())


@given(st.lists(st.tuples(st.sampled_from(LINKS), _box, st.sampled_from((0, 5))), max_size=30))
def test_matching_finds_the_sources_that_subscribe_to_an_event(entries: list) -> None:
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
