"""The keys of one peer on the rings of a skip graph, and their messages."""

from collections import deque
from collections.abc import Sequence

from agents.overlays.skip_graph.keys import Key, is_between
from agents.overlays.skip_graph.messages import RingMessage, SetRight
from agents.overlays.skip_graph.virtual_node import VirtualNode
from agents.protocol import Effects, PeerId, Send

_MOST_LOST = 64
_LOST_US = 6_000_000  # afterwards, a peer that others name has restarted


class Rings:
    """Virtual nodes of a peer; messages between them do not leave it."""

    def __init__(self, me: PeerId) -> None:
        self._me = me
        self.nodes: dict[Key, VirtualNode] = {}
        self._lost_us: dict[PeerId, int] = {}  # times of losses, the latest ones last
        self._now_us = 0
        self._outgoing: deque[RingMessage] = deque()

    @property
    def neighbours(self) -> set[PeerId]:
        """The other peers that are next to a key of this one."""
        keys = {key for node in self.nodes.values() for key in node.neighbours}
        return {key.peer for key in keys} - {self._me}

    @property
    def lost(self) -> list[PeerId]:
        """The peers that were lost last."""
        return list(self._lost_us)

    @property
    def is_settled(self) -> bool:
        """Whether no change is known to be under way."""
        return all(node.is_settled for node in self.nodes.values())

    def insert(self, now_us: int, key: Key, starts: Sequence[Key]) -> Effects:
        """Link a new key; it looks for its place from one of the `starts`."""
        node = VirtualNode(key, self._outgoing.append, self._is_lost)
        self.nodes[key] = node
        if starts:
            node.seek(now_us, 0, starts[0])
        return self.flush(now_us)

    def delete(self, now_us: int, key: Key) -> Effects:
        """Remove a key from all rings."""
        self.nodes.pop(key).leave()
        return self.flush(now_us)

    def check(self, now_us: int, starts: Sequence[Key]) -> Effects:
        """Check all links."""
        self._now_us = now_us
        for node in self.nodes.values():
            node.check(now_us, starts)
        return self.flush(now_us)

    def try_again(self, now_us: int, starts: Sequence[Key]) -> Effects:
        """Ask another peer where one was silent."""
        self._now_us = now_us
        for node in self.nodes.values():
            node.try_again(now_us, starts)
        return self.flush(now_us)

    def on_message(self, now_us: int, sender: PeerId, message: RingMessage) -> Effects:
        """Pass a message to its target key."""
        if message.of.peer != sender or message.to.peer != self._me:
            return ()
        self._now_us = now_us
        self._lost_us.pop(sender, None)
        self._hand(now_us, message)
        return self.flush(now_us)

    def lose(self, now_us: int, peer: PeerId) -> Effects:
        """Remove a dead peer; others may name it until they notice its failure as well."""
        self._now_us = now_us
        self._lost_us.pop(peer, None)
        self._lost_us[peer] = now_us
        if len(self._lost_us) > _MOST_LOST:
            del self._lost_us[next(iter(self._lost_us))]
        for node in self.nodes.values():
            node.lose(now_us, peer)
        return self.flush(now_us)

    def flush(self, now_us: int) -> Effects:
        """The messages to send, after those between own keys were passed on."""
        effects: list[Send] = []
        while self._outgoing:
            message = self._outgoing.popleft()
            if message.to.peer == self._me:
                self._hand(now_us, message)
            else:
                effects.append(Send(message.to.peer, message, reliable=True))
        return effects

    def _is_lost(self, peer: PeerId) -> bool:
        lost_us = self._lost_us.get(peer)
        return lost_us is not None and self._now_us < lost_us + _LOST_US

    def _hand(self, now_us: int, message: RingMessage) -> None:
        node = self.nodes.get(message.to)
        if node is None and isinstance(message, SetRight) and self.nodes:
            node = self.nodes[self._nearest(message.of)]  # its sender knows only this peer
        if node is not None:
            node.on_message(now_us, message)

    def _nearest(self, key: Key) -> Key:
        """The closest own key before another key."""
        best = next(iter(self.nodes))
        for own in self.nodes:
            if is_between(best, own, key):
                best = own
        return best
