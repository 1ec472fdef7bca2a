"""The number of peers by gossip, and the election of landmarks.

Follows section 4.1 of the paper that `landmark` follows. The number of peers is estimated as in
`gossip`, by averaging. The same messages carry the landmarks and a few known peers, so that every
peer soon knows some of all. At the end of each epoch of several rounds, every peer has an estimate
and draws whether it becomes a landmark.

Unlike `gossip`, this does not end, and peers arrive at any time. A peer that arrives during an
epoch would be a second initiator, so it is counted only from the next epoch on, as in the paper by
Jelasity et al. It listens for a few rounds first to find the epoch. Only a peer whose own clock
begins an epoch is an initiator; one that hears of the epoch joins with 0. Answers are acknowledged:
a lost push changes nothing, but a lost answer would lose a part of the sum.

From the third epoch on, rounds take longer. Epoch and round are a common clock: a peer that hears
of a later epoch enters it one round behind the sender. Therefore no clock runs ahead, and all peers
end an epoch within a few rounds.
"""

from collections.abc import Iterable, Sequence
from random import Random

from agents.overlays.gossip import Share
from agents.overlays.landmark.messages import Exchange, ExchangeAnswer, Landmark
from agents.overlays.landmark.settings import LandmarkSettings
from agents.protocol import Effect, PeerId, Record, Send
from agents.wire.codec import U32_MAX

_VIEW = 24  # known peers
_PASSED_ON = 4  # known peers in a message
_UNANSWERED = 3  # unanswered pushes after which a peer is forgotten
_MOST_TOLD = 80  # landmarks in a message
_QUICK_EPOCHS = 2
_NOBODY = (1 << 32) - 1  # the initiator of a peer that has heard of none and holds 0


class View:
    """Peers for gossip: the contacts at first, then peers heard of."""

    def __init__(self, me: PeerId, contacts: Sequence[PeerId], random: Random) -> None:
        self._me = me
        self._contacts = contacts
        self._random = random
        self._peers: list[PeerId] = []
        self._unanswered: dict[PeerId, int] = {}
        self.add(contacts)

    def add(self, peers: Iterable[PeerId]) -> None:
        """Add peers; if there is no room, a known peer is removed."""
        for peer in peers:
            if peer == self._me or peer in self._unanswered:
                continue
            self._unanswered[peer] = 0
            if len(self._peers) < _VIEW:
                self._peers.append(peer)
            else:
                place = self._random.randrange(_VIEW)
                del self._unanswered[self._peers[place]]
                self._peers[place] = peer

    def hear(self, peer: PeerId) -> None:
        """Record a sign of life of a peer."""
        self.add((peer,))
        self._unanswered[peer] = 0

    def choose(self) -> PeerId | None:
        """A peer for the next exchange; one that did not answer several times is forgotten
        afterwards.
        """
        if not self._peers:
            self.add(self._contacts)
        if not self._peers:
            return None
        peer = self._random.choice(self._peers)
        self._unanswered[peer] += 1
        if self._unanswered[peer] > _UNANSWERED:
            del self._unanswered[peer]
            self._peers.remove(peer)
        return peer

    def some(self, but: PeerId) -> tuple[PeerId, ...]:
        """A few peers to tell others about, without those that failed to answer."""
        drawn = self._random.choices(self._peers, k=_PASSED_ON) if self._peers else []
        good = (peer for peer in drawn if peer != but and not self._unanswered[peer])
        return tuple(dict.fromkeys(good))


class LandmarkSet:
    """All landmarks that a peer has heard of, including dead ones."""

    def __init__(self) -> None:
        self._known: dict[PeerId, Landmark] = {}
        self._in_order: tuple[Landmark, ...] = ()  # by address
        self.is_changed = False

    def get(self, peer: PeerId) -> Landmark | None:
        """The state of a peer that is or was a landmark."""
        return self._known.get(peer)

    def add(self, landmark: Landmark) -> None:
        """Add newer states."""
        if landmark.is_newer(self._known.get(landmark.peer)):
            self._known[landmark.peer] = landmark
            self._in_order = tuple(self._known[peer] for peer in sorted(self._known))
            self.is_changed = True

    def bury(self, peer: PeerId) -> None:
        """Consider a landmark dead, until it refutes that."""
        known = self._known.get(peer)
        if known is not None and not known.is_dead:
            self.add(Landmark(peer, known.incarnation, known.epoch, is_dead=True))

    def alive(self) -> list[Landmark]:
        """The live landmarks, by address."""
        return [known for known in self._in_order if not known.is_dead]

    def told(self, random: Random) -> tuple[Landmark, ...]:
        """The landmarks for a message: all, or some if they do not fit."""
        is_much = len(self._in_order) > _MOST_TOLD
        return tuple(random.sample(self._in_order, _MOST_TOLD)) if is_much else self._in_order


class LandmarkGossip:
    """The gossip of one peer."""

    def __init__(
        self, me: PeerId, contacts: Sequence[PeerId], random: Random, settings: LandmarkSettings
    ) -> None:
        self.landmarks = LandmarkSet()
        self._me = me
        self._random = random
        self._lot_seed = random.getrandbits(64)
        self._view = View(me, contacts, random)
        self._period_us = settings.gossip_period_us
        self._later_period_us = settings.later_gossip_period_us
        self._targets = settings.targets
        self._rounds = settings.gossip_rounds
        self._warm_up_rounds = settings.warm_up_rounds
        self._size_factor = settings.size_factor
        self._latest_round = self._rounds // 2  # during which a peer can still enter an epoch
        self._round = 0
        self._exchanges = 0
        self._share = Share(0, me, 0.0)
        self._is_counted = False
        self._is_landmark = False

    @property
    def period_us(self) -> int:
        """The time until the next round, shorter for the first election and its result."""
        return self._period_us if self._share.epoch <= _QUICK_EPOCHS else self._later_period_us

    def on_round(self) -> list[Effect]:
        """Begin the next round, and if due the next epoch."""
        effects: list[Effect] = []
        self._round += 1
        if self._round > (self._rounds if self._share.epoch else self._warm_up_rounds):
            effects += self._end_epoch()
            self._enter(Share(min(self._share.epoch + 1, U32_MAX), self._me, 1.0), round_=1)
        peer = self._view.choose()
        return effects if peer is None else [*effects, Send(peer, self.exchange(peer))]

    def exchange(self, peer: PeerId) -> Exchange:
        """The push to a peer."""
        share = self._share.push() if self._is_counted else None
        landmarks, peers = self.landmarks.told(self._random), self._view.some(peer)
        return Exchange(self._share.epoch, self._round, share, landmarks, peers)

    def on_exchange(self, sender: PeerId, message: Exchange) -> list[Effect]:
        """Handle a push."""
        effects = self._learn(sender, message)
        share = None
        if message.share is not None and self._is_comparable(message):
            self._exchanges += 1
            share = self._share.on_push(message.share)
        landmarks, peers = self.landmarks.told(self._random), self._view.some(sender)
        answer = ExchangeAnswer(self._share.epoch, self._round, share, landmarks, peers)
        return [*effects, Send(sender, answer, reliable=share is not None)]

    def on_answer(self, sender: PeerId, message: ExchangeAnswer) -> list[Effect]:
        """Handle the answer to a push."""
        effects = self._learn(sender, message)
        if message.share is not None and self._is_comparable(message):
            self._exchanges += 1
            self._share.on_pull(message.share)
        return effects

    def _learn(self, sender: PeerId, message: Exchange | ExchangeAnswer) -> list[Effect]:
        """Learn everything except the share, which counts in the sender's epoch only."""
        self._view.hear(sender)
        self._view.add(message.peers)
        effects = self._enter_later(message)
        for landmark in message.landmarks:
            self.landmarks.add(landmark)
        return effects + self._answer_for_myself()

    def _enter_later(self, message: Exchange | ExchangeAnswer) -> list[Effect]:
        """Enter a peer's later epoch."""
        if message.epoch <= self._share.epoch:
            return []
        effects = self._end_epoch()
        self._enter(Share(message.epoch, _NOBODY, 0.0), max(1, message.round) - 1)
        self._is_counted = message.round <= self._latest_round
        return effects

    def _enter(self, share: Share, round_: int) -> None:
        self._share, self._round, self._exchanges = share, round_, 0
        self._is_counted = True

    def _is_comparable(self, message: Exchange | ExchangeAnswer) -> bool:
        """Whether both are counted in one epoch, which they entered at about the same time."""
        is_same = self._is_counted and message.epoch == self._share.epoch
        return is_same and abs(message.round - self._round) <= self._latest_round

    def resign(self) -> None:
        """Stop being a landmark."""
        self._is_landmark = False
        self.landmarks.bury(self._me)

    def _answer_for_myself(self) -> list[Effect]:
        """Refute this peer's death; a restarted landmark is one again if others think so."""
        said = self.landmarks.get(self._me)
        if said is None or not said.is_dead:
            self._is_landmark = said is not None
            return []
        if not self._is_landmark:
            return []
        incarnation = min(said.incarnation + 1, U32_MAX)
        self.landmarks.add(Landmark(self._me, incarnation, said.epoch))
        return [Record("death_refuted", {"incarnation": incarnation})]

    def _end_epoch(self) -> list[Effect]:
        """Report the estimate and hold the election; a peer without exchanges has no estimate."""
        size = self._share.size
        if not self._is_counted or size is None or self._exchanges == 0:
            return []
        size = max(1.0, size * self._size_factor)
        report = Record("size_estimated", {"epoch": self._share.epoch, "size": size})
        return [report, *self._elect(size)]

    def _elect(self, size: float) -> list[Effect]:
        """Become a landmark with a probability whose expectation is the number of missing
        landmarks.

        Landmarks elected in this epoch are not counted, because it depends on timing whether they
        are known here yet. The draw is a function of the seed, the peer and the epoch. A generator
        that messages also draw from would make it depend on the order of messages, which differs
        between emulated runs.
        """
        epoch = self._share.epoch
        known = sum(landmark.epoch < epoch for landmark in self.landmarks.alive())
        lot = Random(f"{self._lot_seed}/{epoch}").random()
        if self._is_landmark or lot >= (self._targets - known) / size:
            return []
        buried = self.landmarks.get(self._me)
        incarnation = 0 if buried is None else min(buried.incarnation + 1, U32_MAX)
        self.landmarks.add(Landmark(self._me, incarnation, epoch))
        self._is_landmark = True
        return [Record("landmark_elected", {"epoch": epoch, "size": size, "known": known})]
