"""A full ring with fingers (Stoica et al., SIGCOMM 2001; Chen and Tock, Middleware Industry 2015).

Node v is at position v of n. Phase i of v holds the nodes at a clockwise distance of 2^i to
2^(i+1) - 1, and v has one finger in each of its phases: `chord` takes the nearest, at 2^i, and
`random` any. The finger of phase 0 is the successor.
"""

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta, Struct

from topologies.overlays.arrays import Numbers
from topologies.overlays.interests import Interests
from topologies.overlays.offline_overlay import OfflineOverlay
from topologies.overlays.overlay import Overlay

Fingers = Literal["chord", "random"]
Phases = Literal["floor", "ceil"]


class RingSettings(Struct, frozen=True, kw_only=True):
    """Settings of a ring."""

    fingers: Annotated[
        Fingers, Meta(description="chord: the nearest node of each phase; random: any node of it")
    ] = "chord"
    phases: Annotated[Phases, Meta(description="rounding of log2 n to the number of phases")] = (
        "floor"
    )


class Ring(OfflineOverlay):
    """A ring of all nodes with one finger in each power-of-two phase of clockwise distance."""

    Settings = RingSettings

    @classmethod
    def make(
        cls, interests: Interests, settings: RingSettings, rng: np.random.Generator
    ) -> Overlay:
        """The ring with its fingers as directed edges."""
        phases = count_phases(interests.nodes, settings.phases)
        distances = draw_distances(interests.nodes, phases, settings.fingers, rng)
        node = np.arange(interests.nodes)[:, None]
        fingers = (node + distances) % interests.nodes
        starts = np.broadcast_to(node, fingers.shape)
        return Overlay(interests, np.column_stack((starts.ravel(), fingers.ravel())), directed=True)


def count_phases(nodes: int, rounding: Phases) -> int:
    """log2 of the nodes, rounded; at least 1 where a node has a successor."""
    phases = nodes.bit_length() - 1 if rounding == "floor" else (nodes - 1).bit_length()
    return max(phases, 1) if nodes > 1 else 0


def draw_distances(nodes: int, phases: int, fingers: Fingers, rng: np.random.Generator) -> Numbers:
    """The clockwise distance of each node's finger in each phase, a row a node."""
    nearest = 1 << np.arange(phases)
    if fingers == "chord":
        return np.broadcast_to(nearest, (nodes, phases))
    return rng.integers(nearest, np.minimum(2 * nearest, nodes), (nodes, phases))
