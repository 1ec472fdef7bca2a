"""Claims about small-world overlays: relations on generated points, and the rows of a point."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analysis.claims import Finding, SweepRows, find_claims
from analysis.claims.small_world.overlays import measure_small_world
from analysis.claims.small_world.relations import BY_NODES, BY_TOPICS
from tests.fixtures.claim_runs import reproduce_here

Made = dict[str, Any]
SIZES = (1_000, 4_000, 10_000)


def a_point(place: int) -> Made:
    """A point that agrees with the paper, at one of three sizes."""
    baselines = {
        "extra_overhead_percent": 30.0 + place,
        "path_ratio": 2.0 + place,
        "path": 20.0 * (1 + place),
        "support": 0.1,
    }
    return {
        "greedy.path": 10.0 + place,
        "greedy.support": 0.6 + 0.1 * place,
        **{
            f"{kind}.{name}": value
            for kind in ("chord", "random")
            for name, value in baselines.items()
        },
    }


def find(claim_id: str, change: Callable[[int, Made], Made] = lambda _, point: point) -> Finding:
    """The finding after a change to the points at each place of three seeds' curves."""
    (claim,) = find_claims([claim_id])
    (source,) = claim.sources
    key = {BY_NODES: "nodes", BY_TOPICS: "topics"}[source.experiment]
    rows = [
        {key: size, "seed": seed, **change(place, a_point(place))}
        for place, size in enumerate(SIZES)
        for seed in (1, 2, 3)
    ]
    return claim.evaluate({source.experiment: SweepRows(source.experiment, rows, unit="point")})


@pytest.mark.parametrize("claim_id", ["S1", "S2", "S3", "S4"])
def test_claims_hold_for_points_like_the_papers(claim_id: str) -> None:
    finding = find(claim_id)
    assert (finding.holds, finding.reason) == (True, "")
    assert finding.interval is not None


@pytest.mark.parametrize(
    ("claim_id", "column", "values", "told"),
    [
        ("S1", "chord.extra_overhead_percent", (5, 20, 30), "Chord at least 20 %"),
        ("S1", "random.extra_overhead_percent", (40, 50, 60), "RandomSW at most 45 %"),
        ("S2", "chord.path_ratio", (1, 2, 3.2), "Chord's ratio above 3.3"),
        ("S2", "random.path_ratio", (3, 5, 4), "RandomSW's ratio: rank correlation at least 0.9"),
        ("S2", "chord.path_ratio", (4.5, 4.4, 4.0), "Chord's ratio rises from first to last"),
        ("S3", "random.support", (0.1, 0.2, 0.2), "at least 5 times RandomSW's"),
        ("S3", "greedy.support", (0.9, 0.8, 0.7), "GrSwico's support rises from first to last"),
        ("S4", "random.extra_overhead_percent", (10, 10, 10), "RandomSW at least 20 %"),
        ("S4", "random.path", (20, 10.5, 60), "path shorter than RandomSW's, 4,000 topics"),
        ("S4", "chord.support", (0.1, 0.1, 0.9), "support above Chord's, 10,000 topics"),
    ],
)
def test_a_value_outside_its_band_or_trend_is_reported(
    claim_id: str, column: str, values: tuple[float, ...], told: str
) -> None:
    finding = find(claim_id, lambda place, point: {**point, column: values[place]})
    (failing,) = [part.text for part in finding.parts if part.holds is False]
    assert f"(not: {told}" in failing
    assert finding.verdict == "in part"


def test_order_and_gap_are_for_information() -> None:
    finding = find("S4", lambda place, point: {**point, "chord.extra_overhead_percent": 22 - place})
    assert finding.holds is True
    assert "order: RandomSW above Chord; paper: Chord above RandomSW" in finding.ours
    assert "Chord by topics 22, 21, 20 % more; paper: rises up to +44.5 %" in finding.ours


def test_a_sweep_without_its_largest_size_leaves_a_claim_undecided() -> None:
    (claim,) = find_claims(["S2"])
    rows = [{"nodes": 1_000, "seed": seed, **a_point(0)} for seed in (1, 2, 3)]
    finding = claim.evaluate({BY_NODES: SweepRows(BY_NODES, rows, unit="point")})
    assert finding.holds is None and "nodes=10000, found none" in finding.ours


def test_a_point_compares_overlays_of_the_same_interests() -> None:
    found = measure_small_world(3, nodes=120, topics=200, publications=150, phases="floor")
    greedy, chord = found["greedy"], found["chord"]
    assert found == measure_small_world(3, 120, 200, 150, "floor")
    ratio = chord["pure_forwarding"] / greedy["pure_forwarding"]
    assert chord["extra_overhead_percent"] == pytest.approx(100 * (ratio - 1))
    assert chord["path_ratio"] == pytest.approx(chord["path"] / greedy["path"])
    assert chord["support_ratio"] == pytest.approx(greedy["support"] / chord["support"])
    assert 1 < greedy["path"] < min(chord["path"], found["random"]["path"])
    assert min(found[kind]["support_ratio"] for kind in ("chord", "random")) > 1
    assert found["deliveries"] > 1_000


def test_a_claim_is_reproduced_with_its_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("topics=[100, 200]", "nodes=150", "publications=60", "seed=[1, 2, 3]")
    changes = [word for change in small for word in ("--set", change)]
    assert reproduce_here(tmp_path, "S4", *changes) == 0
    (claim,) = json.loads(capsys.readouterr().out.splitlines()[-1])["claims"]
    assert (claim["id"], claim["runs"], claim["failed"]) == ("S4", 6, 0)
    assert claim["interval_of"] == "% more of Chord" and claim["holds"] is not None
    (page,) = tmp_path.glob("reproduce/small/S4-*.html")
    text = page.read_text()
    # our lines, and the paper's means
    for label in ("GrSwico", "Chord, paper (mean)", "RandomSW, paper (mean)"):
        assert f">{label}</text>" in text
