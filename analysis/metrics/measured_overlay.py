"""An overlay with the unicast routes between its peers and the shortest paths over its links."""

from collections.abc import Iterable
from functools import cached_property

from analysis.metrics.found_links import FoundLinks, find_links
from analysis.overlay import Overlay, PeerLink
from analysis.overlay_paths import OverlayPaths, find_paths
from analysis.unicast import LinkSet, Unicast


class MeasuredOverlay:
    """An overlay and the unicast routes between its peers.

    "All peers" are the hosts whose agents ran to the end; pairs are ordered.
    """

    def __init__(self, unicast: Unicast, overlay: Overlay) -> None:
        self.unicast, self.overlay = unicast, overlay

    def why_missing(self) -> str | None:
        """The reason why nothing can be measured; None if it can."""
        if not self.overlay.is_recorded:
            return "no agent recorded neighbours or routes"
        if len(self.overlay.peers) < 2:
            return f"expected at least 2 peers at the end, found {len(self.overlay.peers)}"
        return None

    @property
    def pairs(self) -> int:
        """The number of ordered pairs of peers."""
        return len(self.overlay.peers) * (len(self.overlay.peers) - 1)

    @cached_property
    def paths(self) -> OverlayPaths:
        """Shortest paths over all links."""
        return self._find_paths(self.overlay.links)

    @cached_property
    def short_paths(self) -> OverlayPaths:
        """The same without the last miles of the peers on the way."""
        return self._find_paths(self.overlay.links, last_miles=False)

    @cached_property
    def near_paths(self) -> OverlayPaths:
        """Shortest paths over near links."""
        if not self.overlay.distant:
            return self.paths
        return self._find_paths(self.overlay.near)

    @cached_property
    def short_near_paths(self) -> OverlayPaths:
        """The same without the last miles of the peers on the way."""
        if not self.overlay.distant:
            return self.short_paths
        return self._find_paths(self.overlay.near, last_miles=False)

    @cached_property
    def found_links(self) -> FoundLinks:
        """The links that inferred routes show."""
        return find_links(self.unicast, self.overlay.inferred)

    @cached_property
    def mapped_links(self) -> LinkSet:
        """The links on the routes between the ends of near overlay links, in both directions."""
        near = self.overlay.near
        return self.unicast.links_on({pair for a, b in near for pair in ((a, b), (b, a))})

    def _find_paths(self, links: Iterable[PeerLink], last_miles: bool = True) -> OverlayPaths:
        return find_paths(self.unicast, links, last_miles, self.overlay.is_directed)
