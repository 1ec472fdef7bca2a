"""The index by hand: owners, repetitions, reused slots."""

from workloads.content.matching import MatchIndex
from workloads.content.subscription import make_point, subscribe

LOW, HIGH, ALL = subscribe({0: (0, 4)}), subscribe({0: (5, 10)}), subscribe({})


def test_an_event_finds_its_subscriptions() -> None:
    index: MatchIndex[str] = MatchIndex()
    for owner, subscription in (("a", LOW), ("b", HIGH), ("c", ALL)):
        assert index.add(owner, subscription)
    assert index.matching(make_point([4])) == [("a", LOW), ("c", ALL)]
    assert index.matching(make_point([5])) == [("b", HIGH), ("c", ALL)]
    assert index.count(make_point([5])) == 2


def test_an_empty_index_matches_nothing() -> None:
    index: MatchIndex[str] = MatchIndex()
    assert index.matching(make_point([4])) == []
    assert index.owners(make_point([4])) == []


def test_a_subscription_counts_once_for_each_owner() -> None:
    index: MatchIndex[str] = MatchIndex()
    assert index.add("a", LOW)
    assert not index.add("a", LOW)
    assert index.add("b", LOW)
    assert len(index) == 2
    assert index.remove("a", LOW)
    assert not index.remove("a", LOW)
    assert index.matching(make_point([0])) == [("b", LOW)]
    assert ("b", LOW) in index
    assert ("a", LOW) not in index


def test_owners_are_listed_once_for_any_number_of_matches() -> None:
    index: MatchIndex[str] = MatchIndex()
    for subscription in (LOW, ALL, subscribe({1: (0, 3)})):
        index.add("a", subscription)
    index.add("b", HIGH)
    assert index.owners(make_point([0])) == ["a"]  # three matches, two owners
    for owner in "cdefg":
        index.add(owner, HIGH)
    assert index.owners(make_point([0])) == ["a"]  # three matches, seven owners


def test_a_free_slot_is_reused() -> None:
    index: MatchIndex[int] = MatchIndex()
    for _ in range(3):
        for owner in range(100):
            index.add(owner, LOW)
        for owner in range(100):
            index.remove(owner, LOW)
    assert index.matching(make_point([0])) == []
    index.add(7, HIGH)
    assert index.matching(make_point([9])) == [(7, HIGH)]
    assert index.matching(make_point([0])) == []
    assert len(index._entries) == 100


def test_an_owner_is_removed_with_all_its_subscriptions() -> None:
    index: MatchIndex[str] = MatchIndex()
    for owner, subscription in (("a", LOW), ("b", ALL), ("a", HIGH)):
        index.add(owner, subscription)
    assert index.remove_owner("a") == [LOW, HIGH]
    assert index.remove_owner("a") == []
    assert index.matching(make_point([0])) == [("b", ALL)]
    assert index.matching(make_point([9])) == [("b", ALL)]
