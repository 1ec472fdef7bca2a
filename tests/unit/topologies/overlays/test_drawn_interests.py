"""Interests drawn at random: sizes, popularity, and draws without replacement."""

import numpy as np
import pytest

from topologies.errors import TopologyError
from topologies.overlays.drawn_interests import Popularity, draw_interests
from topologies.overlays.interests import Interests


def draw(
    nodes: int, topics: int, low: int, high: int, popularity: Popularity = "uniform"
) -> Interests:
    return draw_interests(nodes, topics, (low, high), popularity, np.random.default_rng(1))


def test_every_node_has_its_number_of_different_topics() -> None:
    counts = np.bincount(draw(200, 30, 2, 6).node, minlength=200)
    assert set(counts.tolist()) == {2, 3, 4, 5, 6}
    assert (np.bincount(draw(50, 7, 7, 7).node) == 7).all()
    assert len(draw(3, 5, 0, 0)) == 0


@pytest.mark.parametrize(
    ("popularity", "weights"),
    [
        ("uniform", [1, 1, 1, 1]),
        ("zipf", [1, 1 / 4, 1 / 9, 1 / 16]),
        ("exponential", np.exp(-np.arange(1, 5) / 0.4)),
    ],
)
def test_two_of_four_topics_follow_the_law(popularity: Popularity, weights: list[float]) -> None:
    nodes = 20_000
    p = np.array(weights) / np.sum(weights)
    # First draw t, or first another one u and then t among those left.
    expected = [p[t] + sum(p[u] * p[t] / (1 - p[u]) for u in range(4) if u != t) for t in range(4)]
    found = draw(nodes, 4, 2, 2, popularity).sizes / nodes
    assert found == pytest.approx(expected, abs=0.015)


def test_the_draw_does_not_depend_on_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = draw(40, 10, 1, 3, "zipf").pairs()
    monkeypatch.setattr("topologies.overlays.drawn_interests._CELLS_AT_ONCE", 30)
    assert (draw(40, 10, 1, 3, "zipf").pairs() == whole).all()


@pytest.mark.parametrize(("nodes", "low", "high"), [(0, 1, 1), (5, 3, 2), (5, 1, 11)])
def test_impossible_sizes_are_refused(nodes: int, low: int, high: int) -> None:
    with pytest.raises(TopologyError, match="expected .*, found"):
        draw(nodes, 10, low, high)
