"""Small-world overlays on a full ring (Chen and Tock, Middleware Industry 2015).

Node v is at position v of n. Phase i of v holds the nodes at a clockwise distance of 2^i to
2^(i+1) - 1, and v has one finger in each of its phases: `chord` takes the nearest, `random` any
(RandomSW), and `greedy` (GrSwico) is computed from all interests: of all pairs (v, w) whose phase
has no finger yet, the one that contributes most becomes a finger, repeatedly.

Readings of the paper. An edge fills the phase of the node whose finger it is, not of its other end.
A pair and its reverse are two candidates of one undirected edge: after one was taken, the other
contributes nothing. If both may be taken, one is chosen at random. Phases in which no node
contributes get a random node of the phase, as in `random`.
"""

from collections.abc import Collection, Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from topologies.overlays.arrays import Numbers
from topologies.overlays.greedy_pairs import TopicComponents, choose_pairs
from topologies.overlays.interests import Interests, make_interests
from topologies.overlays.offline_overlay import OfflineOverlay
from topologies.overlays.overlay import Overlay
from topologies.overlays.ring import Phases, count_phases, draw_distances

SmallWorldFingers = Literal["chord", "random", "greedy"]

_EMPTY = -1


class SmallWorldSettings(Struct, frozen=True, kw_only=True):
    """Settings of a small-world overlay."""

    fingers: Annotated[
        SmallWorldFingers,
        Meta(
            description="chord: the nearest node of each phase; random: any; greedy: GrSwico, "
            "the nodes that connect most topics"
        ),
    ] = "greedy"
    phases: Annotated[Phases, Meta(description="rounding of log2 n to the number of phases")] = (
        "floor"
    )


class SmallWorld(OfflineOverlay):
    """A ring of all nodes with one finger in each phase, chosen by interests or not."""

    Settings = SmallWorldSettings

    @classmethod
    def make(
        cls, interests: Interests, settings: SmallWorldSettings, rng: np.random.Generator
    ) -> Overlay:
        """The ring with its fingers as directed edges."""
        table = make_fingers(interests, settings.fingers, settings.phases, rng)
        return Overlay(interests, finger_edges(table), directed=True)


def plan_fingers(
    wanted: Sequence[Collection[int]],
    fingers: SmallWorldFingers,
    phases: Phases,
    seed: int,
) -> list[list[int]]:
    """The fingers of nodes 0 to n-1 by phase, from the topics of each and a seed.

    The same arguments give the same fingers.
    """
    rng = np.random.default_rng(seed)
    table: list[list[int]] = make_fingers(number_topics(wanted), fingers, phases, rng).tolist()
    return table


def number_topics(wanted: Sequence[Collection[int]]) -> Interests:
    """Interests of nodes 0 to n-1; topics are renumbered from 0."""
    node = np.repeat(np.arange(len(wanted)), [len(topics) for topics in wanted])
    topics = [topic for some in wanted for topic in sorted(some)]
    known, topic = np.unique(np.array(topics, dtype=np.int64), return_inverse=True)
    return make_interests(len(wanted), len(known), np.column_stack((node, topic)))


def make_fingers(
    interests: Interests, fingers: SmallWorldFingers, phases: Phases, rng: np.random.Generator
) -> Numbers:
    """The finger of each node in each phase, a row a node."""
    count = count_phases(interests.nodes, phases)
    if fingers != "greedy":
        distances = draw_distances(interests.nodes, count, fingers, rng)
        return (np.arange(interests.nodes)[:, None] + distances) % interests.nodes
    slots = FingerSlots(interests.nodes, count, rng)
    choose_pairs(interests, slots, TopicComponents(interests), rng)
    return slots.filled(rng)


def finger_edges(table: Numbers) -> Numbers:
    """Rows (node, finger) of a table of fingers; a node in two phases is one finger."""
    nodes, phases = table.shape
    return np.column_stack((np.repeat(np.arange(nodes), phases), table.ravel()))


class FingerSlots:
    """One finger for each node and phase, as constraints of the greedy choice.

    `least_phase` is the first phase that takes fingers.
    """

    def __init__(
        self, nodes: int, phases: int, rng: np.random.Generator, least_phase: int = 0
    ) -> None:
        self._nodes, self._phases, self._rng = nodes, phases, rng
        # One more row than phases, without fingers.
        self._is_taken = np.zeros((phases + 1, nodes), dtype=bool)
        self._is_taken[phases:] = self._is_taken[:least_phase] = True
        self.table = np.full((nodes, phases), _EMPTY)
        self._phase_at = _phases_by_distance(nodes, phases)

    def are_open(self, a: Numbers, b: Numbers) -> NDArray[np.bool_]:
        """Whether each pair may become a finger of one of its nodes."""
        ahead = b - a
        forward = self._is_taken[self._phase_at[ahead], a]
        backward = self._is_taken[self._phase_at[-ahead], b]
        return np.asarray(~(forward & backward))

    def take(self, a: int, b: int) -> bool:
        """Make one node the finger of the other, if it is admitted; returns whether it was."""
        free = [
            (start, end, phase)
            for start, end in ((a, b), (b, a))
            if not self._is_taken[phase := self._phase_at[end - start], start]
        ]
        if not free:
            return False
        start, end, phase = free[0] if len(free) == 1 else free[self._rng.integers(2)]
        self.put(start, end, phase)
        return True

    def put(self, start: int, end: int, phase: int) -> None:
        """Set the finger of a node in a phase."""
        self._is_taken[phase, start] = True
        self.table[start, phase] = end

    def filled(self, rng: np.random.Generator) -> Numbers:
        """The fingers, with a random node of the phase where none was taken."""
        distances = draw_distances(self._nodes, self._phases, "random", rng)
        others = (np.arange(self._nodes)[:, None] + distances) % self._nodes
        return np.where(self.table == _EMPTY, others, self.table)


def _phases_by_distance(nodes: int, phases: int) -> Numbers:
    """The phase of each clockwise distance from 0 to n-1; at most `phases`.

    Negative distances index it from the end, which is their clockwise distance.
    """
    exponent = np.frexp(np.arange(nodes, dtype=np.float64))[1].astype(np.int64)
    return np.minimum(exponent - 1, phases)
