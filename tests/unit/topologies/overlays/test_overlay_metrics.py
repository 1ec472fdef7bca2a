"""Metrics of overlays, by hand and compared with NetworkX."""

import networkx as nx
import numpy as np
import pytest

from tests.fixtures.topic_interests import draw
from topologies.overlays.interests import make_interests
from topologies.overlays.metrics import describe_overlay
from topologies.overlays.overlay import Overlay, distinct_edges
from topologies.overlays.ring import Ring, RingSettings

# Topic 0: the path 0-1-2. Topic 1: 0 and 3, not connected. Topic 2: only 3. Topic 3: no node.
INTERESTS = make_interests(4, 4, [[0, 0], [1, 0], [2, 0], [0, 1], [3, 1], [3, 2]])
PATH = np.array([[0, 1], [1, 2], [2, 3]])


def test_metrics_by_hand() -> None:
    metrics = describe_overlay(Overlay(INTERESTS, PATH))
    assert (metrics.edges, metrics.degree.mean, metrics.degree.max) == (3, 1.5, 2)
    assert metrics.tco_support == pytest.approx((6 - 4) / (6 - 3))
    assert metrics.topic_connected == 3 / 4
    assert metrics.topic_diameter is None and metrics.weighted_degree is None


def test_a_topic_connected_overlay_has_a_diameter() -> None:
    edges = np.concatenate((PATH, [[0, 3]]))
    weights = np.array([[0, 1, 9, 5], [1, 0, 2, 9], [9, 2, 0, 3], [5, 9, 3, 0]], dtype=float)
    metrics = describe_overlay(Overlay(INTERESTS, edges), weights)
    assert (metrics.tco_support, metrics.topic_connected) == (1, 1)
    assert metrics.topic_diameter == pytest.approx((2 + 1 + 0) / 3)
    assert metrics.topic_diameter_weighted == pytest.approx((3 + 5 + 0) / 3)
    assert metrics.weighted_degree == pytest.approx(2 * (1 + 2 + 3 + 5) / 4)
    assert metrics.weighted_degree_max == 8


def test_the_degree_of_a_directed_overlay_counts_fingers() -> None:
    edges = np.array([[0, 1], [1, 0], [0, 2]])
    metrics = describe_overlay(Overlay(INTERESTS, edges, directed=True))
    assert (metrics.edges, metrics.degree.mean, metrics.degree.max) == (3, 0.75, 2)
    assert metrics.tco_support == pytest.approx(2 / 3)


def test_an_overlay_without_topics_has_full_support() -> None:
    metrics = describe_overlay(Overlay(make_interests(2, 0, []), np.empty((0, 2), dtype=np.int64)))
    assert (metrics.tco_support, metrics.topic_connected, metrics.topic_diameter) == (1, 1, None)


@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    interests = make_interests(
        30, 8, np.column_stack((rng.integers(0, 30, 60), rng.integers(0, 8, 60)))
    )
    drawn = rng.integers(0, 30, (50 + 60 * seed, 2))
    edges = distinct_edges(drawn[drawn[:, 0] != drawn[:, 1]], 30, directed=False)
    metrics = describe_overlay(Overlay(interests, edges))
    graph = nx.Graph(edges.tolist())
    graph.add_nodes_from(range(30))
    parts = [graph.subgraph(interests.subscribers(topic).tolist()) for topic in range(8)]
    components = [nx.number_connected_components(part) for part in parts]
    nobody = sum(not len(part) for part in parts)
    alone, best = len(interests), 8 - nobody
    assert metrics.tco_support == pytest.approx((alone - sum(components)) / (alone - best))
    assert metrics.topic_connected == sum(count <= 1 for count in components) / 8
    if max(components) == 1:
        diameters = [nx.diameter(part) for part in parts if len(part)]
        assert metrics.topic_diameter == pytest.approx(sum(diameters) / len(diameters))


@pytest.mark.parametrize("seed", range(3))
def test_diameters_of_large_topics_equal_networkx(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 700
    edges = np.array([[rng.integers(max(0, node - 20), node), node] for node in range(1, size)])
    weights = np.zeros((size, size))
    weights[edges[:, 0], edges[:, 1]] = weights[edges[:, 1], edges[:, 0]] = rng.random(size - 1)
    tree = nx.Graph()
    tree.add_weighted_edges_from((a, b, weights[a, b]) for a, b in edges.tolist())
    metrics = describe_overlay(
        Overlay(make_interests(size, 1, [[v, 0] for v in range(size)]), edges), weights
    )
    assert metrics.topic_diameter == nx.diameter(tree)
    assert metrics.topic_diameter_weighted == pytest.approx(nx.diameter(tree, weight="weight"))


@pytest.mark.slow
def test_support_of_chord_is_the_published_one() -> None:
    # Chen and Tock, figure 2c: 11.6 %, the mean over 1,000 to 10,000 nodes; 2,000 topics, 20 each.
    support = []
    for nodes in range(1_000, 10_001, 1_000):
        rng = np.random.default_rng(nodes)
        interests = draw(nodes, 2_000, 20, seed=nodes)
        support.append(describe_overlay(Ring.make(interests, RingSettings(), rng)).tco_support)
    assert np.mean(support) == pytest.approx(0.116, abs=0.003)
