"""Workloads: the requested share of matches, the properties of each kind, and seeds."""

import hashlib
import os
import subprocess
import sys
from collections import Counter
from random import Random
from statistics import mean, pstdev

import pytest

from workloads.content.generator import DrawnContent, make_workload
from workloads.content.hotspots import make_regions
from workloads.content.subscription import ContentError, make_point

KINDS = ("uniform", "zipf")


def matches(workload: DrawnContent) -> list[int]:
    """The number of subscriptions that match each event, counted one by one."""
    held = [subscription for some in workload.subscriptions for subscription in some]
    return [sum(s.matches(event.point) for s in held) for event in workload.events]


def share(workload: DrawnContent) -> float:
    return mean(matches(workload)) / sum(map(len, workload.subscriptions))


@pytest.mark.parametrize("kind", KINDS)
def test_the_mean_share_of_matches_is_as_requested(kind: str) -> None:
    workload = make_workload(kind, seed=3, peers=1024, events=2_000)
    assert share(workload) == pytest.approx(0.05, rel=0.02)


@pytest.mark.parametrize(("kind", "spread"), [("uniform", 0.12), ("zipf", 0.35)])
def test_each_event_matches_about_the_requested_share(kind: str, spread: float) -> None:
    counts = matches(make_workload(kind, seed=2, peers=1024, events=500))
    assert pstdev(counts) / mean(counts) < spread


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("match", [0.05, 0.5])
def test_ranges_are_as_wide_as_required_for_any_event(kind: str, match: float) -> None:
    seed, chance = 3, Random(1)
    index = make_workload(kind, seed, 3_000, events=0, match=match).index()
    regions = make_regions(kind, 5, Random(f"{seed}/hotspots"))
    counts = []
    for _ in range(2_000):  # the first result, not the best of several
        (region,) = chance.choices(regions, [region.share for region in regions])
        values = [chance.choices(range(11), weights)[0] for weights in region.values]
        counts.append(index.count(make_point(values)))
    assert mean(counts) / len(index) == pytest.approx(match, rel=0.06)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_share_of_matches_holds_with_few_peers(kind: str, seed: int) -> None:
    assert share(make_workload(kind, seed, peers=12, events=200)) == pytest.approx(0.05, rel=0.1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("match", "attributes"), [(0.02, 4), (0.05, 2), (0.2, 5), (0.5, 1)])
def test_other_shares_and_schemas(kind: str, match: float, attributes: int) -> None:
    made = make_workload(kind, 1, 300, 2, events=300, match=match, attributes=attributes)
    assert [len(some) for some in made.subscriptions] == [2] * 300
    assert share(made) == pytest.approx(match, rel=0.1)
    unused = [s.ranges[attributes:] for some in made.subscriptions for s in some]
    assert set(unused) == {((0, 10),) * (5 - attributes)}
    assert {event.point.values[attributes:] for event in made.events} == {(0,) * (5 - attributes)}


def test_uniform_events_cover_the_space_and_all_publishers() -> None:
    made = make_workload("uniform", 1, 1024, events=10_000)
    for attribute in range(5):
        values = Counter(event.point.values[attribute] for event in made.events)
        assert set(values) == set(range(11))
        assert max(values.values()) < 1.4 * min(values.values())
    publishers = Counter(event.publisher for event in made.events)
    assert set(publishers) <= set(range(1024))
    assert len(publishers) > 1000


def test_uniform_subscriptions_cover_the_edges_as_often_as_the_middle() -> None:
    made = make_workload("uniform", 1, 3_000, events=0)
    for attribute in range(5):
        accepted = [some[0].ranges[attribute] for some in made.subscriptions]
        wanted = [sum(low <= v <= high for low, high in accepted) for v in range(11)]
        assert max(wanted) < 1.1 * min(wanted)


def nearest_hotspots(seed: int, made: DrawnContent) -> Counter[int]:
    """The number of events that are nearest to each hotspot."""
    regions = make_regions("zipf", 5, Random(f"{seed}/hotspots"))
    centres = [[weights.index(1.0) for weights in region.values] for region in regions]
    found: Counter[int] = Counter()
    for event in made.events:
        away = [sum(map(abs, map(int.__sub__, event.point.values, c))) for c in centres]
        found[away.index(min(away))] += 1
    return found


def test_popularity_of_hotspots_follows_zipf_by_rank() -> None:
    # Summed over seeds, because two hotspots of one seed may be close together.
    found: Counter[int] = Counter()
    for seed in range(12):
        found += nearest_hotspots(seed, make_workload("zipf", seed, 100, events=500))
    shares = [found[rank] / found.total() for rank in range(5)]
    law = [1 / rank / (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5) for rank in range(1, 6)]
    assert shares == sorted(shares, reverse=True)
    assert shares == pytest.approx(law, abs=0.08)


def likeness(kind: str, seed: int) -> float:
    """The mean similarity of each subscription with the ten most similar ones."""
    made, peers = make_workload(kind, seed, 150, events=800), range(150)
    had = [0] * 150
    for number, receivers in enumerate(made.receivers()):
        for peer in receivers:
            had[peer] |= 1 << number
    nearest = []
    for one in peers:
        both = [(had[one] & had[p]).bit_count() / max(1, (had[one] | had[p]).bit_count())
                for p in peers if p != one]  # fmt: skip
        nearest += sorted(both)[-10:]
    return mean(nearest)


def test_zipf_subscriptions_have_more_in_common_than_uniform_ones() -> None:
    uniform, zipf = (mean(likeness(kind, seed) for seed in range(3)) for kind in KINDS)
    assert zipf > 1.15 * uniform


def test_receivers_are_the_peers_with_a_match() -> None:
    made = make_workload("zipf", 1, 40, 3, events=60)
    expected = [
        tuple(p for p, some in enumerate(made.subscriptions) if any(s.matches(point) for s in some))
        for _, point in made.events
    ]
    assert list(made.receivers()) == expected
    assert any(expected)


def test_a_workload_with_more_events_begins_with_the_same_events() -> None:
    short, long = (make_workload("zipf", 5, 30, events=n) for n in (20, 40))
    assert long.subscriptions == short.subscriptions
    assert long.events[:20] == short.events


_PRINT = (
    "from workloads.content.generator import make_workload as m; print(m({kind!r}, 7, 20, 2, 50))"
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_gives_the_same_workload_in_any_process(kind: str) -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PRINT.format(kind=kind)],
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONPATH": os.pathsep.join(sys.path),
            },
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("0", "1")
    }
    here = f"{make_workload(kind, 7, 20, 2, 50)}\n".encode()
    assert {hashlib.sha256(text).hexdigest() for text in printed | {here}} == {
        hashlib.sha256(here).hexdigest()
    }
    assert make_workload(kind, 8, 20, 2, 50) != make_workload(kind, 7, 20, 2, 50)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"kind": "normal"}, "expected one of uniform, zipf, found 'normal'"),
        ({"peers": 0}, "peers: expected at least 1, found 0"),
        ({"subscriptions_per_peer": -1}, "subscriptions_per_peer: expected at least 0, found -1"),
        ({"events": -1}, "events: expected at least 0, found -1"),
        ({"match": 0}, "match: expected more than 0 and at most 1, found 0"),
        ({"match": 1.5}, "match: expected more than 0 and at most 1, found 1.5"),
        ({"attributes": 6}, "attributes: expected 1 to 5, found 6"),
        ({"attributes": 1}, "match: expected at least 0.09091, .* 1 attributes give, found 0.05"),
    ],
)
def test_invalid_settings_are_refused(changed: dict[str, object], found: str) -> None:
    asked: dict[str, object] = {"kind": "uniform", "seed": 1, "peers": 10, **changed}
    with pytest.raises(ContentError, match=found):
        make_workload(**asked)  # type: ignore[arg-type]
