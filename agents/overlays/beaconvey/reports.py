"""What a peer has told the master of itself, and what the master does not know yet."""

from msgspec.structs import replace

from agents.overlays.beaconvey.messages import Status, Wants
from agents.wire.codec import U32_MAX

_PIECE_TOPICS = 300


class Reports:
    """The topics of a peer and its last status, and whether the master was told both."""

    def __init__(self) -> None:
        self._topics: frozenset[int] = frozenset()
        self._topics_version = 0
        self._is_told_topics = False
        self._told: Status | None = None
        self._status_version = 0

    def begin(self, now_us: int, topics: frozenset[int]) -> None:
        """Begin with some topics; versions are higher than those before a restart."""
        self._topics = topics
        self._topics_version = now_us // 1_000 & U32_MAX

    def change_topics(self, topics: frozenset[int]) -> None:
        """Note other topics."""
        if topics != self._topics:
            self._topics, self._is_told_topics = topics, False
            self._topics_version = self._topics_version + 1 & U32_MAX

    def forget(self) -> None:
        """Tell everything again, as the master does not know it."""
        self._told, self._is_told_topics = None, False

    def news(self, now_us: int, status: Status) -> list[Status | Wants]:
        """The messages that tell the master what it does not know; `status` has no version."""
        news: list[Status | Wants] = []
        if status != self._told:
            self._told = status
            self._status_version = max(self._status_version + 1, now_us // 1_000) & U32_MAX
            news.append(replace(status, version=self._status_version))
        if not self._is_told_topics:
            self._is_told_topics = True
            news += _pieces(self._topics_version, self._topics)
        return news


def _pieces(version: int, topics: frozenset[int]) -> list[Wants]:
    """Topics in pieces that fit a datagram."""
    known = sorted(topic for topic in topics if topic <= U32_MAX)
    parts = [known[at : at + _PIECE_TOPICS] for at in range(0, len(known), _PIECE_TOPICS)] or [[]]
    return [Wants(version, i, len(parts), tuple(part)) for i, part in enumerate(parts)]
