"""A small-world overlay: a full ring of ranks, and a finger in each phase (Chen and Tock,
Middleware Industry 2015).

A peer's rank is its number in the run, so that positions are those of the paper; 2^40 positions lie
between two ranks. The paper's greedy fingers (GrSwico) need all interests: `greedy` is planned
before the run, and each peer is given its own fingers. `learned` is `learning`.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct

from agents.announcements import Interests, PeerLost, Place
from agents.overlays.ring.circle import RANK_SPACING, Circle, phases_of, rank_circle
from agents.overlays.ring.fingers import FingerRule, PlannedFingers, RandomFingers
from agents.overlays.ring.overlay import RingOverlay
from agents.overlays.ring.ring import RING_MESSAGES
from agents.overlays.small_world.knowledge import Knowledge
from agents.overlays.small_world.learning import GOSSIP, LearnedFingers, Learning
from agents.overlays.small_world.messages import Samples
from agents.overlays.small_world.settings import SmallWorldSettings
from agents.protocol import Effects, PeerId, Surroundings, WholeNetwork


class SmallWorldOverlay(RingOverlay):
    """A full ring of ranks with one finger in each phase, chosen by interests or not."""

    Settings: ClassVar[type[Struct]] = SmallWorldSettings
    settings: SmallWorldSettings
    messages: tuple[type, ...] = (*RING_MESSAGES, Samples)

    @classmethod
    def plan(cls, settings: SmallWorldSettings, whole: WholeNetwork) -> Mapping[int, Sequence[int]]:
        """The ranks of the greedy fingers of each peer, by phase."""
        if settings.fingers != "greedy":
            return {}
        from topologies.overlays.small_world import (
            plan_fingers,
        )  # imports NumPy, which not every agent needs

        rows = plan_fingers(whole.interests(), "greedy", settings.phases, whole.seed)
        return dict(enumerate(rows))

    def __init__(self, given: Surroundings) -> None:
        self._learning: Learning | None = None
        super().__init__(given)
        self._workload = given.workload

    def place(self, given: Surroundings) -> tuple[Circle, int]:
        """The position of this peer: its number as a rank."""
        return rank_circle(given.peers), given.number * RANK_SPACING

    def choose_rule(self, circle: Circle, given: Surroundings) -> FingerRule:
        """The rule of this peer's fingers."""
        phases = phases_of(circle, self.settings.phases)
        match self.settings.fingers:
            case "chord":
                return FingerRule(phases)
            case "random":
                return RandomFingers(phases, circle, self.random)
            case "greedy":
                ranks = [(rank - given.number) % given.peers for rank in given.plan]
                return PlannedFingers(phases, [rank * RANK_SPACING for rank in ranks])
        me = Place(self.me, given.number * RANK_SPACING)
        knowledge = Knowledge(me, circle, phases, self.settings.candidates, self.random)
        rule = LearnedFingers(phases, circle, me, self.random)
        self._learning = Learning(knowledge, rule, self.contacts, self.random, self.settings)
        return rule

    def on_start(self, now_us: int) -> Effects:
        """Join, and begin to learn."""
        effects = super().on_start(now_us)
        if self._learning is None:
            return effects
        topics = frozenset(one.content for one in self._workload.interests_at(now_us))
        return [*effects, *self._learning.start(now_us, topics)]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Take part in the ring and in gossip."""
        if type(message) is not Samples:
            return super().on_message(now_us, sender, message)
        return self._learning.on_samples(now_us, sender, message) if self._learning else []

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Do the work of a period of the ring or of gossip."""
        if name != GOSSIP or self._learning is None:
            return super().on_timer(now_us, name)
        effects, changed = self._learning.on_timer(now_us)
        return [*effects, *self._settle(self.ring.seek(now_us, changed))]

    def is_settled(self, now_us: int) -> bool:
        """Whether fingers are found, and no longer change with learned interests."""
        is_learning = self._learning is not None and not self._learning.is_over(now_us)
        return not is_learning and super().is_settled(now_us)

    def on_announcement(self, now_us: int, content: Any) -> Effects:
        """Handle changes of interests and failures."""
        if self._learning is not None:
            if isinstance(content, Interests):
                self._learning.want(now_us, content.contents)
            elif isinstance(content, PeerLost):
                self._learning.lose(now_us, content.peer)
        return super().on_announcement(now_us, content)
