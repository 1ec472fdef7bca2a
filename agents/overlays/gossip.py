"""How many peers there are, found out by gossip (Jelasity, Montresor and Babaoglu,
"Gossip-based aggregation in large dynamic networks", ACM TOCS 23(3), 2005).

One peer, the initiator, holds 1 and all others hold 0. In each round every peer picks one it
knows, and both take the average of what they hold (push-pull). The sum stays 1, and the values
approach 1/N quickly: their variance shrinks to about a third in each round.

We depart from the paper in two ways. There exchanges are atomic; messages take time here, and
exchanges overlap. So the answer to a push says by how much to change, not what to hold, and the
sum stays the same whatever happens in between. And there each of several initiators has a run of
its own side by side; here every peer starts as an initiator and joins that of the lowest
address it hears of, with 0, so nobody has to be chosen beforehand.
"""

from collections.abc import Hashable
from typing import Annotated, Any

from msgspec import Meta, Struct

from agents.protocol import Effects, PeerId, Protocol, Record, Send, SetTimer, Surroundings
from agents.wire.codec import F64, U32, Peer, message


@message(20, role="control")
class Push(Struct, frozen=True):
    """What its sender holds; an answer is expected."""

    epoch: U32
    initiator: Peer
    value: F64


@message(21, role="control")
class Pull(Struct, frozen=True):
    """The answer: by how much the peer that pushed has to change what it holds."""

    epoch: U32
    initiator: Peer
    change: F64


class Share:
    """What a peer holds, in an epoch, of the 1 that an initiator brought in."""

    __slots__ = ("epoch", "initiator", "value")

    def __init__(self, epoch: int, initiator: PeerId, value: float) -> None:
        self.epoch = epoch
        self.initiator = initiator
        self.value = value

    @property
    def size(self) -> float | None:
        """The number of peers that this lets one expect, if it does yet."""
        # What overlapping exchanges leave may be below 0 for a while.
        return 1 / self.value if self.value > 0 else None

    def push(self) -> Push:
        """The beginning of an exchange."""
        return Push(self.epoch, self.initiator, self.value)

    def on_push(self, push: Push) -> Pull:
        """Take half of the difference; the answer is the other half."""
        change = (self.value - push.value) / 2 if self._joins(push.epoch, push.initiator) else 0.0
        self.value -= change
        return Pull(self.epoch, self.initiator, change)

    def on_pull(self, pull: Pull) -> None:
        """Take the other half."""
        if self._joins(pull.epoch, pull.initiator):
            self.value += pull.change

    def _joins(self, epoch: int, initiator: PeerId) -> bool:
        """Join an initiator with a lower address; whether both share the same 1 then."""
        if epoch != self.epoch or initiator > self.initiator:
            return False
        if initiator < self.initiator:
            self.initiator, self.value = initiator, 0.0
        return True


class GossipSize(Protocol):
    """Estimates the number of peers by gossip, once in every epoch of some rounds."""

    class Settings(Struct, frozen=True, kw_only=True):
        """How long peers gossip."""

        period_us: Annotated[int, Meta(ge=1, description="time from one exchange to the next")] = (
            1_000_000
        )
        rounds: Annotated[int, Meta(ge=0, description="exchanges of a peer in an epoch")] = 40
        epochs: Annotated[int, Meta(ge=0, description="estimates, one after the other")] = 1

    settings: Settings
    messages = (Push, Pull)

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._period_us = self.settings.period_us
        self._next_round = SetTimer("round", self._period_us)
        self._rounds = self.settings.rounds
        self._epochs = self.settings.epochs
        self._round = 0
        self._share = Share(0, self.me, 1.0)

    @property
    def initiator(self) -> PeerId:
        """The peer whose 1 is being shared."""
        return self._share.initiator

    @property
    def value(self) -> float:
        """What this peer holds of it."""
        return self._share.value

    def on_start(self, now_us: int) -> Effects:
        """Begin at a time of one's own, so that peers do not all gossip at once."""
        return [SetTimer("round", self.random.randrange(self._period_us))]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Start the next round: an exchange with somebody, or the report at the end."""
        if self._round == self._rounds:
            return self._end_epoch(self._share.epoch + 1)
        self._round += 1
        if not self.contacts:
            return [self._next_round]
        # What `choice` does, in half the time.
        peer = self.contacts[int(self.random.random() * len(self.contacts))]
        return [self._next_round, Send(peer, self._share.push())]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Take part in an exchange."""
        effects: Effects = ()
        if message.epoch > self._share.epoch:
            effects = self._end_epoch(message.epoch)
        if type(message) is Push:
            return [*effects, Send(sender, self._share.on_push(message))]
        self._share.on_pull(message)
        return effects

    def _end_epoch(self, next_epoch: int) -> Effects:
        """Report the estimate, and start again as long as there are epochs to come."""
        effects: list[Record | SetTimer] = []
        if size := self._share.size:
            effects.append(Record("size_estimated", {"epoch": self._share.epoch, "size": size}))
        if next_epoch < self._epochs:
            self._share = Share(next_epoch, self.me, 1.0)
            self._round = 0
            effects.append(self._next_round)
        return effects
