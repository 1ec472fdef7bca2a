"""Metrics of an overlay.

Topic-connectivity and the TCO support ratio follow Chen and Tock (Middleware Industry 2015): with
TCC(E) the number of connected components among the subscribers of each topic, summed over topics,
support is (TCC(no edges) - TCC(E)) / (TCC(no edges) - TCC(all pairs)). Edges are undirected here.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from topologies.overlays.arrays import Numbers, index_ranges
from topologies.overlays.common_topics import CommonRows
from topologies.overlays.overlay import Overlay
from topologies.overlays.text_files import Weights

_LINKS_AT_ONCE = 100_000
_SOURCES_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class Degree:
    """The mean and the largest degree of a node."""

    mean: float
    max: float


@dataclass(frozen=True, slots=True)
class OverlayMetrics:
    """The metrics of an overlay; None where one is not defined.

    The degree of a node in a directed overlay is its number of fingers. `weighted_degree` is the
    mean over nodes of the sum of the weights of their edges. `topic_connected` is the share of
    topics whose subscribers are connected among themselves (none or one is connected).
    `topic_diameter` is the largest distance in hops between two subscribers inside the subgraph of
    a topic, averaged over topics with a subscriber; None if a topic is not connected.
    """

    edges: int
    degree: Degree
    weighted_degree: float | None
    weighted_degree_max: float | None
    tco_support: float
    topic_connected: float
    topic_diameter: float | None
    topic_diameter_weighted: float | None

    def to_dict(self) -> dict[str, Any]:
        """The metrics as plain data for JSON."""
        return asdict(self)


def describe_overlay(overlay: Overlay, weights: Weights | None = None) -> OverlayMetrics:
    """The metrics of an overlay, the weighted ones where there are weights."""
    graphs = TopicGraphs(overlay)
    components = topic_components(overlay)
    sizes = overlay.interests.sizes
    is_connected = bool((components <= 1).all())
    weighted = _degree(overlay, weights) if weights is not None else None
    return OverlayMetrics(
        edges=len(overlay.edges),
        degree=_degree(overlay, None),
        weighted_degree=weighted.mean if weighted else None,
        weighted_degree_max=weighted.max if weighted else None,
        tco_support=_support(sizes, components),
        topic_connected=float((components <= 1).mean()) if len(components) else 1.0,
        topic_diameter=_mean_diameter(overlay, graphs, None) if is_connected else None,
        topic_diameter_weighted=(
            _mean_diameter(overlay, graphs, weights)
            if is_connected and weights is not None
            else None
        ),
    )


class TopicGraphs:
    """The subgraphs of an overlay that the subscribers of each topic induce."""

    def __init__(self, overlay: Overlay) -> None:
        links = overlay.links[np.argsort(overlay.links[:, 0], kind="stable")]
        self._links = links
        self._first = np.searchsorted(links[:, 0], np.arange(overlay.nodes + 1))
        self._place = np.full(overlay.nodes, -1)
        self._interests = overlay.interests

    def graph(self, topic: int, weights: Weights | None = None) -> csr_array:
        """Links between subscribers of a topic; vertices are the subscribers in ascending order."""
        members = self._interests.subscribers(topic)
        first = self._first[members]
        links = self._links[index_ranges(first, self._first[members + 1] - first)]
        self._place[members] = np.arange(len(members))
        ends = self._place[links]
        self._place[members] = -1
        is_inside = ends[:, 1] >= 0
        ends, value = ends[is_inside], _link_weights(links[is_inside], weights)
        shape = (len(members), len(members))
        return csr_array((value, (ends[:, 0], ends[:, 1])), shape=shape)

    def diameter(self, topic: int, weights: Weights | None = None) -> float:
        """The largest distance between two subscribers of a topic, by weights or in hops."""
        graph = self.graph(topic, weights)
        return _longest_path(graph) if weights is not None else _most_hops(graph)


def _longest_path(graph: csr_array) -> float:
    """The largest distance by weights in a connected undirected graph."""
    sources = range(0, graph.shape[0], _SOURCES_AT_ONCE)
    parts = (np.arange(graph.shape[0])[start : start + _SOURCES_AT_ONCE] for start in sources)
    return float(max(dijkstra(graph, directed=False, indices=part).max() for part in parts))


def _most_hops(graph: csr_array) -> int:
    """The largest distance in hops in a connected undirected graph.

    Breadth-first searches from many sources advance together, with one bit for each source.
    """
    size, both_ways = graph.shape[0], csr_array(graph + graph.T)
    most = 0
    for start in range(0, size, _SOURCES_AT_ONCE):
        source = np.arange(min(_SOURCES_AT_ONCE, size - start))
        reached = np.zeros((size, -(-len(source) // 64)), dtype=np.uint64)
        reached[start + source, source // 64] = np.uint64(1) << (source % 64).astype(np.uint64)
        everything = np.bitwise_or.reduce(reached)
        hops = 0
        while (reached != everything).any():
            reached |= np.bitwise_or.reduceat(reached[both_ways.indices], both_ways.indptr[:-1])
            hops += 1
        most = max(most, hops)
    return most


def tco_support(overlay: Overlay) -> float:
    """The TCO support ratio of an overlay; 1 where no topic needs an edge."""
    return _support(overlay.interests.sizes, topic_components(overlay))


def topic_components(overlay: Overlay) -> Numbers:
    """The number of connected components among the subscribers of each topic.

    They are computed in one graph, whose vertices are subscriptions.
    """
    interests, size = overlay.interests, len(overlay.interests)
    rows = CommonRows(interests)
    graph = csr_array((size, size), dtype=np.int8)
    for start in range(0, len(overlay.links), _LINKS_AT_ONCE):
        a, b = overlay.links[start : start + _LINKS_AT_ONCE].T
        _, row_a, row_b = rows.find(a, b)
        graph += csr_array((np.ones(len(row_a), dtype=np.int8), (row_a, row_b)), shape=(size, size))
    label = connected_components(graph, directed=False)[1]
    _, first = np.unique(label, return_index=True)
    return np.bincount(interests.topic[first], minlength=interests.topics)


def _support(sizes: Numbers, components: Numbers) -> float:
    """The TCO support ratio; 1 where no topic needs an edge."""
    alone, best = int(sizes.sum()), int((sizes > 0).sum())
    return float((alone - components.sum()) / (alone - best)) if alone > best else 1.0


def _degree(overlay: Overlay, weights: Weights | None) -> Degree:
    """The degrees of nodes, weighted or plain."""
    fingers = overlay.fingers
    value = _link_weights(fingers, weights)
    degrees = np.bincount(fingers[:, 0], value, minlength=overlay.nodes)
    largest = float(degrees.max())
    return Degree(float(degrees.mean()), largest if weights is not None else int(largest))


def _mean_diameter(overlay: Overlay, graphs: TopicGraphs, weights: Weights | None) -> float | None:
    """The diameters of topics with a subscriber, averaged."""
    topics = np.flatnonzero(overlay.interests.sizes).tolist()
    return float(np.mean([graphs.diameter(topic, weights) for topic in topics])) if topics else None


def _link_weights(links: Numbers, weights: Weights | None) -> NDArray[np.float64]:
    return np.ones(len(links)) if weights is None else weights[links[:, 0], links[:, 1]]
