"""The size of a publish/subscribe layer's table, recorded after each change."""

from collections.abc import Iterable

from agents.protocol import Effects, PeerId, Record


class TableCount:
    """Counts the entries of a table: pairs of a topic and a peer that its events are passed to."""

    def __init__(self) -> None:
        self._recorded = (-1, -1)

    def record(self, entries: Iterable[tuple[int, PeerId]]) -> Effects:
        """Record how many entries and different peers there are, if that has changed."""
        different = set(entries)
        counted = (len(different), len({peer for _, peer in different}))
        if counted == self._recorded:
            return ()
        self._recorded = counted
        return [Record("table_counted", {"entries": counted[0], "peers": counted[1]})]
