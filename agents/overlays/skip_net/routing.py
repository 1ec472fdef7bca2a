"""Routes by numeric identifier, base 2."""

from agents.announcements import Router
from agents.overlays.identifiers import common_bits, identifier_of
from agents.overlays.skip_graph.virtual_node import VirtualNode
from agents.protocol import PeerId


class NumericRouter(Router):
    """Routes to the right along the ring of the bits that this peer has in common with a key.

    So a route reaches a peer with more bits in common. If the ring has none, the root of the key
    is the peer on it that is numerically closest. The neighbours that a key of a skip graph knows
    to the right decide between the two.
    """

    def __init__(self, node: VirtualNode) -> None:
        self._node = node
        self._id = identifier_of(node.key.peer)

    def next_hop(self, key: int) -> PeerId | None:
        """The right neighbour on the level of the bits in common; None at the root."""
        number = common_bits(self._id, key)
        if number >= len(self._node.levels):
            return None
        level = self._node.levels[number]
        if level.is_alone:
            return None
        if level.is_closed:
            ids = [identifier_of(other.peer) for other in level.rights]
            if all(common_bits(identifier, key) == number for identifier in ids):
                closest = min(abs(identifier - key) for identifier in ids)
                if abs(self._id - key) < closest:
                    return None
        return level.right.peer
