"""Learned fingers: each peer gossips positions and interests, and chooses fingers from them.

The paper does not have them; its greedy fingers require all interests in one place.
"""

from collections.abc import Sequence
from random import Random

from agents.announcements import Place
from agents.overlays.ring.circle import Circle, Phase
from agents.overlays.ring.fingers import RandomFingers
from agents.overlays.small_world.knowledge import Knowledge, Topics, pack
from agents.overlays.small_world.messages import Sample, Samples
from agents.overlays.small_world.settings import SmallWorldSettings
from agents.protocol import Effect, PeerId, Send, SetTimer
from agents.wire.codec import HEADER, MAX_DATAGRAM_BYTES

GOSSIP = "gossip"
_SLOWEST = 16  # periods between two exchanges while nothing new is learned
_MESSAGE_BYTES = 3  # of `Samples` without any
_SAMPLE_BYTES = 24  # without its topics
_TOPIC_BYTES = 4


class LearnedFingers(RandomFingers):
    """The chosen peers, and random ones in phases without a chosen one."""

    def __init__(self, phases: Sequence[Phase], circle: Circle, me: Place, random: Random) -> None:
        super().__init__(phases, circle, random)
        self._me, self._circle = me, circle
        self._chosen: dict[int, Place] = {}
        self.absent: list[PeerId] = []  # chosen peers that are not at their positions

    def wanted(self, index: int) -> int:
        """The distance of the chosen peer."""
        place = self._chosen.get(index)
        if place is None:
            return super().wanted(index)
        return self._circle.distance(self._me.position, place.position)

    def choose(self, chosen: dict[int, Place]) -> list[int]:
        """Set the chosen peers; returns the phases that changed."""
        before, self._chosen = self._chosen, chosen
        return [i for i in range(len(self.phases)) if before.get(i) != chosen.get(i)]

    def note_root(self, index: int, root: Place | None) -> None:
        """Record that a chosen peer is not at its position."""
        place = self._chosen.get(index)
        if place is not None and (root is None or root.peer != place.peer):
            self.absent.append(place.peer)


class Learning:
    """Gossip of interests, and the fingers that follow from it."""

    def __init__(
        self,
        knowledge: Knowledge,
        rule: LearnedFingers,
        contacts: Sequence[PeerId],
        random: Random,
        settings: SmallWorldSettings,
    ) -> None:
        self._knowledge = knowledge
        self._rule = rule
        self._contacts = tuple(contacts)
        self._random = random
        self._period_us = int(settings.gossip_s * 1e6)
        self._count = settings.gossip_samples
        self._pause = 1  # periods to the next exchange
        self._learn_us = int(settings.learn_s * 1e6)
        self._until_us = 0  # choose fingers again after news
        self._is_new = self._is_due = True

    def start(self, now_us: int, topics: Topics) -> list[Effect]:
        """Begin to gossip at a random time."""
        self._knowledge.want(now_us, topics)
        self._until_us = now_us + self._learn_us
        return [SetTimer(GOSSIP, self._random.randrange(self._period_us))]

    def is_over(self, now_us: int) -> bool:
        """Whether fingers no longer change with learned interests."""
        return now_us >= self._until_us

    def want(self, now_us: int, topics: Topics) -> None:
        """Choose fingers for other topics from now on."""
        if topics != self._knowledge.mine:
            self._knowledge.want(now_us, topics)
            self._until_us = now_us + self._learn_us
            self._is_new = self._is_due = True

    def lose(self, now_us: int, peer: PeerId) -> None:
        """Do not choose a failed peer."""
        self._knowledge.forget(now_us, peer)
        self._is_due = True

    def on_timer(self, now_us: int) -> tuple[list[Effect], list[int]]:
        """Exchange samples with a peer; also returns the phases with a new choice."""
        for peer in self._rule.absent:
            self.lose(now_us, peer)
        self._rule.absent.clear()
        is_due = self._is_due or (self._is_new and now_us < self._until_us)
        changed = self._rule.choose(self._knowledge.choose()) if is_due else []
        self._pause = 1 if self._is_new else min(2 * self._pause, _SLOWEST)
        self._is_new = self._is_due = False
        known = list(dict.fromkeys((*self._contacts, *self._knowledge.peers)))
        effects: list[Effect] = [SetTimer(GOSSIP, self._pause * self._period_us)]
        if known:
            effects += self._tell(now_us, self._random.choice(known), wants_answer=True)
        return effects, changed

    def on_samples(self, now_us: int, sender: PeerId, message: Samples) -> list[Effect]:
        """Add the samples of a peer, and answer."""
        for sample in message.samples:
            self._is_new |= self._knowledge.take(now_us, sample)
        return self._tell(now_us, sender, wants_answer=False) if message.wants_answer else []

    def _tell(self, now_us: int, peer: PeerId, wants_answer: bool) -> list[Effect]:
        room = MAX_DATAGRAM_BYTES - HEADER.size - _MESSAGE_BYTES
        groups = pack(self._knowledge.samples(now_us, self._count), room, _size)
        return [Send(peer, Samples(wants_answer and not i, g)) for i, g in enumerate(groups)]


def _size(sample: Sample) -> int:
    return _SAMPLE_BYTES + _TOPIC_BYTES * len(sample.topics)
