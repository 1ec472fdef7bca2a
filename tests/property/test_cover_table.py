"""The cover table against filters worked out by hand: what each link is told, and since when."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.cover_table import LOCAL, CoverTable, Told
from agents.subscription import Point, Subscription, make_point, subscribe

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


@settings(max_examples=400, deadline=None)
@given(st.lists(_step, max_size=40))
def test_links_are_told_what_is_not_covered_and_no_later_than_it_is_wanted(steps: list) -> None:
    table, held = CoverTable(), {}
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
                assert not set(difference.withdrawn) - set(known[link])
                known[link].update(difference.added)
                for gone in difference.withdrawn:
                    del known[link][gone]
            for link in LINKS:
                assert set(known[link]) == maximal(held, link)
                for box, time_ms in known[link].items():
                    assert time_ms <= since(held, link, box)
            assert len(table) == len({number for _, number in held})


@given(st.lists(st.tuples(st.sampled_from(LINKS), _box, st.sampled_from((0, 5))), max_size=30))
def test_matching_finds_the_sources_that_want_an_event(entries: list) -> None:
    table = CoverTable()
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
