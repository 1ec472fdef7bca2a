"""An overlay as plain data: edges, interests, and positions or identifiers for routes to keys."""

from collections.abc import Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topologies.errors import TopologyError
from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import Interests, check_range

Keys = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Overlay:
    """An overlay of nodes 0 to n-1; one that exists has numbers in range and no repeated edge.

    `position` is the place of each node on the ring (None: node v is at v), `rendezvous` the
    rendezvous node of each topic (None: by the topic's key), `ids` the identifier of each node
    where routing goes by it. `kind`, `settings` and `seed` say how the overlay was made. `names`
    are the names of the nodes, where they have any.
    """

    interests: Interests
    edges: Numbers
    directed: bool = False
    position: Keys | None = None
    rendezvous: Numbers | None = None
    ids: Keys | None = None
    kind: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Check lengths and ranges."""
        for column in self.edges.T:
            check_range("edges", "node", column, self.nodes)
        _check_loops(self.edges)
        _check_unique("position", self.position, self.nodes)
        _check_unique("ids", self.ids, self.nodes)
        if self.names is not None:
            _check_length("names", self.names, self.nodes, "node")
        if self.rendezvous is not None:
            _check_length("rendezvous", self.rendezvous, self.topics, "topic")
            check_range("rendezvous", "node", self.rendezvous, self.nodes)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.interests.nodes

    @property
    def topics(self) -> int:
        """The number of topics."""
        return self.interests.topics

    @cached_property
    def fingers(self) -> Numbers:
        """Rows (node, node that it can send to), in the order of the edges."""
        if self.directed:
            return self.edges
        return np.concatenate((self.edges, self.edges[:, ::-1]))

    @cached_property
    def links(self) -> Numbers:
        """The undirected edges, each pair of nodes once, the lower node first."""
        return distinct_edges(np.sort(self.edges, axis=1), self.nodes, directed=True)


def distinct_edges(pairs: ArrayLike, nodes: int, directed: bool) -> Numbers:
    """The pairs without repeats, in the order of their first occurrence.

    If undirected, a pair and its reverse are one edge.
    """
    edges = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    ends = edges if directed else np.sort(edges, axis=1)
    _, first = np.unique(ends[:, 0] * nodes + ends[:, 1], return_index=True)
    return edges if len(first) == len(edges) else edges[np.sort(first)]


def _check_loops(edges: Numbers) -> None:
    bad = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(bad):
        node = edges[bad[0], 0]
        raise TopologyError(
            f"edges[{bad[0]}]: expected two different nodes, found {node} and {node}"
        )


def _check_unique(where: str, values: Keys | None, nodes: int) -> None:
    if values is None:
        return
    _check_length(where, values, nodes, "node")
    kinds, counts = np.unique(values, return_counts=True)
    if len(kinds) < nodes:
        twice = int(kinds[counts > 1][0])
        raise TopologyError(
            f"{where}: expected a different value for each node, found {twice} twice"
        )


def _check_length(where: str, values: Sized, count: int, thing: str) -> None:
    if len(values) != count:
        raise TopologyError(f"{where}: expected {count}, one for each {thing}; found {len(values)}")
