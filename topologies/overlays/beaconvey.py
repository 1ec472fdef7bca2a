"""Overlays of BeaConvey (Chen, Tock and Girdzijauskas, DEBS 2018): ring and fingers by interests.

A ring may be greedy (GSwicoS): of all pairs of nodes that are ends of different paths, the pair
that contributes most (see `greedy_pairs`) becomes neighbours, until the paths are one circle.
Long fingers, those of phase 1 and more, may be greedy, too (GSwicoL): they are chosen as GrSwico
chooses fingers, except that the ring's edges exist from the beginning.

    sl    greedy ring, greedy long fingers
    s     greedy ring, plain long fingers
    l     random ring, greedy long fingers
    none  random ring, plain long fingers

Plain fingers are random in their phase, or those of Chord; the paper does not say which of them its
tables use. Paths without common topics at their ends are joined in random order.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from topologies.overlays.arrays import Numbers
from topologies.overlays.greedy_pairs import TopicComponents, choose_pairs
from topologies.overlays.interests import Interests, make_interests
from topologies.overlays.offline_overlay import OfflineOverlay
from topologies.overlays.overlay import Overlay
from topologies.overlays.ring import Fingers, Phases, count_phases, draw_distances
from topologies.overlays.small_world import FingerSlots, finger_edges, number_topics

GreedyParts = Literal["sl", "s", "l", "none"]

_ENDS = 2  # of a path; a node has as many neighbours on the ring


class BeaConveyOverlaySettings(Struct, frozen=True, kw_only=True):
    """Settings of an overlay of BeaConvey."""

    overlay: Annotated[
        GreedyParts,
        Meta(
            description="parts chosen by interests: ring (s), long fingers (l), both (sl) or none"
        ),
    ] = "sl"
    fingers: Annotated[
        Fingers,
        Meta(
            description="long fingers not chosen by interests: random or first node of each phase"
        ),
    ] = "random"
    phases: Annotated[Phases, Meta(description="rounding of log2 n to the number of phases")] = (
        "floor"
    )


class BeaConveyOverlay(OfflineOverlay):
    """A ring with one finger in each phase; ring, long fingers, both or none by interests."""

    Settings = BeaConveyOverlaySettings

    @classmethod
    def make(
        cls, interests: Interests, settings: BeaConveyOverlaySettings, rng: np.random.Generator
    ) -> Overlay:
        """The ring as positions, its fingers as directed edges."""
        ring = make_ring(interests, settings, rng)
        return overlay_on_ring(
            interests, ring, make_fingers_on_ring(interests, ring, settings, rng)
        )


class Plan(NamedTuple):
    """An overlay for agents: the rank of each node on the ring, and its fingers by phase."""

    rank: list[int]
    fingers: list[list[int]]


def plan_overlay(
    wanted: Sequence[Collection[int]], settings: BeaConveyOverlaySettings, seed: int
) -> Plan:
    """The overlay of nodes 0 to n-1, from the topics of each and a seed.

    The same arguments give the same overlay.
    """
    rng, interests = np.random.default_rng(seed), number_topics(wanted)
    ring = make_ring(interests, settings, rng)
    table = make_fingers_on_ring(interests, ring, settings, rng)
    rank = np.argsort(ring)
    return Plan(rank.tolist(), ring[table][rank].tolist())


def overlay_on_ring(interests: Interests, ring: Numbers, table: Numbers) -> Overlay:
    """The overlay of a ring, given as the node of each rank, and of the fingers of each rank."""
    rank = np.argsort(ring).astype(np.uint64)
    return Overlay(interests, ring[finger_edges(table)], directed=True, position=rank)


def make_ring(
    interests: Interests, settings: BeaConveyOverlaySettings, rng: np.random.Generator
) -> Numbers:
    """The node of each rank on the ring."""
    if settings.overlay in ("sl", "s"):
        return choose_ring(interests, rng)
    return rng.permutation(interests.nodes)


def make_fingers_on_ring(
    interests: Interests,
    ring: Numbers,
    settings: BeaConveyOverlaySettings,
    rng: np.random.Generator,
) -> Numbers:
    """The fingers of each rank by phase, as ranks."""
    nodes, phases = len(ring), count_phases(len(ring), settings.phases)
    if settings.overlay in ("sl", "l"):
        return choose_long_fingers(interests, ring, phases, rng)
    return (
        np.arange(nodes)[:, None] + draw_distances(nodes, phases, settings.fingers, rng)
    ) % nodes


def choose_ring(interests: Interests, rng: np.random.Generator) -> Numbers:
    """GSwicoS: the node of each rank on a greedy ring."""
    paths = RingPaths(interests.nodes)
    choose_pairs(interests, paths, TopicComponents(interests), rng)
    rows = paths.rows()
    order = rng.permutation(len(rows)).tolist()
    ring = np.concatenate([rows[row][:: rng.choice((1, -1))] for row in order])
    return np.roll(ring, rng.integers(interests.nodes))


def choose_long_fingers(
    interests: Interests, ring: Numbers, phases: int, rng: np.random.Generator
) -> Numbers:
    """GSwicoL: the fingers of each rank by phase, as ranks."""
    nodes = len(ring)
    ranked = _rank_nodes(interests, ring)
    components, slots = TopicComponents(ranked), FingerSlots(nodes, phases, rng, least_phase=1)
    if phases:
        rank = np.arange(nodes)
        slots.table[:, 0] = np.roll(rank, -1)
        components.add_edges(rank, slots.table[:, 0])
        choose_pairs(ranked, slots, components, rng)
    return slots.filled(rng)


def _rank_nodes(interests: Interests, ring: Numbers) -> Interests:
    """The same interests, of ranks instead of nodes."""
    pairs = interests.pairs()
    return make_interests(
        interests.nodes,
        interests.topics,
        np.column_stack((np.argsort(ring)[pairs[:, 0]], pairs[:, 1])),
    )


class RingPaths:
    """Disjoint paths of nodes; ends of different paths may be joined."""

    def __init__(self, nodes: int) -> None:
        self._neighbours: list[list[int]] = [[] for _ in range(nodes)]
        self._is_inner = np.zeros(nodes, dtype=bool)
        self._path = np.arange(nodes)
        self._members = [[node] for node in range(nodes)]

    def are_open(self, a: Numbers, b: Numbers) -> NDArray[np.bool_]:
        """Whether each pair are ends of different paths; a single node is both ends of its path."""
        is_free = ~(self._is_inner[a] | self._is_inner[b])
        return np.asarray(is_free & (self._path[a] != self._path[b]))

    def take(self, a: int, b: int) -> bool:
        """Join two nodes if they are ends of different paths; returns whether they were."""
        if self._is_inner[a] or self._is_inner[b] or self._path[a] == self._path[b]:
            return False
        for one, other in ((a, b), (b, a)):
            self._neighbours[one].append(other)
            self._is_inner[one] = len(self._neighbours[one]) == _ENDS
        kept, other = sorted((self._path[a], self._path[b]), key=lambda p: -len(self._members[p]))
        self._path[self._members[other]] = kept
        self._members[kept] += self._members[other]
        self._members[other] = []
        return True

    def rows(self) -> list[Numbers]:
        """The nodes of each path from end to end."""
        return [self._row(members) for members in self._members if members]

    def _row(self, members: Sequence[int]) -> Numbers:
        before, node = None, next(one for one in members if not self._is_inner[one])
        row = [node]
        while following := [one for one in self._neighbours[node] if one != before]:
            before, node = node, following[0]
            row.append(node)
        return np.array(row)
