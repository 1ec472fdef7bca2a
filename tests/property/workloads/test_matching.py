"""The index compared with a scan of all subscriptions."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.content.matching import MatchIndex
from workloads.content.subscription import Point, Subscription, make_point, subscribe

few = settings(max_examples=100, deadline=None)
ranges = st.tuples(st.integers(0, 10), st.integers(0, 10)).map(lambda r: (min(r), max(r)))
subscriptions = st.dictionaries(st.integers(0, 4), ranges).map(subscribe)
points = st.lists(st.integers(0, 10), min_size=5, max_size=5).map(make_point)
Entry = tuple[int, Subscription]


def check(index: MatchIndex[int], held: set[Entry], point: Point) -> None:
    expected = {entry for entry in held if entry[1].matches(point)}
    found = index.matching(point)
    assert set(found) == expected
    assert len(found) == len(expected) == index.count(point)
    owners = index.owners(point)
    assert sorted(owners) == sorted({owner for owner, _ in expected})


@few
@given(
    st.lists(st.tuples(st.integers(0, 3), subscriptions), max_size=40),
    st.lists(st.integers(0, 39), max_size=30),
    st.lists(points, min_size=1, max_size=10),
)
def test_the_index_finds_what_brute_force_finds(
    added: list[Entry], removed: list[int], asked: list[Point]
) -> None:
    index: MatchIndex[int] = MatchIndex()
    held: set[Entry] = set()
    for at, entry in enumerate(added):
        assert index.add(*entry) == (entry not in held)
        held.add(entry)
        if at in removed:  # slots become free in between
            gone = added[at // 2]
            assert index.remove(*gone) == (gone in held)
            held.discard(gone)
    for point in asked:
        check(index, held, point)


def test_the_index_finds_what_brute_force_finds_among_many_subscriptions() -> None:
    chance = Random(1)
    held = {(n, Subscription(chance.randrange(66**5))) for n in range(2_000)}
    index: MatchIndex[int] = MatchIndex()
    for entry in sorted(held):
        index.add(*entry)
    for entry in sorted(held)[::3]:
        index.remove(*entry)
        held.remove(entry)
    for _ in range(50):
        check(index, held, make_point([chance.randrange(11) for _ in range(5)]))
