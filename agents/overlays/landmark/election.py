"""How peers learn how many they are and who the landmarks are: gossip, and the election.

Sections 4.1 of the paper that `landmark` follows. The number of peers is found as in `gossip`, by
averaging; the same messages carry the landmarks, and a few known peers, so that everybody soon
knows some of all. Once in an epoch of some rounds everybody has an estimate, and the dice decide.

Unlike `gossip`, this goes on for ever, and peers come at any time. One that came in the midst of
an epoch would bring a second initiator, so it waits for the next one to be counted, as in the
paper by Jelasity et al. To find out, it listens for a few rounds first. Only who begins an epoch
by the clock is an initiator; who hears of it joins with 0. An answer is acknowledged: a push that
is lost changes nothing, but with an answer a part of the sum would be lost.

There is no hurry after the first election and the news of it, so from the third epoch on rounds
take longer. Epoch and round are a common clock. Who hears of a later epoch enters it one round
behind who told it, so that nobody's clock runs ahead and all end an epoch within a few rounds.
"""

from collections.abc import Iterable, Sequence
from random import Random

from agents.overlays.gossip import Share
from agents.overlays.landmark.messages import Exchange, ExchangeAnswer, Landmark
from agents.overlays.landmark.settings import LandmarkSettings
from agents.protocol import Effect, PeerId, Record, Send
from agents.wire.codec import U32_MAX

_VIEW = 24  # peers to gossip with
_PASSED_ON = 4  # of them, in a message
_UNANSWERED = 3  # pushes after which a peer is forgotten
_MOST_TOLD = 80  # landmarks in a message
_QUICK_EPOCHS = 2
_NOBODY = (1 << 32) - 1  # the initiator of a peer that has not heard of one, and holds 0


class View:
    """Some peers to gossip with: the contacts at first, then who turns up."""

    def __init__(self, me: PeerId, contacts: Sequence[PeerId], random: Random) -> None:
        self._me = me
        self._contacts = contacts
        self._random = random
        self._peers: list[PeerId] = []
        self._unanswered: dict[PeerId, int] = {}
        self.add(contacts)

    def add(self, peers: Iterable[PeerId]) -> None:
        """Get to know peers; where there is no room, one of the known makes way."""
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
        """Note that a peer lives."""
        self.add((peer,))
        self._unanswered[peer] = 0

    def choose(self) -> PeerId | None:
        """A peer to gossip with; one that did not answer several times is forgotten after that."""
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
        """A few peers to tell another about, that did not fail to answer."""
        drawn = self._random.choices(self._peers, k=_PASSED_ON) if self._peers else []
        good = (peer for peer in drawn if peer != but and not self._unanswered[peer])
        return tuple(dict.fromkeys(good))


class LandmarkSet:
    """All landmarks that a peer has heard of, the dead ones too."""

    def __init__(self) -> None:
        self._known: dict[PeerId, Landmark] = {}
        self._in_order: tuple[Landmark, ...] = ()  # by address
        self.is_changed = False

    def get(self, peer: PeerId) -> Landmark | None:
        """What is known of a peer that is or was a landmark."""
        return self._known.get(peer)

    def add(self, landmark: Landmark) -> None:
        """Take in what is new."""
        if landmark.is_newer(self._known.get(landmark.peer)):
            self._known[landmark.peer] = landmark
            self._in_order = tuple(self._known[peer] for peer in sorted(self._known))
            self.is_changed = True

    def bury(self, peer: PeerId) -> None:
        """Hold a landmark for dead, until it says otherwise."""
        known = self._known.get(peer)
        if known is not None and not known.is_dead:
            self.add(Landmark(peer, known.incarnation, known.epoch, is_dead=True))

    def alive(self) -> list[Landmark]:
        """The landmarks that live, by address."""
        return [known for known in self._in_order if not known.is_dead]

    def told(self, random: Random) -> tuple[Landmark, ...]:
        """What to tell others: everything, or some of it if it does not fit into a message."""
        is_much = len(self._in_order) > _MOST_TOLD
        return tuple(random.sample(self._in_order, _MOST_TOLD)) if is_much else self._in_order


class LandmarkGossip:
    """One peer's part in the gossip."""

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
        self._latest_round = self._rounds // 2  # in which one can still enter an epoch
        self._round = 0
        self._exchanges = 0
        self._share = Share(0, me, 0.0)
        self._is_counted = False
        self._is_landmark = False

    @property
    def period_us(self) -> int:
        """The time until the next round: short for the first election and its result."""
        return self._period_us if self._share.epoch <= _QUICK_EPOCHS else self._later_period_us

    def on_round(self) -> list[Effect]:
        """Begin the next round, and perhaps the next epoch."""
        effects: list[Effect] = []
        self._round += 1
        if self._round > (self._rounds if self._share.epoch else self._warm_up_rounds):
            effects += self._end_epoch()
            self._enter(Share(min(self._share.epoch + 1, U32_MAX), self._me, 1.0), round_=1)
        peer = self._view.choose()
        return effects if peer is None else [*effects, Send(peer, self.exchange(peer))]

    def exchange(self, peer: PeerId) -> Exchange:
        """What to say to a peer first."""
        share = self._share.push() if self._is_counted else None
        landmarks, peers = self.landmarks.told(self._random), self._view.some(peer)
        return Exchange(self._share.epoch, self._round, share, landmarks, peers)

    def on_exchange(self, sender: PeerId, message: Exchange) -> list[Effect]:
        """Take part in an exchange."""
        effects = self._learn(sender, message)
        share = None
        if message.share is not None and self._is_comparable(message):
            self._exchanges += 1
            share = self._share.on_push(message.share)
        landmarks, peers = self.landmarks.told(self._random), self._view.some(sender)
        answer = ExchangeAnswer(self._share.epoch, self._round, share, landmarks, peers)
        return [*effects, Send(sender, answer, reliable=share is not None)]

    def on_answer(self, sender: PeerId, message: ExchangeAnswer) -> list[Effect]:
        """Complete an exchange."""
        effects = self._learn(sender, message)
        if message.share is not None and self._is_comparable(message):
            self._exchanges += 1
            self._share.on_pull(message.share)
        return effects

    def _learn(self, sender: PeerId, message: Exchange | ExchangeAnswer) -> list[Effect]:
        """Take in everything but the share, which counts in the sender's epoch only."""
        self._view.hear(sender)
        self._view.add(message.peers)
        effects = self._enter_later(message)
        for landmark in message.landmarks:
            self.landmarks.add(landmark)
        return effects + self._answer_for_myself()

    def _enter_later(self, message: Exchange | ExchangeAnswer) -> list[Effect]:
        """Follow a peer into its epoch."""
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
        """Be no landmark any more."""
        self._is_landmark = False
        self.landmarks.bury(self._me)

    def _answer_for_myself(self) -> list[Effect]:
        """Refute one's death; and after a restart be a landmark again if the others believe so."""
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
        """Report the estimate and roll the dice; a peer that met nobody has no estimate."""
        size = self._share.size
        if not self._is_counted or size is None or self._exchanges == 0:
            return []
        size = max(1.0, size * self._size_factor)
        report = Record("size_estimated", {"epoch": self._share.epoch, "size": size})
        return [report, *self._elect(size)]

    def _elect(self, size: float) -> list[Effect]:
        """Become a landmark with the chance that lets one expect as many as are missing.

        Those elected in this very epoch are not counted: whether they are known here yet is an
        accident. The lot is a function of the seed and the epoch. A generator that messages draw
        from as well would make it depend on their order, which differs between emulated runs.
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
