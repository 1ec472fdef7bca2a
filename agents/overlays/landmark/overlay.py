"""The landmark approach to topology discovery (section 4.1 of Tariq, Koldehofe and Rothermel,
"Efficient content-based routing with network topology inference", DEBS 2013).

Random peers become landmarks. Each is the root of a tree that all others join, in which a peer is
the child of a peer on the underlay route from the root to it. The overlay is the union of the
trees. Only landmarks infer routes, one to each peer.

`election` has the number of peers and the election, `forest` and `tree` the trees, `links` the
neighbours. This module combines them, and handles peers that leave, fail, or return.

Departures from the paper, and what it leaves open:

- In the paper the set of landmarks is fixed. Here every epoch of the gossip has an election for the
  missing landmarks: first all k_L, later those missing after an unlucky draw or failures. If peers
  arrive over a long time, the first ones become landmarks.
- A landmark that its children miss, and that does not answer a request to join, is considered dead.
  Gossip spreads this with an incarnation number, and all peers leave its tree, unless it refutes
  its death. A landmark that restarts soon enough stays a landmark, and its tree forms again.
- Case 2 of the paper is about one peer p; as in TAG, a joining peer adopts all children of whose
  routes its own is a prefix.
- Peers with equal routes, on one router, are case 1, once (see `tree`).
- A peer whose parent left or failed asks the root again, with the route that it was told, and keeps
  its own children. No route is inferred twice, even if the underlay changes meanwhile.
- There is no limit on degrees: the paper has none for this approach.
"""

from collections.abc import Hashable
from typing import Any

from msgspec.structs import replace

from agents.overlays.landmark.election import LandmarkGossip
from agents.overlays.landmark.forest import Forest
from agents.overlays.landmark.links import Links
from agents.overlays.landmark.messages import (
    Accept,
    Connect,
    Disconnect,
    Exchange,
    ExchangeAnswer,
    Heartbeat,
    Join,
    NewParent,
)
from agents.overlays.landmark.settings import LandmarkSettings
from agents.probing.route import Route
from agents.protocol import (
    Delay,
    Effect,
    Effects,
    PeerId,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
)


class LandmarkOverlay(Protocol):
    """The topology discovery overlay by landmark trees, which all peers join."""

    Settings = LandmarkSettings
    settings: LandmarkSettings
    messages = (
        Exchange, ExchangeAnswer, Join, Connect, Accept, NewParent, Disconnect, Heartbeat,
    )  # fmt: skip
    offers = frozenset({"neighbours", "mutual neighbours"})

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self._heartbeat_us = self.settings.heartbeat_us
        self.gossip = LandmarkGossip(self.me, self.contacts, self.random, self.settings)
        self.forest = Forest(self.me, self.random, self.settings.join_timeout_us)
        self._links = Links(self._heartbeat_us, self.settings.missed_heartbeats)

    def on_start(self, now_us: int) -> Effects:
        """Begin at a random time, so that peers do not all act at once."""
        return [
            Record("agent_started"),
            SetTimer("gossip", self.random.randrange(self.gossip.period_us)),
            SetTimer("heartbeat", self.random.randrange(self._heartbeat_us)),
        ]

    def on_stop(self, now_us: int) -> Effects:
        """Leave: children look for other parents, and this peer's own tree ends."""
        effects = self.forest.leave()
        own = self.forest.trees.get(self.me)
        if own is not None:
            self.gossip.resign()
            effects += [Send(child, self.gossip.exchange(child)) for child in own.children]
        return [*effects, *self._links.update(now_us, (), "left"), Record("agent_left")]

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Gossip, send heartbeats, or try again to join."""
        match name:
            case "gossip":
                effects = self.gossip.on_round()
                effects.append(SetTimer("gossip", self.gossip.period_us))
            case "heartbeat":
                return [SetTimer("heartbeat", self._heartbeat_us), *self._beat(now_us)]
            case _:
                assert isinstance(name, tuple)
                effects = self._try_again(name[1])
        return self._settle(now_us, effects)

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle a message."""
        self._links.hear(now_us, sender)
        self.forest.hear(sender)
        return self._settle(now_us, self._answer(sender, message))

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        """Record a route, and place the peer at its end."""
        routers = " ".join(str(router or 0) for router in route.routers)
        inferred = Record(
            "route_inferred",
            {"peer": route.target, "is_reached": route.is_reached, "routers": routers},
        )
        effects = [inferred, *self.forest.on_route(route)]
        return self._settle(now_us, effects)

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Add a neighbour whose delay is known."""
        return self._links.on_delay(delay)

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Consider a landmark dead that does not acknowledge; heartbeats cover all other peers."""
        if not isinstance(message, Join):
            return []
        tree = self.forest.trees.get(to)
        if tree is not None and tree.parent is None:
            self.gossip.landmarks.bury(to)
        return self._settle(now_us, [])

    def _answer(self, sender: PeerId, message: Any) -> list[Effect]:
        match message:
            case Heartbeat():
                return self._on_heartbeat(sender, message)
            case Exchange():
                return self.gossip.on_exchange(sender, message)
            case ExchangeAnswer():
                return self.gossip.on_answer(sender, message)
            case Join():
                return self.forest.on_join(sender, message)
            case Connect():
                return self.forest.on_connect(sender, message)
            case Accept():
                return self.forest.on_accept(sender, message)
            case NewParent():
                return self.forest.on_new_parent(sender, message)
        return self.forest.on_disconnect(sender, message)

    def _on_heartbeat(self, sender: PeerId, message: Heartbeat) -> list[Effect]:
        effects = self.forest.on_heartbeat(sender, message)
        if message.is_question:
            effects.append(Send(sender, Heartbeat(False, (), (), ()), reliable=True))
        return effects

    def _beat(self, now_us: int) -> Effects:
        """Send one heartbeat to each neighbour, and remove those that missed too many."""
        effects: list[Effect] = []
        for peer in self._links.lost(now_us):
            effects += self.forest.lose(peer)
        effects = [*self._settle(now_us, effects, "failed"), *self._links.measure()]
        for peer, heartbeat in self.forest.heartbeats().items():
            is_doubted = self._links.is_doubted(now_us, peer)
            beat = replace(heartbeat, is_question=True) if is_doubted else heartbeat
            effects.append(Send(peer, beat, reliable=is_doubted))
        return effects

    def _try_again(self, root: PeerId) -> list[Effect]:
        """Join again; a root that is missed and does not answer now is considered dead."""
        tree = self.forest.trees.get(root)
        if tree is not None and tree.parent is None and tree.has_lost_root:
            self.gossip.landmarks.bury(root)
            return []
        return self.forest.try_again(root)

    def _settle(self, now_us: int, effects: list[Effect], reason: str = "moved") -> list[Effect]:
        """Update the trees after changes of landmarks, and then the neighbours."""
        landmarks = self.gossip.landmarks
        if landmarks.is_changed:
            landmarks.is_changed = False
            effects += self.forest.follow([landmark.peer for landmark in landmarks.alive()])
        if self.forest.is_changed:
            self.forest.is_changed = False
            effects += self._links.update(now_us, self.forest.neighbours(), reason)
        return effects
