"""Claims about generators: their relations on generated points, and counts equal to NetworkX."""

from collections.abc import Callable
from typing import Any

import networkx as nx
import pytest

from analysis.claims import Computation, Finding, SweepRows, UnfitChange, find_claims
from analysis.claims.generators.networks import measure_transit_stub, measure_waxman
from topologies.domain_sizes import choose_domain_sizes
from topologies.transit_stub import generate_transit_stub
from topologies.underlay import Underlay
from topologies.waxman import generate_waxman

Made = dict[str, Any]

MADE: dict[str, Made] = {
    "G1": {
        "routers": 1640, "network.links": 3280, "degree.mean": 4.0, "degree.max": 20,
        "hops.mean": 5.22, "hops.max": 9,
    },
    "G2": {
        "routers": 1584, "network.routers": 1584, "network.links": 2840, "degree.mean": 3.585,
        "degree.max": 14, "hops.mean": 8.4, "hops.max": 17,
    },
}  # fmt: skip


def find(claim_id: str, *seeds: Made) -> Finding:
    """The finding after a change to the points of each seed."""
    (claim,) = find_claims([claim_id])
    (source,) = claim.sources
    rows = [{**MADE[claim_id], "seed": seed, **change} for seed, change in enumerate(seeds)]
    return claim.evaluate({source.experiment: SweepRows(source.experiment, rows, unit="point")})


@pytest.mark.parametrize("claim_id", MADE)
def test_claims_hold_for_networks_like_the_original(claim_id: str) -> None:
    finding = find(claim_id, {}, {}, {})
    assert (finding.holds, finding.reason) == (True, "")
    assert all(part.holds for part in finding.parts[:-1]) and finding.parts[-1].holds is None


@pytest.mark.parametrize(
    ("claim_id", "change", "told"),
    [
        ("G1", {"network.links": 3279}, "links at least 3,280"),
        ("G1", {"network.links": 3281}, "links at most 3,280"),
        ("G1", {"degree.mean": 4.01}, "mean degree at most 4"),
        ("G1", {"hops.mean": 5.19}, "mean hops at least 5.2"),
        ("G1", {"hops.mean": 5.25}, "mean hops at most 5.24"),
        ("G2", {"network.routers": 1585}, "routers at most 1,584"),
        ("G2", {"network.links": 2831}, "links at least 2,831.5"),
        ("G2", {"network.links": 2848}, "links at most 2,847.9"),
        ("G2", {"degree.mean": 3.57}, "mean degree at least 3.575"),
        ("G2", {"hops.mean": 8.29}, "mean hops at least 8.297"),
        ("G2", {"hops.mean": 8.46}, "mean hops at most 8.456"),
    ],
)
def test_a_mean_outside_its_range_is_reported(claim_id: str, change: Made, told: str) -> None:
    finding = find(claim_id, change, change, change)
    (failing,) = [part.text for part in finding.parts if part.holds is False]
    assert failing.endswith(f"(not: {told})")
    assert finding.verdict == "in part"


def test_the_mean_over_seeds_decides_and_has_an_interval() -> None:
    finding = find("G2", {"hops.mean": 7.3}, {"hops.mean": 8.3}, {"hops.mean": 9.3})
    assert finding.holds is True
    # Student's t with two degrees of freedom: 4.3027 / sqrt(3)
    assert finding.interval is not None and finding.interval.bounds is not None
    assert finding.interval.bounds == pytest.approx((8.3 - 2.4842, 8.3 + 2.4842), abs=1e-4)
    assert "mean hops 8.30 [5.82, 10.78], original 8.30 to 8.46" in finding.ours


@pytest.mark.parametrize(("spread", "holds"), [(0.05, False), (0.2, True)])
def test_a_mean_may_exceed_its_range_by_less_than_its_interval(spread: float, holds: bool) -> None:
    """The mean is 0.244 above the range; its interval reaches 2.484 times the spread."""
    finding = find("G2", *({"hops.mean": 8.7 + step * spread} for step in (-1, 0, 1)))
    assert finding.holds is holds


def test_too_few_points_or_other_sizes_leave_a_claim_undecided() -> None:
    assert find("G1", {}, {}).ours.startswith("not decided: 2 of at least 3 seeds for links")
    other = find("G1", {"routers": 820})
    assert other.ours == (
        "undecided: waxman-networks: expected a point with routers=1640, found none"
    )


@pytest.mark.parametrize(
    ("measure", "generate"),
    [
        (measure_waxman, generate_waxman),
        (
            measure_transit_stub,
            lambda n, seed: generate_transit_stub(choose_domain_sizes(n), seed=seed),
        ),
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_points_have_the_counts_of_networkx(
    measure: Callable[..., Made], generate: Callable[..., Underlay], seed: int
) -> None:
    underlay = generate(60, seed=seed)
    graph = nx.Graph((link.a, link.b) for link in underlay.links)
    degrees = [degree for _, degree in graph.degree]
    found = measure(seed=seed, routers=60)
    assert found["network"] == {"routers": 60, "links": graph.number_of_edges()}
    assert found["degree"] == {"mean": pytest.approx(sum(degrees) / 60), "max": max(degrees)}
    assert found["hops"] == {
        "mean": pytest.approx(nx.average_shortest_path_length(graph)),
        "max": nx.diameter(graph),
    }


def a_computation() -> Computation:
    return Computation("squares", measure_waxman, {"routers": (10, 20), "kind": ("a",)}, (1, 2))


def test_points_are_every_combination_of_values_and_seeds() -> None:
    points = a_computation().change({"kind": ["a", "b"], "seed": 7}).points
    assert [(p.values["routers"], p.values["kind"], p.seed) for p in points] == [
        (10, "a", 7), (10, "b", 7), (20, "a", 7), (20, "b", 7),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hosts": 3}, "squares: expected one of routers, kind, seed, found 'hosts'"),
        ({"routers": "many"}, "routers: expected different values like 10, found 'many'"),
        ({"routers": True}, "routers: expected different values like 10, found True"),
        ({"routers": []}, r"routers: expected different values like 10, found \[\]"),
        ({"routers": [[1]]}, r"routers: expected different values like 10, found \[\[1\]\]"),
        ({"seed": [1, 1]}, r"seed: expected different values like 1, found \[1, 1\]"),
    ],
)
def test_changes_that_do_not_fit_are_reported(change: Made, message: str) -> None:
    with pytest.raises(UnfitChange, match=message):
        a_computation().change(change)
