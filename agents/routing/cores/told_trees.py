"""What a peer last recorded and announced of its routing trees, so that it tells only changes."""

from agents.protocol import Effects, PeerId, Record
from agents.routing.cores.core_tree import CoreTree
from agents.routing.tree import Tree, tell_links


class ToldTrees:
    """The relay and the links of each version as last told."""

    def __init__(self) -> None:
        self._relays: dict[int, tuple[PeerId, int]] = {}
        self._links: dict[int, tuple[PeerId, ...]] = {}

    def drop(self, version: int) -> None:
        """Forget a version."""
        self._relays.pop(version, None)
        self._links.pop(version, None)

    def relay(self, tree: CoreTree) -> Effects:
        """Record the relay, that is, the core whose tree this peer joins."""
        way = tree.wanted
        if way is None or self._relays.get(tree.version) == (way.core, way.weight_us):
            return []
        self._relays[tree.version] = (way.core, way.weight_us)
        figures = {"version": tree.version, "core": way.core, "weight_us": way.weight_us}
        return [Record("relay_chosen", figures)]

    def links(self, tree: CoreTree) -> Effects:
        """Record and announce the changes of the links of a version."""
        before, links = self._links.get(tree.version, ()), tree.links
        if links == before:
            return []
        self._links[tree.version] = links
        tell = Tree(tree.version, tree.known_us, links, family=tree.family)
        return tell_links(tell, before)
