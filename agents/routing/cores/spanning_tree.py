"""The spanning tree T_C on the overlay, whose root is the leader (section 5.1 of Tariq, Koldehofe
and Rothermel, DEBS 2013, which leaves the algorithm open).

As in Ethernet bridges, the lowest address wins. In each period the leader raises a sequence number,
and every peer forwards it once to all neighbours, with its own distance in hops and its parent. A
period therefore costs two small messages for each link. A peer follows its parent. If the parent's
number is late, the peer follows another neighbour that has it. A parent always has a higher number
than its child, or the same number and fewer hops, so there are no loops. All peers give up a leader
whose number does not increase (`pulse`), and of two leaders that meet one remains.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from agents.protocol import PeerId
from agents.routing.cores.messages import TreeHello
from agents.routing.cores.pulse import Pulse

_MOST_HOPS = 1_000


class Stir(Enum):
    """The effect of a hello: none, forward soon, or wait for the parent."""

    NONE = auto()
    SOON = auto()
    WAIT = auto()


@dataclass(slots=True)
class Neighbour:
    """The other end of an overlay link; it is up once it has sent a hello."""

    delay_us: int
    hello: TreeHello | None = None
    heard_us: int = 0


class SpanningTree:
    """The place of one peer in T_C, and the state of its neighbours."""

    def __init__(self, me: PeerId) -> None:
        self.me = me
        self.pulse = Pulse(me)
        self.parent: PeerId | None = None
        self.hops = 0
        self.leader_since_us = 0
        self.neighbours: dict[PeerId, Neighbour] = {}

    @property
    def leader(self) -> PeerId:
        """The present leader, as known here."""
        assert self.pulse.lowest is not None
        return self.pulse.lowest

    @property
    def is_leader(self) -> bool:
        """Whether this peer is the leader."""
        return self.pulse.is_mine

    def up(self) -> list[PeerId]:
        """The neighbours that are up, in order."""
        return sorted(peer for peer, at in self.neighbours.items() if at.hello is not None)

    def is_up(self, peer: PeerId) -> bool:
        """Whether a neighbour is up."""
        return peer in self.neighbours and self.neighbours[peer].hello is not None

    def children(self) -> list[PeerId]:
        """The neighbours whose parent is this peer."""
        return [peer for peer, hello in self._hellos() if self._is_child(hello)]

    def set_neighbours(self, delays_us: Mapping[PeerId, int]) -> tuple[list[PeerId], list[PeerId]]:
        """Set the overlay's links; returns the new ones and the removed ones."""
        added = sorted(peer for peer in delays_us if peer not in self.neighbours)
        removed = sorted(peer for peer in self.neighbours if peer not in delays_us)
        for peer in added:
            self.neighbours[peer] = Neighbour(delays_us[peer])
        for peer in delays_us:
            self.neighbours[peer].delay_us = delays_us[peer]
        return added, removed

    def remove(self, peer: PeerId) -> None:
        """Remove a link that the overlay has removed."""
        self.lose(peer)
        del self.neighbours[peer]

    def lose(self, peer: PeerId) -> None:
        """Consider a neighbour gone until its next hello."""
        self.neighbours[peer].hello = None
        if peer == self.parent:
            self._replace_parent()

    def silent(self, now_us: int, patience_us: int) -> list[PeerId]:
        """The neighbours that have been silent for long."""
        return [p for p in self.up() if now_us - self.neighbours[p].heard_us > patience_us]

    def on_hello(self, now_us: int, sender: PeerId, hello: TreeHello) -> Stir:
        """Record a neighbour's place in the tree."""
        at = self.neighbours[sender]
        at.hello, at.heard_us = hello, now_us
        if hello.hops >= _MOST_HOPS:
            return Stir.NONE
        if self.pulse.is_news(hello.leader, hello.sequence):
            return self._on_news(now_us, sender, hello)
        if hello.leader != self.leader:
            if sender == self.parent:
                self._replace_parent()
        elif hello.sequence == self.pulse.sequence and hello.hops + 1 < self.hops:
            self.parent, self.hops = sender, hello.hops + 1
        return Stir.NONE

    def catch_up(self, now_us: int) -> bool:
        """Follow another neighbour if the parent's number is late; returns whether the parent
        changed.
        """
        ahead = [
            (-hello.sequence, hello.hops, peer)
            for peer, hello in self._hellos()
            if hello.leader == self.leader and self.pulse.is_news(hello.leader, hello.sequence)
        ]
        if ahead:
            self._follow(now_us, min(ahead)[2])
        return bool(ahead)

    def lead(self, now_us: int) -> None:
        """As the leader, raise the number."""
        self.pulse.beat(now_us)

    def expire(self, now_us: int, patience_us: int) -> bool:
        """Give up a leader whose number does not increase; returns whether it did."""
        if not self.pulse.expire(now_us, patience_us):
            return False
        self.parent, self.hops, self.leader_since_us = None, 0, now_us
        better = [
            (hello.leader, -hello.sequence, hello.hops, peer)
            for peer, hello in self._hellos()
            if self.pulse.is_news(hello.leader, hello.sequence)
        ]
        if better:
            self._follow(now_us, min(better)[3])
        return True

    def _on_news(self, now_us: int, sender: PeerId, hello: TreeHello) -> Stir:
        if hello.leader == self.leader and self.parent not in (None, sender):
            return Stir.WAIT
        self._follow(now_us, sender)
        return Stir.SOON

    def _follow(self, now_us: int, peer: PeerId) -> None:
        hello = self.neighbours[peer].hello
        assert hello is not None
        self.pulse.adopt(now_us, hello.leader, hello.sequence)
        self.parent, self.hops = peer, hello.hops + 1

    def _replace_parent(self) -> None:
        """Follow a neighbour that cannot be below this peer, or none until the next number."""
        safe = [
            (hello.hops, peer)
            for peer, hello in self._hellos()
            if hello.leader == self.leader
            and hello.sequence == self.pulse.sequence
            and hello.hops < self.hops
        ]
        if safe:
            self.parent, self.hops = min(safe)[1], min(safe)[0] + 1
        else:
            self.parent = None

    def _is_child(self, hello: TreeHello) -> bool:
        return hello.parent == self.me and hello.leader == self.leader

    def _hellos(self) -> list[tuple[PeerId, TreeHello]]:
        return [
            (peer, at.hello) for peer, at in sorted(self.neighbours.items()) if at.hello is not None
        ]
