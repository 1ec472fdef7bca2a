"""The epochs that the layers of an agent have prepared, and those with events that they hold."""

from collections.abc import Sequence

_DRAIN_US = 10_000_000  # for layers that do not announce `EpochDrained`


class Epochs:
    """The state of each epoch in the layers of this agent."""

    def __init__(self, patience_us: int) -> None:
        self._patience_us = patience_us
        self._planned_us: dict[int, int] = {}
        self.preparing: set[int] = set()
        self.prepared: set[int] = set()
        self.drained: set[int] = set()
        self.begun_us = 0

    def note_plan(self, now_us: int, epoch: int) -> None:
        """Begin to prepare for an epoch."""
        self._planned_us[epoch] = now_us

    def is_prepared(self, now_us: int, epoch: int, is_quiet: bool) -> bool:
        """Whether an epoch can begin here: tables are quiet, and every layer has prepared."""
        planned_us = self._planned_us.get(epoch)
        if planned_us is None:
            return False
        is_waited_for = epoch in self.preparing and epoch not in self.prepared
        return (is_quiet and not is_waited_for) or now_us - planned_us >= self._patience_us

    def is_drained(self, now_us: int, epochs: Sequence[int]) -> bool:
        """Whether no layer holds events of these epochs."""
        is_over = now_us - self.begun_us >= _DRAIN_US
        return all(
            epoch in self.drained if epoch in self.preparing else is_over for epoch in epochs
        )

    def forget(self, epoch: int) -> None:
        """Remove an epoch that ended."""
        self._planned_us.pop(epoch, None)
        for some in (self.preparing, self.prepared, self.drained):
            some.discard(epoch)
