"""Options of the workload with hotspots: equal radii, hotspots by location, and similarity."""

from random import Random
from statistics import fmean

import numpy as np
import pytest

from workloads.content.generator import DrawnContent, make_workload
from workloads.content.hotspots import HOTSPOTS, assign_by_place, fit_ranges, make_regions
from workloads.kinds import draw_workload
from workloads.similarity import mean_of_links, mean_of_pairs, similarities
from workloads.workload import Publications, Workload, lasting_interests, match_equal

HOSTS = [f"h{number}" for number in range(1, 101)]
PLACES = [(float(x), float(y)) for x in range(10) for y in range(10)]
ZIPF = {"kind": "content-zipf", "events": 400}


def shares(made: DrawnContent) -> list[float]:
    index = made.index()
    return [index.count(event.point) / len(index) for event in made.events]


@pytest.mark.parametrize("seed", range(3))
def test_equal_radii_are_equal_and_keep_the_share_of_matches(seed: int) -> None:
    regions = make_regions("zipf", 5, Random(seed))
    radii = fit_ranges(regions, 0.05, "equal").radii
    assert len(set(radii)) == 1
    assert len(set(fit_ranges(regions, 0.05).radii)) > 1
    made = make_workload("zipf", seed, 500, events=500, radii="equal")
    assert fmean(shares(made)) == pytest.approx(0.05, rel=0.05)


def test_peers_of_a_hotspot_are_close_and_their_number_is_its_share() -> None:
    regions = make_regions("zipf", 5, Random(1))
    owner = assign_by_place(regions, PLACES, Random(1))
    for number, region in enumerate(regions):
        assert owner.count(number) == pytest.approx(100 * region.share, abs=3)
    assert set(owner) == set(range(HOTSPOTS))
    pairs = [(a, b) for a in range(100) for b in range(a)]
    apart = [np.hypot(*np.subtract(PLACES[a], PLACES[b])) for a, b in pairs]
    same = [far for far, (a, b) in zip(apart, pairs, strict=True) if owner[a] == owner[b]]
    assert fmean(same) < 0.75 * fmean(apart)


def test_few_peers_are_all_assigned() -> None:
    regions = make_regions("zipf", 5, Random(1))
    assert len(assign_by_place(regions, PLACES[:3], Random(1))) == 3
    assert assign_by_place(regions, [], Random(1)) == []


def neighbours_alike(**settings: str) -> float:
    """The similarity of neighbouring hosts in the plane, for some seeds."""
    beside = [(a, a + 10) for a in range(90)]
    found = []
    for seed in range(4):
        workload = draw_workload({**ZIPF, **settings}, seed, HOSTS, PLACES)
        found.append(mean_of_links(similarities(workload, 100), beside) or 0.0)
    return fmean(found)


def test_hotspots_by_location_make_neighbours_similar() -> None:
    assert neighbours_alike(hotspots="located") > 1.5 * neighbours_alike()


def test_locations_change_nothing_by_default() -> None:
    plain, placed = (draw_workload(ZIPF, 1, HOSTS, places) for places in (None, PLACES))
    assert plain.interests.content.tolist() == placed.interests.content.tolist()
    assert plain.publications.content.tolist() == placed.publications.content.tolist()


def test_hotspots_by_location_require_coordinates() -> None:
    with pytest.raises(ValueError, match="hotspots: expected hosts with places"):
        draw_workload({**ZIPF, "hotspots": "located"}, 1, HOSTS)


def test_similarity_is_that_of_the_events_that_peers_match() -> None:
    interests = lasting_interests([0, 0, 1, 2], [1, 2, 2, 9])
    made = Publications(*(np.array(column) for column in ([3, 3, 3], [1, 2, 2], [1, 2, 3])))
    workload = Workload(interests, made, match_equal(interests, made))
    found = similarities(workload, 4)
    assert found[0, 1] == found[1, 0] == pytest.approx(2 / 3)
    assert found[2].tolist() == [0, 0, 0, 0]  # nothing in common: no events
    assert mean_of_pairs(found) == pytest.approx(2 * (2 / 3) / 12)
    assert mean_of_links(found, [(0, 1), (1, 2)]) == pytest.approx(1 / 3)
    assert mean_of_links(found, []) is None
    assert mean_of_pairs(found[:1, :1]) is None
