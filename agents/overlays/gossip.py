"""The number of peers, estimated by gossip (Jelasity, Montresor and Babaoglu, "Gossip-based
aggregation in large dynamic networks", ACM TOCS 23(3), 2005).

One peer, the initiator, holds the value 1 and all others hold 0. In each round every peer picks a
peer that it knows, and both take the average of their values (push-pull). The sum stays 1, and all
values approach 1/N: their variance shrinks to about a third in each round.

There are two departures from the paper:

- In the paper, exchanges are atomic. Here messages take time and exchanges overlap. Therefore the
  answer to a push contains the change of the value, not the new value, and the sum stays the same.
- In the paper, several initiators have separate instances side by side. Here every peer starts as
  an initiator, and joins the instance of the lowest address that it hears of, with 0. Therefore no
  initiator has to be chosen beforehand.
"""

from collections.abc import Hashable
from typing import Annotated, Any

from msgspec import Meta, Struct

from agents.protocol import Effects, PeerId, Protocol, Record, Send, SetTimer, Surroundings
from agents.wire.codec import F64, U32, Peer, message


@message(20, role="control")
class Push(Struct, frozen=True):
    """The sender's value; an answer is expected."""

    epoch: U32
    initiator: Peer
    value: F64


@message(21, role="control")
class Pull(Struct, frozen=True):
    """The answer: the amount by which the peer that pushed changes its value."""

    epoch: U32
    initiator: Peer
    change: F64


class Share:
    """A peer's part, in an epoch, of the 1 that an initiator brought in."""

    __slots__ = ("epoch", "initiator", "value")

    def __init__(self, epoch: int, initiator: PeerId, value: float) -> None:
        self.epoch = epoch
        self.initiator = initiator
        self.value = value

    @property
    def size(self) -> float | None:
        """The estimated number of peers, if there is an estimate yet."""
        # Overlapping exchanges may make the value negative for a while.
        return 1 / self.value if self.value > 0 else None

    def push(self) -> Push:
        """The beginning of an exchange."""
        return Push(self.epoch, self.initiator, self.value)

    def on_push(self, push: Push) -> Pull:
        """Take half of the difference; the answer has the other half."""
        change = (self.value - push.value) / 2 if self._joins(push.epoch, push.initiator) else 0.0
        self.value -= change
        return Pull(self.epoch, self.initiator, change)

    def on_pull(self, pull: Pull) -> None:
        """Take the other half."""
        if self._joins(pull.epoch, pull.initiator):
            self.value += pull.change

    def _joins(self, epoch: int, initiator: PeerId) -> bool:
        """Join the instance of an initiator with a lower address; returns whether both are in the
        same.
        """
        if epoch != self.epoch or initiator > self.initiator:
            return False
        if initiator < self.initiator:
            self.initiator, self.value = initiator, 0.0
        return True


class GossipSize(Protocol):
    """Estimates the number of peers by gossip, once in each epoch of several rounds."""

    class Settings(Struct, frozen=True, kw_only=True):
        """Settings of the gossip."""

        period_us: Annotated[int, Meta(ge=1, description="time from one exchange to the next")] = (
            1_000_000
        )
        rounds: Annotated[int, Meta(ge=0, description="exchanges of a peer in an epoch")] = 40
        epochs: Annotated[
            int, Meta(ge=0, description="number of estimates, one after the other")
        ] = 1

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
        """The initiator of the instance that this peer is in."""
        return self._share.initiator

    @property
    def value(self) -> float:
        """This peer's value."""
        return self._share.value

    def on_start(self, now_us: int) -> Effects:
        """Begin at a random time, so that peers do not all gossip at once."""
        return [SetTimer("round", self.random.randrange(self._period_us))]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Start the next round: an exchange, or the report at the end of the epoch."""
        if self._round == self._rounds:
            return self._end_epoch(self._share.epoch + 1)
        self._round += 1
        if not self.contacts:
            return [self._next_round]
        # the same as `choice` in half the time
        peer = self.contacts[int(self.random.random() * len(self.contacts))]
        return [self._next_round, Send(peer, self._share.push())]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle a push or a pull."""
        effects: Effects = ()
        if message.epoch > self._share.epoch:
            effects = self._end_epoch(message.epoch)
        if type(message) is Push:
            return [*effects, Send(sender, self._share.on_push(message))]
        self._share.on_pull(message)
        return effects

    def _end_epoch(self, next_epoch: int) -> Effects:
        """Report the estimate, and start the next epoch if there is one."""
        effects: list[Record | SetTimer] = []
        if size := self._share.size:
            effects.append(Record("size_estimated", {"epoch": self._share.epoch, "size": size}))
        if next_epoch < self._epochs:
            self._share = Share(next_epoch, self.me, 1.0)
            self._round = 0
            effects.append(self._next_round)
        return effects
