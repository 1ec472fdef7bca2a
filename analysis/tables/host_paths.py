"""Delays between hosts, over IP and over the overlay, for whole columns of hosts at once."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.overlay import Overlay
from analysis.overlay_history import OverlayHistory
from analysis.overlay_paths import find_delays, find_paths
from analysis.unicast import Numbers, Unicast

Flags = NDArray[np.bool_]


class HostPaths:
    """Between hosts: IP routes, and the shortest paths over overlay links.

    `overlay_us` and `is_reached` are over the overlay at the end of the run. With a `history`,
    `shortest_us` is over the overlay at each time.
    """

    def __init__(
        self, unicast: Unicast, overlay: Overlay | None, history: OverlayHistory | None = None
    ) -> None:
        self._unicast, self._history = unicast, history
        self._is_directed = overlay is not None and overlay.is_directed
        self._hosts = pd.Index(list(unicast.number))
        self._unicast_us, self._crossings = unicast.delay_us, unicast.crossings
        size = len(self._hosts)
        self.overlay_us: Numbers = np.zeros((size, size), dtype=np.int64)
        self.is_reached: Flags = np.zeros((size, size), dtype=np.bool_)
        if overlay is not None and overlay.links:
            paths = find_paths(unicast, overlay.links, is_directed=overlay.is_directed)
            self.overlay_us, self.is_reached = paths.delay_us, paths.is_reached

    def unicast_us(self, sources: pd.Series, targets: pd.Series) -> pd.Series:
        """Delays of IP routes; 0 from a host to itself."""
        return self._look_up(self._unicast_us, sources, targets)

    def crossings(self, sources: pd.Series, targets: pd.Series) -> pd.Series:
        """The number of links on IP routes."""
        return self._look_up(self._crossings, sources, targets)

    def shortest_us(self, sources: pd.Series, targets: pd.Series, at_us: pd.Series) -> pd.Series:
        """Delays of the shortest paths over the overlay at some times, one for each pair.

        They are missing where there is no path, and 0 from a host to itself.
        """
        if self._history is None:
            found = self._look_up(self.overlay_us, sources, targets)
            is_reached = self._look_up(self.is_reached.astype(np.int64), sources, targets)
            found = found.mask((is_reached == 0).fillna(True))
        else:
            found = self._shortest_then(self._history, sources, targets, at_us)
        return found.mask((sources == targets).to_numpy(), 0)

    def _shortest_then(
        self, history: OverlayHistory, sources: pd.Series, targets: pd.Series, at_us: pd.Series
    ) -> pd.Series:
        """The same over an overlay that changes, computed only from the sources of each time."""
        source, target = self._hosts.get_indexer(sources), self._hosts.get_indexer(targets)
        is_known = (source >= 0) & (target >= 0) & at_us.notna().to_numpy()
        rows = np.flatnonzero(is_known)
        values = np.full(len(source), -1, dtype=np.int64)
        for places, links in history.steps(at_us.to_numpy(np.int64, na_value=-1)[rows]):
            some = rows[places]
            starts, row = np.unique(source[some], return_inverse=True)
            delays_us = find_delays(self._unicast, links, starts, self._is_directed)
            values[some] = delays_us[row, target[some]]
        return pd.Series(pd.arrays.IntegerArray(values, values < 0), index=sources.index)

    def _look_up(self, matrix: Numbers, sources: pd.Series, targets: pd.Series) -> pd.Series:
        source, target = self._hosts.get_indexer(sources), self._hosts.get_indexer(targets)
        is_unknown = (source < 0) | (target < 0)
        values = matrix[source, target] if len(self._hosts) else np.zeros(len(sources), np.int64)
        column = pd.arrays.IntegerArray(values.astype(np.int64), is_unknown)
        return pd.Series(column, index=sources.index)
