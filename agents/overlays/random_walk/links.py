"""Changes to the links of a peer in the discovery overlay: what it records, announces and sends."""

from agents.overlays.random_walk.acquaintances import Acquaintances
from agents.overlays.random_walk.messages import Disconnect
from agents.overlays.random_walk.neighbourhood import Neighbour, Neighbourhood
from agents.probing.prefix import Routers
from agents.protocol import Announce, Effect, Effects, Neighbours, PeerId, Record, Send


class Links:
    """Adds and removes neighbours, and keeps the near ones within the degree limit."""

    def __init__(self, neighbours: Neighbourhood, known: Acquaintances, limit: int) -> None:
        self._neighbours = neighbours
        self._known = known
        self._limit = limit

    def add_near(self, now_us: int, peer: PeerId, delay_us: int, route: Routers) -> Effects:
        """Add a near neighbour, or replace the route to one."""
        before = self._neighbours.get(peer)
        is_distant = before is not None and before.is_distant
        self._neighbours[peer] = Neighbour(delay_us, route, is_distant, now_us)
        self._known.learn(peer)
        routers = " ".join(map(str, route))
        return [Record("route_known", {"peer": peer, "routers": routers}), *self._tell_added(peer)]

    def add_distant(self, now_us: int, peer: PeerId, delay_us: int) -> Effects:
        """Add a distant neighbour; a near neighbour becomes a distant one as well."""
        self._known.learn(peer)
        if peer in self._neighbours:
            self._neighbours[peer].is_distant = True
            return []
        self._neighbours[peer] = Neighbour(delay_us, None, True, now_us)
        return self._tell_added(peer)

    def keep_limit(self, but: PeerId | None = None) -> Effects:
        """Disconnect the farthest neighbours while there are more than the limit.

        The peer `but` does not know this peer yet: the caller tells it.
        """
        effects: list[Effect] = []
        while sum(1 for _ in self._neighbours.near()) > self._limit:
            peer = self._neighbours.farthest()
            effects += self.drop_near(peer, "over the limit")
            if peer != but:
                effects.append(Send(peer, Disconnect(is_leaving=False), reliable=True))
        return effects

    def drop_near(self, peer: PeerId, reason: str) -> Effects:
        """Remove a near neighbour; if it is also a distant neighbour, that link stays."""
        neighbour = self._neighbours.get(peer)
        if neighbour is None or not neighbour.is_near:
            return []
        if not neighbour.is_distant:
            return self.remove(peer, reason)
        neighbour.route = None
        return self._tell_added(peer)

    def remove(self, peer: PeerId, reason: str) -> Effects:
        """Remove a neighbour."""
        del self._neighbours[peer]
        return [Record("neighbour_removed", {"peer": peer, "reason": reason}), self._announce()]

    def _tell_added(self, peer: PeerId) -> Effects:
        neighbour = self._neighbours[peer]
        figures = {
            "peer": peer, "delay_us": neighbour.delay_us, "is_distant": not neighbour.is_near,
        }  # fmt: skip
        return [Record("neighbour_added", figures), self._announce()]

    def _announce(self) -> Announce:
        return Announce(Neighbours(self._neighbours.delays_us()))
