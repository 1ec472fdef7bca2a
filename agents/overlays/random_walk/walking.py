"""The random walks at one peer: its own walk, and those of other peers (lines 3 and 8 to 19 of
algorithm 1 of Tariq, Koldehofe and Rothermel, DEBS 2013).
"""

from random import Random

from agents.overlays.random_walk.messages import Walk
from agents.overlays.random_walk.neighbourhood import Neighbourhood
from agents.overlays.random_walk.settings import WalkSettings
from agents.overlays.random_walk.targets import RULES
from agents.protocol import Effects, PeerId, Send
from agents.wire.codec import U32_MAX


class Walks:
    """Decides which walks end here, where others continue, and which have this peer as a target."""

    def __init__(
        self, me: PeerId, settings: WalkSettings, neighbours: Neighbourhood, chance: Random
    ) -> None:
        self.last_mile_us = 0  # of this peer, as far as it is known
        self.has_begun = False
        self._me = me
        self._settings = settings
        self._neighbours = neighbours
        self._random = chance
        self._is_capped = settings.target_budget == "capped"
        # By origin, the walk of which this peer is a target.
        self._target_of: dict[PeerId, int] = {}

    def begin(self) -> Effects:
        """Start the one walk of this peer, once it has a neighbour."""
        if self.has_begun or not self._neighbours:
            return []
        self.has_begun = True
        number = self._random.getrandbits(32)
        ttl, targets = self._settings.ttl, self._settings.targets
        return self.pass_on(self._me, Walk(self._me, number, 0, targets, ttl))

    def is_over(self, walk: Walk) -> bool:
        """Whether an arriving walk is ignored."""
        return walk.ttl == 0 or (walk.targets == 0 and self._is_capped)

    def is_target(self, walk: Walk) -> bool:
        """Whether this peer is already a target of a walk."""
        return self._target_of.get(walk.origin) == walk.number

    def accept(self, walk: Walk, origin_us: int) -> Walk | None:
        """The walk with one target less, if this peer becomes one."""
        near_us, tolerance = self._neighbours.near_delays_us(), self._settings.mlink_tolerance
        is_good = RULES[self._settings.heuristic](origin_us, walk.path_us, near_us, tolerance)
        if not is_good or self.is_target(walk):
            return None
        self._target_of[walk.origin] = walk.number
        return Walk(walk.origin, walk.number, walk.path_us, max(0, walk.targets - 1), walk.ttl)

    def pass_on(self, sender: PeerId, walk: Walk) -> Effects:
        """Forward a walk to random neighbours, which share the remaining targets."""
        chosen = self._choose(sender, walk) if walk.targets > 0 and walk.ttl > 0 else []
        so_far_us = walk.path_us - 2 * self.last_mile_us if walk.origin != self._me else 0
        effects = []
        for peer in chosen:
            path_us = min(max(0, so_far_us + self._neighbours[peer].delay_us), U32_MAX)
            share = walk.targets // len(chosen)
            onward = Walk(walk.origin, walk.number, path_us, share, walk.ttl)
            effects.append(Send(peer, onward, reliable=True))
        return effects

    def _choose(self, sender: PeerId, walk: Walk) -> list[PeerId]:
        links = self._links()
        onward = sorted(p for p in links if p not in (sender, walk.origin)) or sorted(links)
        wanted = min(max(1, int(self._settings.selectivity * len(links))), len(onward))
        most = walk.targets if self._is_capped else wanted
        return self._random.sample(onward, min(wanted, most))

    def _links(self) -> list[PeerId]:
        """The neighbours to which a walk may be forwarded."""
        near = [peer for peer, _ in self._neighbours.near()]
        return near if near and self._settings.walk_links == "near" else list(self._neighbours)
