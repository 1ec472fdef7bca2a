"""Messages of children to their parents: joins, which may come in pieces, and leaving."""

from agents.protocol import PeerId
from agents.pubsub.scribe.messages import IDS, Join, Leave


class Joins:
    """The newest message of each child about each topic; older ones are ignored."""

    def __init__(self) -> None:
        self._versions: dict[tuple[PeerId, int], int] = {}
        self._pieces: dict[tuple[PeerId, int], dict[int, Join]] = {}

    def take(self, sender: PeerId, join: Join) -> list[int] | None:
        """The events that a child has, once all pieces of its newest join are there."""
        key = (sender, join.topic)
        last = self._versions.get(key, -1)
        if join.version < last:
            return None
        if join.version > last:
            self._versions[key], self._pieces[key] = join.version, {}
        pieces = self._pieces.setdefault(key, {})
        pieces[join.piece] = join
        if len(pieces) < join.pieces:
            return None
        del self._pieces[key]
        return [event for piece in pieces.values() for event in piece.has]

    def is_news(self, sender: PeerId, leave: Leave) -> bool:
        """Whether no newer message of the child has arrived before."""
        key = (sender, leave.topic)
        if leave.version <= self._versions.get(key, -1):
            return False
        self._versions[key] = leave.version
        self._pieces.pop(key, None)
        return True


def write_joins(topic: int, version: int, wants_ms: int, has: list[int]) -> list[Join]:
    """The pieces of a join; the child has these events."""
    count = max(1, -(-len(has) // IDS))
    return [
        Join(topic, version, wants_ms, piece, count, tuple(has[piece * IDS :][:IDS]))
        for piece in range(count)
    ]
