"""Pastry (Rowstron and Druschel, Middleware 2001), with identifiers of 64 bits.

A node knows a leaf set, the nodes next to it on the ring of identifiers, and a routing table: row r
has, for each digit d, a node that shares exactly r digits with it and goes on with d. The paper
takes the nearest such node by proximity, which an offline overlay does not have: here one is
taken at random.
"""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import Interests
from topologies.overlays.keys import draw_ids
from topologies.overlays.offline_overlay import OfflineOverlay
from topologies.overlays.overlay import Keys, Overlay, distinct_edges
from topologies.overlays.topic_keys import KEY_BITS


class PastrySettings(Struct, frozen=True, kw_only=True):
    """Settings of Pastry."""

    b: Annotated[Literal[1, 2, 4, 8], Meta(description="bits of a digit")] = 4
    leaves: Annotated[
        int, Meta(ge=2, le=256, description="nodes in a leaf set, half of them on each side")
    ] = 16

    def __post_init__(self) -> None:
        """Check that both sides have the same size."""
        if self.leaves % 2:
            raise ValueError(f"leaves: expected an even number, found {self.leaves}")


class Pastry(OfflineOverlay):
    """Prefix routing with a table for each node and leaf sets on a ring of 64-bit identifiers."""

    Settings = PastrySettings

    @classmethod
    def make(
        cls, interests: Interests, settings: PastrySettings, rng: np.random.Generator
    ) -> Overlay:
        """The overlay with the entries of each node as directed edges, table before leaves."""
        ids = draw_ids(rng, interests.nodes)
        order = np.argsort(ids)
        table = draw_tables(ids[order], settings.b, rng)
        leaves = leaf_sets(interests.nodes, settings.leaves)
        ranks = np.concatenate((table, leaves))
        ranks = ranks[np.argsort(ranks[:, 0], kind="stable")]
        edges = distinct_edges(order[ranks], interests.nodes, directed=True)
        return Overlay(interests, edges, directed=True, ids=ids)


def draw_tables(ids: Keys, b: int, rng: np.random.Generator) -> Numbers:
    """The routing tables of nodes in the order of their identifiers, as rows (node, entry)."""
    entries, nodes = [np.empty((0, 2), dtype=np.int64)], np.arange(len(ids))
    for row in range(KEY_BITS // b):
        nodes = nodes[_share_digits(ids, nodes, row * b)]
        if not len(nodes):
            break
        entries += [_draw_entries(ids, nodes, row, digit, b, rng) for digit in range(1 << b)]
    return np.concatenate(entries)


def leaf_sets(nodes: int, leaves: int) -> Numbers:
    """The leaf sets of nodes in the order of their identifiers, as rows (node, leaf)."""
    each_side = min(leaves // 2, nodes - 1)
    steps = np.arange(1, each_side + 1)
    node = np.repeat(np.arange(nodes), 2 * each_side)
    step = np.tile(np.concatenate((steps, -steps)), nodes)
    return np.column_stack((node, (node + step) % nodes))


def _share_digits(ids: Keys, nodes: Numbers, bits: int) -> NDArray[np.bool_]:
    """Whether each of these nodes agrees with another node in its first bits."""
    low, high = _prefix_range(ids, ids[nodes], bits)
    return np.asarray(high - low > 1)


def _draw_entries(
    ids: Keys, nodes: Numbers, row: int, digit: int, b: int, rng: np.random.Generator
) -> Numbers:
    """A random entry for one slot of each node; own digits and empty slots have none."""
    shift = np.uint64(KEY_BITS - (row + 1) * b)
    mask = np.uint64((1 << b) - 1) << shift
    wanted = (ids[nodes] & ~mask) | (np.uint64(digit) << shift)
    low, high = _prefix_range(ids, wanted, (row + 1) * b)
    entry = low + (rng.random(len(nodes)) * (high - low)).astype(np.int64)
    is_filled = (high > low) & ((ids[nodes] & mask) != (wanted & mask))
    return np.column_stack((nodes[is_filled], entry[is_filled]))


def _prefix_range(ids: Keys, like: Keys, bits: int) -> tuple[Numbers, Numbers]:
    """The first index, and the index after the last, of the sorted ids with the same prefix."""
    rest = np.uint64((1 << (KEY_BITS - bits)) - 1)
    low = np.searchsorted(ids, like & ~rest, side="left")
    return low, np.searchsorted(ids, like | rest, side="right")
