"""The weights of a peer's overlay links: delay plus dissimilarity (section 5 of Tariq, Koldehofe
and Rothermel, DEBS 2013; `agents.routing.similarity` has the formula).

Both ends of a link must use the same weight. Therefore hellos contain the sender's delay, and the
mean of both delays counts. Interests are those at the beginning of a selection, which neighbours
exchange once for each version. If neither end had any events, the delay alone counts; if only one
had some, the link has the whole dissimilarity. For strategies that look for similar peers, the
similarity is 0 in both cases.
"""

from agents.protocol import PeerId
from agents.routing.cores.spanning_tree import SpanningTree
from agents.routing.cores.strategies import Link
from agents.routing.similarity import EventWindow, RecentEvents, dissimilarity_us, similarity

_NO_EVENTS = EventWindow(0, b"")


class LinkWeights:
    """One peer's knowledge of the weights of its links, by version."""

    def __init__(self, tree: SpanningTree, psi: int, alpha_us: int) -> None:
        self.history: EventWindow | RecentEvents = _NO_EVENTS  # as announced by the layer above
        self._tree = tree
        self._psi = psi
        self.alpha_us = alpha_us
        self._own: dict[int, EventWindow] = {}
        self._dissimilarity_us: dict[int, dict[PeerId, int]] = {}
        self._similarity: dict[int, dict[PeerId, float]] = {}

    @property
    def are_delays_only(self) -> bool:
        """Whether no interests are needed."""
        return self.alpha_us == 0

    def own(self, version: int) -> EventWindow:
        """This peer's interests in a version, fixed when they were first needed."""
        if version not in self._own:
            told = self.history
            window = told.window() if isinstance(told, RecentEvents) else told
            recent = window.matched[-((self._psi + 7) // 8) :]
            self._own[version] = EventWindow(window.newest, recent)
        return self._own[version]

    def on_interest(self, version: int, sender: PeerId, window: EventWindow) -> None:
        """Record the similarity of a neighbour."""
        own, known = self.own(version), self._dissimilarity_us.setdefault(version, {})
        known[sender] = dissimilarity_us(own, window, self._psi, self.alpha_us)
        self._similarity.setdefault(version, {})[sender] = similarity(own, window, self._psi)

    def known(self, version: int) -> set[PeerId]:
        """The neighbours whose interests in a version are known."""
        return {*self._dissimilarity_us.get(version, ())}

    def link(self, version: int, peer: PeerId) -> Link:
        """The weight of the link to a neighbour in a version."""
        at = self._tree.neighbours[peer]
        theirs_us = at.hello.delay_us if at.hello is not None else at.delay_us
        dissimilarity_us = self._dissimilarity_us.get(version, {}).get(peer, 0)
        alike = self._similarity.get(version, {}).get(peer, 0.0)
        return Link((at.delay_us + theirs_us) // 2, dissimilarity_us, alike)

    def drop(self, before: int) -> None:
        """Remove all versions before one."""
        for by_version in (self._own, self._dissimilarity_us, self._similarity):
            for version in [version for version in by_version if version < before]:
                del by_version[version]
