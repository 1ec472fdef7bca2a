"""Transit-stub networks: their hierarchy, sizes, places, extra links, errors."""

import math
import re
from collections import Counter, defaultdict

import networkx as nx
import numpy as np
import pytest

from topologies.domain_sizes import PAPER_SIZES, DomainSizes, choose_domain_sizes
from topologies.errors import TopologyError
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Router, Underlay
from topologies.underlay_file import underlay_to_json

SMALL = DomainSizes(3, 4, 2, 5)


def domain(label: str) -> str:
    """The domain in a label: T:0 of T:0.3, S:0.3/1 of S:0.3/1.2."""
    return label.rpartition(".")[0]


def owner(label: str) -> str:
    """The transit router of a stub router: T:0.3 of S:0.3/1.2."""
    return label.replace("S:", "T:").partition("/")[0]


def domains(underlay: Underlay, role: str) -> dict[str, list[Router]]:
    members = defaultdict(list)
    for router in underlay.routers:
        if router.role == role:
            members[domain(router.label)].append(router)
    return members


def label_pairs(underlay: Underlay) -> list[tuple[str, str]]:
    label = {router.name: router.label for router in underlay.routers}
    return [(label[link.a], label[link.b]) for link in underlay.links]


def crossing_links(underlay: Underlay, ends: str) -> list[tuple[str, str]]:
    """The links between two domains whose ends are, for example, T and S."""
    pairs = label_pairs(underlay)
    return [(a, b) for a, b in pairs if a[0] + b[0] == ends and domain(a) != domain(b)]


def test_defaults_are_those_of_the_paper() -> None:
    underlay = generate_transit_stub(seed=1)
    roles = Counter(router.role for router in underlay.routers)
    assert roles == {"transit": 48, "stub": 1536}
    assert len(domains(underlay, "transit")) == 6
    assert len(domains(underlay, "stub")) == 192
    assert underlay.source["seed"] == 1
    assert underlay.source["routers"] == 1584
    assert underlay.source["stub_link_probability"] == 0.42


def test_labels_have_the_form_of_gt_itm_and_its_order() -> None:
    labels = [router.label for router in generate_transit_stub(SMALL, seed=1).routers]
    assert all(re.fullmatch(r"T:\d+\.\d+|S:\d+\.\d+/\d+\.\d+", label) for label in labels)
    numbers = [[int(number) for number in re.findall(r"\d+", label)] for label in labels]
    assert numbers == sorted(numbers, key=lambda n: (n[0], len(n) > 2, n))


def test_every_domain_is_connected() -> None:
    underlay = generate_transit_stub(SMALL, seed=2)
    graph = nx.Graph((a, b) for a, b in label_pairs(underlay))
    for role in ("transit", "stub"):
        for members in domains(underlay, role).values():
            assert nx.is_connected(graph.subgraph(router.label for router in members))


def test_every_stub_domain_has_one_link_to_its_transit_router() -> None:
    underlay = generate_transit_stub(SMALL, seed=3)
    links = crossing_links(underlay, "TS")
    assert all(owner(stub) == transit for transit, stub in links)
    assert Counter(domain(stub) for _, stub in links) == dict.fromkeys(domains(underlay, "stub"), 1)
    assert crossing_links(underlay, "SS") == []


def test_stub_domains_are_attached_by_any_of_their_routers() -> None:
    links = crossing_links(generate_transit_stub(seed=3), "TS")
    assert len({stub.rpartition(".")[2] for _, stub in links}) >= 8


def test_neighbouring_transit_domains_have_two_links() -> None:
    for seed in range(5):
        links = crossing_links(generate_transit_stub(SMALL, seed=seed), "TT")
        assert set(Counter((domain(a), domain(b)) for a, b in links).values()) == {2}


def test_domains_of_one_router_have_one_link() -> None:
    underlay = generate_transit_stub(DomainSizes(3, 1, 1, 1), seed=1, domain_link_probability=1)
    assert len(crossing_links(underlay, "TT")) == 3


def test_only_the_first_transit_domain_has_the_transit_probability() -> None:
    sizes = DomainSizes(4, 12, 1, 1)
    underlay = generate_transit_stub(sizes, seed=1, transit_link_probability=1)
    inside = Counter(domain(a) for a, b in label_pairs(underlay) if domain(a) == domain(b))
    for name, members in domains(underlay, "transit").items():
        density = inside[name] / math.comb(len(members), 2)
        assert (density == 1) == (name == "T:0")


def test_sizes_vary_around_their_averages() -> None:
    underlay = generate_transit_stub(seed=4)
    stub_sizes = [len(members) for members in domains(underlay, "stub").values()]
    assert np.mean(stub_sizes) == 8
    assert min(stub_sizes) <= 5 and max(stub_sizes) >= 11
    per_router = Counter(owner(name) for name in domains(underlay, "stub"))
    assert sum(per_router.values()) == 192
    assert min(per_router.values()) <= 2 and max(per_router.values()) >= 6
    assert len({len(members) for members in domains(underlay, "transit").values()}) > 1


def test_coordinates_are_on_the_plane_and_stubs_near_their_transit_router() -> None:
    underlay = generate_transit_stub(seed=5)
    place = {router.label: (router.x, router.y) for router in underlay.routers}
    assert all(0 <= value < 356 for x_y in place.values() for value in x_y)
    for name, members in domains(underlay, "stub").items():
        center = place[owner(name)]
        for router in members:
            offsets = (abs(router.x - center[0]), abs(router.y - center[1]))
            assert max(offsets) <= 64
    stub_spans = spans(underlay, "stub")
    assert 0.6 * 64 < stub_spans.mean() < stub_spans.max() < 64


def spans(underlay: Underlay, role: str) -> np.ndarray:
    """The width and the height of each domain."""
    places = [[(r.x, r.y) for r in members] for members in domains(underlay, role).values()]
    return np.array([np.ptp(domain_places, axis=0) for domain_places in places])


def test_only_the_first_transit_domain_has_the_transit_width() -> None:
    found = np.array([spans(generate_transit_stub(seed=seed), "transit") for seed in range(5)])
    first, others = found[:, 0], found[:, 1:]
    assert 0.6 * 178 < first.mean() < first.max() < 178
    assert 0.6 * 64 < others.mean() < others.max() < 64


def test_narrow_transit_domains_are_in_a_corner_of_their_square() -> None:
    """A square of half the width of the plane has its lower left corner at 178 or below."""
    for seed in range(5):
        for name, members in domains(generate_transit_stub(seed=seed), "transit").items():
            if name != "T:0":
                assert max(max(router.x, router.y) for router in members) < 178 + 64


def test_delays_follow_distances() -> None:
    underlay = generate_transit_stub(SMALL, seed=6, delay_us_per_unit=50)
    place = {router.name: (router.x, router.y) for router in underlay.routers}
    for link in underlay.links:
        length = max(1.0, math.dist(place[link.a], place[link.b]))
        assert link.ab.delay_us == pytest.approx(50 * length, abs=0.5001)


def test_extra_links_have_ends_of_the_right_kinds() -> None:
    plain = generate_transit_stub(SMALL, seed=7)
    underlay = generate_transit_stub(
        SMALL, seed=7, extra_transit_stub_links=9, extra_stub_stub_links=13
    )
    extra = Counter(label_pairs(underlay)) - Counter(label_pairs(plain))
    kinds = Counter("".join(sorted(a[0] + b[0])) for a, b in extra.elements())
    assert kinds == {"ST": 9, "SS": 13}
    for a, b in extra:
        assert domain(a) != domain(b)
        stub, other = (a, b) if a[0] == "S" else (b, a)
        assert other[0] == "S" or owner(stub) != other


def test_only_the_seed_changes_the_network() -> None:
    first = underlay_to_json(generate_transit_stub(SMALL, seed=1))
    assert underlay_to_json(generate_transit_stub(SMALL, seed=1)) == first
    assert underlay_to_json(generate_transit_stub(SMALL, seed=2)) != first


def test_chosen_sizes_are_exact_and_near_the_proportions_of_the_paper() -> None:
    assert choose_domain_sizes(1584) == PAPER_SIZES
    assert choose_domain_sizes(100) == DomainSizes(2, 2, 3, 8)
    for routers in range(4, 3000):
        sizes = choose_domain_sizes(routers)
        assert sizes.routers == routers
        if routers >= 70:
            assert 3 <= sizes.stub_domains_per_transit_router <= 5
            assert 6 <= sizes.routers_per_stub_domain <= 11
            assert 0.02 < sizes.transit_routers / routers < 0.05


def test_extra_routers_make_stub_domains_larger() -> None:
    underlay = generate_transit_stub(DomainSizes(2, 3, 2, 4, spare_stub_routers=11), seed=1)
    assert len(underlay.routers) == 6 + 12 * 4 + 11
    assert sum(len(members) for members in domains(underlay, "transit").values()) == 6


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"seed": -1}, "seed: expected a whole number, 0 or more, found -1"),
        ({"stub_link_probability": 0}, "stub_link_probability: expected above 0, up to 1, found 0"),
        ({"domain_link_probability": 1.1}, "domain_link_probability: .* found 1.1"),
        ({"extra_stub_stub_links": -1}, "extra_stub_stub_links: expected 0 or more, found -1"),
        ({"delay_us_per_unit": 0}, "delay_us_per_unit: expected above 0, found 0"),
        ({"transit_link_probability": 1e-9}, "expected a connected graph of .* larger probability"),
        ({"extra_transit_stub_links": 10_000}, "extra_transit_stub_links: .* ask for fewer"),
    ],
)
def test_bad_parameters_are_named(parameters: dict[str, float], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        generate_transit_stub(SMALL, **{"seed": 1, **parameters})


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 8, 4, 8), "transit_domains: expected 1 or more, found 0"),
        ((6, 8, 4, 0), "routers_per_stub_domain: expected 1 or more, found 0"),
        ((1, 1, 2, 8, 2), "spare_stub_routers: expected fewer than the 2 stub domains, found 2"),
        ((1, 1, 2, 8, -1), "spare_stub_routers: expected 0 or more, found -1"),
    ],
)
def test_bad_sizes_are_named(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        DomainSizes(*sizes)


def test_too_few_routers_are_refused() -> None:
    with pytest.raises(TopologyError, match="routers: expected 4 or more, found 3"):
        choose_domain_sizes(3)
