"""A ring whose positions are hashes of addresses, with fingers (Stoica et al., SIGCOMM 2001).

`ring` maintains the ring, `neighbourhood` its lists, `fingers` has the rules of fingers, `links`
announces and records. The ring is sparse: phases are those of the space of positions, and an empty
phase has no finger.
"""

from collections.abc import Hashable
from typing import Any, ClassVar

from msgspec import Struct

from agents.announcements import NextHop, PeerLost, PeerRestarted, Place, Settled, Unsettled
from agents.overlays.ring.circle import SPARSE, Circle, hash_position, phases_of
from agents.overlays.ring.fingers import FingerRule, RandomFingers
from agents.overlays.ring.links import RingLinks, Roles
from agents.overlays.ring.memory import Memory
from agents.overlays.ring.ring import RING_MESSAGES, SETTLED_PERIODS, Ring
from agents.overlays.ring.settings import RingSettings
from agents.protocol import (
    Announce,
    Delay,
    Effect,
    Effects,
    PeerId,
    Protocol,
    Record,
    Surroundings,
)

_FULL_RING_BITS = 64
SLACK_S = 2.0  # between the detection of a failure by one peer and by all others


class RingOverlay(Protocol):
    """A ring by hashes of addresses, with a finger in each phase that is not empty."""

    Settings: ClassVar[type[Struct]] = RingSettings
    messages: tuple[type, ...] = RING_MESSAGES
    is_directed: ClassVar[bool] = True
    offers = frozenset({"neighbours", "keys", "positions"})
    needs_failure_detector: ClassVar[bool] = True

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        circle, position = self.place(given)
        rule = self.choose_rule(circle, given)
        doubted_us = int((self.settings.detect_s + SLACK_S) * 1e6)
        memory = Memory(self.contacts, self.random, doubted_us)
        self.ring = Ring(Place(self.me, position), circle, rule, memory, self.settings)
        self._links = RingLinks("overlay")
        self._told_version = -1
        self._has_settled = False

    def place(self, given: Surroundings) -> tuple[Circle, int]:
        """The ring, and the position of this peer: the hash of its address."""
        return SPARSE, hash_position(given.me)

    def choose_rule(self, circle: Circle, given: Surroundings) -> FingerRule:
        """The rule of this peer's fingers."""
        phases = phases_of(circle)
        if self.settings.fingers == "random":
            return RandomFingers(phases, circle, self.random)
        return FingerRule(phases)

    def next_hop(self, key: int) -> PeerId | None:
        """The next neighbour on the route to a key of 64 bits; None if this peer is its root."""
        return self.ring.next_hop(self.ring.circle.place_key(key))

    def on_start(self, now_us: int) -> Effects:
        """Join, and begin the periodic work at a random time."""
        first_tick_us = self.random.randrange(int(self.settings.stabilise_s * 1e6))
        return [
            Record("agent_started"),
            Record("placed", placed_values(self.ring.circle, self.ring.me.position)),
            Announce(NextHop(self)),
            Announce(Unsettled()),
            *self._settle(self.ring.start(now_us, first_tick_us)),
        ]

    def on_stop(self, now_us: int) -> Effects:
        """Notify the neighbours."""
        return [*self.ring.leave(), Record("agent_left")]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Take part in the ring."""
        if message.epoch != self.ring.epoch:
            return []
        return self._settle(self.ring.on_message(now_us, sender, message))

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Do the work of a period."""
        effects = self._settle(self.ring.on_timer(now_us, name))
        if self._has_settled or not self.is_settled(now_us):
            return effects
        self._has_settled = True
        return [*effects, Announce(Settled())]

    def is_settled(self, now_us: int) -> bool:
        """Whether this peer and all others have had time to find their fingers."""
        return self.ring.is_quiet(now_us, SETTLED_PERIODS)

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Add a neighbour whose delay is known."""
        return self._links.on_delay(delay)

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Remove a peer that failed."""
        if isinstance(content, PeerLost):
            return self._settle(self.ring.lose(now_us, content.peer))
        if isinstance(content, PeerRestarted):
            return self._settle(self.ring.restart(now_us, content.peer))
        return []

    def _settle(self, effects: list[Effect]) -> list[Effect]:
        """Record and announce changes, before any message that a change causes."""
        if self.ring.version == self._told_version:
            return effects
        self._told_version = self.ring.version
        told = self._links.update(self.ring.view, roles_of(self.ring), self.ring.watched)
        return [*told, *effects]


def placed_values(circle: Circle, position: int) -> dict[str, str]:
    """The values of a record `placed`."""
    values = {"position": f"{position:016x}"}
    if circle.modulus < 1 << _FULL_RING_BITS:
        values["modulus"] = f"{circle.modulus:x}"
    return values


def roles_of(ring: Ring) -> Roles:
    """The links of a ring with their roles."""
    roles: Roles = {}
    fingers = [("finger", place) for place in ring.fingers.places]
    successors = [("successor", place) for place in ring.near.successors[:1]]
    for role, place in (*successors, *fingers):
        roles[place.peer] = roles.get(place.peer, frozenset()) | {role}
    return roles
