"""A plan of the whole overlay, and each peer's part of it."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from agents.announcements import Place
from agents.overlays.beaconvey.messages import Plan, PlannedFinger
from agents.overlays.ring.circle import RANK_SPACING
from agents.overlays.ring.messages import Member
from agents.protocol import PeerId

_NEXT_BEFORE = 4
_NEXT_AFTER = 16


class Layout(NamedTuple):
    """The places of peers on the ring of an epoch, and the planned fingers by phase."""

    epoch: int
    ranks: int
    position: dict[PeerId, int]
    fingers: Mapping[PeerId, Sequence[PeerId]]

    def plan_for(self, peer: PeerId, alive: Collection[PeerId]) -> Plan:
        """The plan for one peer; its neighbours are live peers."""
        there = [one for one in self.position if one in alive or one == peer]
        order = sorted(there, key=lambda one: self.position[one])
        at, count = order.index(peer), len(order)
        others = [self._member(order[(at + i) % count]) for i in range(1, count)]
        fingers = tuple(
            PlannedFinger(phase, self._member(finger))
            for phase, finger in enumerate(self.fingers.get(peer, ()))
        )
        return Plan(
            self.epoch, self.ranks, self.position[peer],
            tuple(others[::-1][:_NEXT_BEFORE]), tuple(others[:_NEXT_AFTER]), fingers,
        )  # fmt: skip

    def place_beside(self, neighbour: PeerId) -> int | None:
        """The position in the middle between a peer and the next one; None if there is none."""
        start = self.position[neighbour]
        modulus = self.ranks * RANK_SPACING
        gaps = [(position - start) % modulus or modulus for position in self.position.values()]
        half = min(gaps) // 2
        return (start + half) % modulus if half else None

    def _member(self, peer: PeerId) -> Member:
        return Member(peer, self.position[peer])


def compute_plan(
    wanted: Sequence[Collection[int]], overlay: str, fingers: str, phases: str, seed: int
) -> tuple[list[int], list[list[int]]]:
    """The rank and the fingers of each of some peers, from their topics."""
    from topologies.overlays.beaconvey import (  # imports NumPy, which not every agent needs
        BeaConveyOverlaySettings,
        plan_overlay,
    )

    settings = BeaConveyOverlaySettings(overlay=overlay, fingers=fingers, phases=phases)  # type: ignore[arg-type]
    plan = plan_overlay(wanted, settings, seed)
    return plan.rank, plan.fingers


def lay_out(
    epoch: int, peers: Sequence[PeerId], rank: Sequence[int], fingers: Sequence[Sequence[int]]
) -> Layout:
    """A computed plan with peers by address."""
    position = {peer: rank[at] * RANK_SPACING for at, peer in enumerate(peers)}
    named = {peer: [peers[one] for one in fingers[at]] for at, peer in enumerate(peers)}
    return Layout(epoch, len(peers), position, named)


def as_place(member: Member) -> Place:
    """A member as a place."""
    return Place(member.peer, member.position)
