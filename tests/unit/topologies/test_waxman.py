"""Waxman networks: growth as in BRITE, counts, delays, errors."""

import math

import numpy as np
import pytest

from topologies.errors import TopologyError
from topologies.underlay import Underlay
from topologies.underlay_file import underlay_to_json
from topologies.waxman import generate_waxman


def link_lengths_km(underlay: Underlay) -> list[float]:
    place = {router.name: (router.x, router.y) for router in underlay.routers}
    return [math.dist(place[link.a], place[link.b]) for link in underlay.links]


def test_defaults_are_those_of_the_paper() -> None:
    underlay = generate_waxman(seed=1)
    assert (len(underlay.routers), len(underlay.links)) == (1640, 3280)
    assert underlay.source == {
        "generator": "waxman",
        "routers": 1640,
        "links_per_router": 2,
        "link_share": 0.15,
        "distance_scale": 0.2,
        "seed": 1,
    }


def test_new_routers_join_earlier_ones_and_the_first_ones_link_last() -> None:
    underlay = generate_waxman(60, 3, seed=4)
    ends = [(int(link.a[1:]) - 1, int(link.b[1:]) - 1) for link in underlay.links]
    assert [maker for maker, _ in ends] == [*np.repeat(range(3, 60), 3), *np.repeat(range(3), 3)]
    assert all(other < maker for maker, other in ends[: 57 * 3])
    assert all(other >= 3 for _, other in ends[57 * 3 :])


def test_routers_have_different_whole_kilometre_coordinates() -> None:
    routers = generate_waxman(500, seed=2).routers
    assert len({(router.x, router.y) for router in routers}) == 500
    assert all(value in range(1000) for router in routers for value in (router.x, router.y))


def test_a_delay_is_the_length_divided_by_the_speed_of_light() -> None:
    underlay = generate_waxman(100, seed=3)
    for link, length_km in zip(underlay.links, link_lengths_km(underlay), strict=True):
        assert link.ab == link.ba
        assert link.ab.delay_us == pytest.approx(length_km * 1000 / 299.792458, abs=0.5001)


def test_lengths_of_links_follow_the_formula() -> None:
    # With many routers around, the link lengths of a new router follow the weights exp(-d / reach).
    underlay = generate_waxman(1500, seed=5)
    places = np.array([(router.x, router.y) for router in underlay.routers])
    expected = []
    for index in range(2, 1500):
        distance = np.hypot(*(places[:index] - places[index]).T)
        weight = np.exp(-distance / (0.2 * 1000 * math.sqrt(2)))
        expected.append((distance * weight).sum() / weight.sum())
    assert np.mean(link_lengths_km(underlay)) == pytest.approx(np.mean(expected), rel=0.03)


def test_a_smaller_distance_scale_makes_shorter_links() -> None:
    near, far = (
        np.mean(link_lengths_km(generate_waxman(300, seed=1, distance_scale=scale)))
        for scale in (0.02, 0.9)
    )
    assert near < 0.5 * far


def test_a_tiny_distance_scale_still_finds_neighbours() -> None:
    underlay = generate_waxman(50, seed=1, distance_scale=1e-6)
    place = {router.name: (router.x, router.y) for router in underlay.routers}
    for link in underlay.links[:-4:2]:  # the first of the two links of each new router
        earlier = [place[f"r{number}"] for number in range(1, int(link.a[1:]))]
        nearest = min(math.dist(place[link.a], other) for other in earlier)
        assert math.dist(place[link.a], place[link.b]) == nearest


def test_the_link_share_has_no_effect() -> None:
    one, other = (generate_waxman(50, seed=1, link_share=share) for share in (0.01, 1.0))
    assert (one.routers, one.links) == (other.routers, other.links)


def test_only_the_seed_changes_the_network() -> None:
    np.random.seed(1)
    first = underlay_to_json(generate_waxman(80, seed=7))
    np.random.seed(2)
    assert underlay_to_json(generate_waxman(80, seed=7)) == first
    assert underlay_to_json(generate_waxman(80, seed=8)) != first


def test_the_smallest_networks_are_connected() -> None:
    for seed in range(20):
        assert len(generate_waxman(3, seed=seed).links) == 2
        assert len(generate_waxman(2, 1, seed=seed).links) == 1
        assert 6 <= len(generate_waxman(5, seed=seed).links) <= 10


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"routers": 2}, "routers: expected more routers than links_per_router, which is 2, found"),
        ({"routers": 0, "links_per_router": 0}, "links_per_router: expected 1 or more, found 0"),
        ({"routers": 1_000_001}, "routers: expected at most 1000000"),
        ({"seed": -1}, "seed: expected a whole number, 0 or more, found -1"),
        ({"link_share": 0}, "link_share: expected above 0, up to 1, found 0"),
        ({"link_share": 1.5}, "link_share: expected above 0, up to 1, found 1.5"),
        ({"distance_scale": 0}, "distance_scale: expected above 0, found 0"),
        ({"distance_scale": math.nan}, "distance_scale: expected above 0, found nan"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        generate_waxman(**{"seed": 1, **parameters})
