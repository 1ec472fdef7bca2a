"""The peers that a peer of the discovery overlay knows, for joining again and distant links."""

from collections.abc import Iterator, Sequence
from random import Random

from agents.protocol import PeerId

_MOST_KNOWN = 64


class Acquaintances:
    """Up to 64 known peers, in the order in which they became known."""

    def __init__(self, me: PeerId, contacts: Sequence[PeerId], chance: Random) -> None:
        self._me = me
        self._peers = [*contacts]
        self._random = chance

    def __iter__(self) -> Iterator[PeerId]:
        return iter(self._peers)

    def learn(self, peer: PeerId) -> None:
        """Remember a peer for joining again, in place of a random one if there are many."""
        if peer == self._me or peer in self._peers:
            return
        if len(self._peers) < _MOST_KNOWN:
            self._peers.append(peer)
        else:
            self._peers[self._random.randrange(_MOST_KNOWN)] = peer

    def forget(self, peer: PeerId) -> None:
        """Forget a peer, unless it is the only one."""
        if peer in self._peers and len(self._peers) > 1:
            self._peers.remove(peer)
