"""The topology discovery overlay by random walks (section 4.2 and algorithm 1 of Tariq, Koldehofe
and Rothermel, "Efficient content-based routing with network topology inference", DEBS 2013).

A peer joins through any other peer. One random walk over the overlay then looks for targets. A
target infers the underlay route to the new peer and places it by the three cases of section 4.1.1.
For a peer q with the route to p:

1. a neighbour is on the route to p: that neighbour places p, with its part of the route;
2. p is on the route to a neighbour: p takes its place here, and becomes its neighbour;
3. neither: p becomes a neighbour of q.

Where the paper leaves something open:
- The peer that forwards a CONNECT cuts the route for the receiver, so the receiver needs no route
  back.
- NEWPARENT implies DISCONNECT: one message does both.
- A neighbour above the degree limit that would be dropped at once is not accepted first.
- A walk does not return to its last peer or its origin, unless there is no other neighbour.
- A walk continues before the peer is placed: the next peers are chosen without waiting for a route.
- k_L limits the picks, and a walk without targets left is not sent. As algorithm 1 is written, such
  a walk is sent and its receiver may become a target (`target_budget`).
- The degree limit is checked at both ends of a new link; algorithm 1 checks it at q only.
- Two equal routes are prefixes of each other: case 1 applies.
- The route back is assumed to be the reversed route (`reverse_routes`), as in the paper; otherwise
  both ends infer their route.
- A peer that lost all near neighbours joins again, several times with growing intervals.
- Distant links are links to peers known at the start. Walks use near links only (`walk_links`).
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agents.overlays.random_walk.acquaintances import Acquaintances
from agents.overlays.random_walk.given_targets import choose_given_targets
from agents.overlays.random_walk.links import Links
from agents.overlays.random_walk.messages import (
    Accept,
    Befriend,
    Befriended,
    Connect,
    Disconnect,
    Heartbeat,
    Join,
    NewParent,
    Walk,
)
from agents.overlays.random_walk.neighbourhood import Neighbourhood, degree_limit
from agents.overlays.random_walk.settings import WalkSettings
from agents.overlays.random_walk.waiting import Accepted, Befriending, Placing, Visit
from agents.overlays.random_walk.walking import Walks
from agents.probing.prefix import Routers, cut
from agents.probing.route import Route
from agents.protocol import (
    Delay,
    Effect,
    Effects,
    MeasureDelay,
    PeerId,
    ProbeRoute,
    Protocol,
    Record,
    Send,
    SetTimer,
    Surroundings,
    WholeNetwork,
)

_MOST_VISITED = 16  # peers that forward a join; the last one accepts it
_FIRST_PAUSE_US = 1_000_000
_LONGEST_PAUSE_US = 32_000_000
_MOST_JOINS = 6


class RandomWalk(Protocol):
    """The topology discovery overlay by random walks."""

    Settings = WalkSettings
    settings: WalkSettings
    messages = (
        Join, Connect, Walk, Accept, NewParent, Disconnect, Heartbeat, Befriend, Befriended,
    )  # fmt: skip
    offers = frozenset({"neighbours", "mutual neighbours"})

    @classmethod
    def choose_targets(
        cls, settings: WalkSettings, whole: WholeNetwork
    ) -> Mapping[int, Sequence[int]]:
        """The targets for the baselines that are given their targets."""
        return choose_given_targets(settings.heuristic, settings.targets, whole)

    def __init__(self, given: Surroundings) -> None:
        super().__init__(given)
        self.neighbours = Neighbourhood()
        self._walks = Walks(self.me, self.settings, self.neighbours, self.random)
        self._heuristic = self.settings.heuristic
        limit = degree_limit(self.settings.degree_limit, max(2, given.peers))
        self._known = Acquaintances(self.me, given.contacts, self.random)
        self._links = Links(self.neighbours, self._known, limit)
        self._given_targets = given.targets
        self._for_delay: defaultdict[PeerId, list[Visit | Placing | Befriending]] = defaultdict(
            list
        )
        self._for_route: defaultdict[PeerId, list[Accepted | None]] = defaultdict(list)
        self._joins = 0
        self._doubted: set[PeerId] = set()  # whose last heartbeat contradicted this peer

    # Handlers

    def on_start(self, now_us: int) -> Effects:
        """Join through another peer, or through the given targets."""
        beat_us = self.random.randrange(self.settings.heartbeat_us)
        effects: list[Effect] = [Record("agent_started"), SetTimer("heartbeat", beat_us)]
        if self._given_targets:
            self._walks.has_begun = True
            effects += [Send(peer, Join(), reliable=True) for peer in self._given_targets]
        else:
            effects += self._join()
        return [*effects, *self._seek_distant()]

    def on_stop(self, now_us: int) -> Effects:
        """Tell the neighbours that this peer leaves."""
        return [Send(peer, Disconnect(is_leaving=True)) for peer in self.neighbours]

    def on_message(self, now_us: int, sender: PeerId, message: Any) -> Effects:
        """Handle a message."""
        if sender in self.neighbours:
            self.neighbours[sender].heard_us = now_us
        match message:
            case Heartbeat(is_near):
                return self._on_heartbeat(sender, is_near)
            case Walk():
                return self._on_walk(sender, message)
            case Join():
                self._known.learn(sender)
                return self._infer_and_place(sender)
            case Connect(joiner, route, last_mile_us, visited):
                if joiner == self.me or not route:
                    return []
                placing = Placing(route, last_mile_us, visited)
                return self._await_delay(joiner, placing)
            case Accept():
                return self._on_accept(now_us, sender, message)
            case NewParent(peer, route):
                return self._on_new_parent(sender, peer, route)
            case Disconnect(is_leaving):
                return self._on_disconnect(sender, is_leaving)
            case Befriend(delay_us):
                effects = self._links.add_distant(now_us, sender, delay_us)
                return [*effects, Send(sender, Befriended(delay_us), reliable=True)]
            case Befriended(delay_us):
                return self._links.add_distant(now_us, sender, delay_us)
        return ()

    def on_timer(self, now_us: int, name: Hashable) -> Effects:
        """Send heartbeats, or try again to join."""
        if name == "heartbeat":
            return self._beat(now_us)
        if name == "distant":
            return self._seek_distant()
        return [*self._walks.begin(), *self._join()] if self._wants_to_join() else []

    def on_delay(self, now_us: int, delay: Delay) -> Effects:
        """Continue everything that waited for the delay to a peer."""
        peer, waiting = delay.target, self._for_delay.pop(delay.target, [])
        effects: list[Effect] = []
        if not delay.samples_us:  # the peer is gone or samples were lost; its walks end soon
            self._known.forget(peer)
            for one in waiting:
                if isinstance(one, Visit):
                    effects += self._walks.pass_on(
                        one.sender, replace(one.walk, ttl=one.walk.ttl // 2)
                    )
            return effects
        delay_us = delay.min_us // 2
        for one in waiting:
            match one:
                case Visit(sender, walk):
                    effects += self._judge(sender, walk, delay_us)
                case Placing(route, last_mile_us, visited):
                    effects += self._place(now_us, peer, route, delay_us, last_mile_us, visited)
                case Befriending():
                    effects.append(Send(peer, Befriend(delay_us), reliable=True))
        return effects

    def on_probe_result(self, now_us: int, route: Route) -> Effects:
        """Place the peer to which the route was inferred, or record the route to a neighbour."""
        peer = route.target
        routers = tuple(router or 0 for router in route.routers)
        figures = {"peer": peer, "is_reached": route.is_reached}
        effects: list[Effect] = [
            Record("route_inferred", {**figures, "routers": " ".join(map(str, routers))})
        ]
        waiting = self._for_route.pop(peer, [])
        trips_us = route.hops[-1].round_trips_us if route.hops else ()
        if not route.is_reached or not routers or not trips_us:
            return effects
        self._walks.last_mile_us = route.last_mile_us or self._walks.last_mile_us
        delay_us = min(trips_us) // 2
        for one in waiting:
            if isinstance(one, Accepted):
                effects += self._links.add_near(now_us, peer, one.delay_us, routers)
                effects += self._links.keep_limit()
            else:
                last_mile_us = _last_mile_of_target_us(route)
                effects += self._place(now_us, peer, routers, delay_us, last_mile_us, ())
        return effects

    def on_give_up(self, now_us: int, to: PeerId, message: Any) -> Effects:
        """Treat a peer that does not acknowledge as failed."""
        self._known.forget(to)
        effects = self._drop(to, "unreachable")
        match message:
            case Join() if to in self._given_targets:  # it may start later
                return [*effects, Send(to, message, reliable=True)]
            case Walk():
                return [*effects, *self._walks.pass_on(to, message)]
            case Connect(joiner=joiner, visited=visited) if joiner != self.me:
                if to in visited or len(visited) >= _MOST_VISITED:
                    return effects
                # The part of our own route is lost, so the route has to be inferred here.
                return [*effects, *self._infer_and_place(joiner)]
        return effects

    # Joining and placing

    def _join(self) -> Effects:
        """Ask a peer for a place, and check for success, each time later."""
        self._joins += 1
        candidates = [peer for peer in self._known if peer not in self.neighbours]
        candidates = candidates or [*self._known]
        requests = (
            [Send(self.random.choice(candidates), Join(), reliable=True)] if candidates else []
        )
        return [*requests, self._look_for_a_place()]

    def _look_for_a_place(self) -> SetTimer:
        pause_us = min(_FIRST_PAUSE_US << self._joins, _LONGEST_PAUSE_US)
        return SetTimer("join", pause_us + self.random.randrange(pause_us))

    def _wants_to_join(self) -> bool:
        """Whether there is no near neighbour; with distant ones, a peer asks a limited number of
        times.

        With a tight degree limit some peers remain without near neighbours, and have distant links
        only.
        """
        is_alone = next(self.neighbours.near(), None) is None
        return is_alone and (self._joins < _MOST_JOINS or not self.neighbours)

    def _infer_and_place(self, joiner: PeerId) -> Effects:
        if self._heuristic == "donly":
            return self._await_delay(joiner, Placing((), 0, ()))
        self._for_route[joiner].append(None)
        return [ProbeRoute(joiner)]

    def _await_delay(self, peer: PeerId, waiting: Visit | Placing | Befriending) -> Effects:
        self._for_delay[peer].append(waiting)
        return [MeasureDelay(peer, self.settings.delay_samples)]

    def _place(
        self,
        now_us: int,
        joiner: PeerId,
        route: Routers,
        delay_us: int,
        last_mile_us: int,
        visited: tuple[PeerId, ...],
    ) -> Effects:
        """The three cases: pass a peer on, swap it in, or accept it as a neighbour."""
        accept = Send(joiner, Accept(route, delay_us, last_mile_us), reliable=True)
        if self.neighbours.is_near(joiner):
            return [accept]
        if self.settings.placement == "direct":
            return self._take(now_us, joiner, route, delay_us, accept)
        but = (*visited, joiner)
        nearer = self.neighbours.nearer_on_the_way(route, but)
        if nearer is not None and len(visited) < _MOST_VISITED:
            rest = cut(self.neighbours[nearer].route or (), route)
            connect = Connect(joiner, rest, last_mile_us, (*visited, self.me))
            return [Send(nearer, connect, reliable=True)]
        way = self._make_way(joiner, route, but)
        return [*way, *self._take(now_us, joiner, route, delay_us, accept)]

    def _take(
        self, now_us: int, joiner: PeerId, route: Routers, delay_us: int, accept: Send
    ) -> Effects:
        """Case 3: accept a peer as a neighbour, unless the degree limit leaves no place for it."""
        effects = [*self._links.add_near(now_us, joiner, delay_us, route)]
        effects += self._links.keep_limit(but=joiner)
        refuse = Send(joiner, Disconnect(is_leaving=False), reliable=True)
        return [*effects, accept if self.neighbours.is_near(joiner) else refuse]

    def _make_way(self, joiner: PeerId, route: Routers, but: tuple[PeerId, ...]) -> Effects:
        """Case 2: send the neighbour beyond a joining peer to that peer."""
        farther = self.neighbours.farther_on_the_way(route, but)
        if farther is None:
            return []
        rest = cut(route, self.neighbours[farther].route or ())
        new_parent = Send(farther, NewParent(joiner, rest), reliable=True)
        return [new_parent, *self._links.drop_near(farther, "swapped")]

    def _on_accept(self, now_us: int, sender: PeerId, accept: Accept) -> Effects:
        self._walks.last_mile_us = self._walks.last_mile_us or accept.last_mile_us
        if self.settings.reverse_routes or not accept.route:
            effects = [*self._links.add_near(now_us, sender, accept.delay_us, accept.route[::-1])]
            effects += self._links.keep_limit()
            return [*effects, *self._walks.begin()]
        self._for_route[sender].append(Accepted(accept.delay_us))
        return [ProbeRoute(sender), *self._walks.begin()]

    def _on_new_parent(self, sender: PeerId, peer: PeerId, route: Routers) -> Effects:
        effects = [*self._links.drop_near(sender, "swapped"), self._look_for_a_place()]
        if peer == self.me or not route:
            return effects
        connect = Connect(self.me, route, self._walks.last_mile_us, (sender,))
        return [*effects, Send(peer, connect, reliable=True)]

    def _on_disconnect(self, sender: PeerId, is_leaving: bool) -> Effects:
        if is_leaving:
            return self._drop(sender, "left")
        effects = self._links.drop_near(sender, "disconnected")
        return [*effects, *self._walks.begin(), self._look_for_a_place()]

    # The random walk

    def _on_walk(self, sender: PeerId, walk: Walk) -> Effects:
        """Decide on the origin of a walk once its delay is known, unless it was decided before."""
        self._known.learn(walk.origin)
        if self._walks.is_over(walk):
            return []
        walk = Walk(walk.origin, walk.number, walk.path_us, walk.targets, walk.ttl - 1)
        is_done = self._walks.is_target(walk)
        if walk.origin == self.me or self.neighbours.is_near(walk.origin) or is_done:
            return self._walks.pass_on(sender, walk)
        return self._await_delay(walk.origin, Visit(sender, walk))

    def _judge(self, sender: PeerId, walk: Walk, origin_us: int) -> Effects:
        """Become a target of the walk or not; the walk continues in both cases."""
        left = self._walks.accept(walk, origin_us)
        if left is None:
            return self._walks.pass_on(sender, walk)
        return [*self._infer_and_place(walk.origin), *self._walks.pass_on(sender, left)]

    # Neighbours

    def _drop(self, peer: PeerId, reason: str) -> Effects:
        """Remove a failed peer, and replace its links."""
        neighbour = self.neighbours.get(peer)
        self._known.forget(peer)
        if neighbour is None:
            return []
        effects = [*self._links.remove(peer, reason)]
        self._joins = 0
        if neighbour.is_distant:
            effects += self._seek_distant()
        return [*effects, self._look_for_a_place()]

    def _seek_distant(self) -> Effects:
        """Ask for the missing distant links, and check later whether they exist."""
        have = sum(neighbour.is_distant for neighbour in self.neighbours.values())
        missing = self.settings.distant_links - have
        free = sorted(peer for peer in self._known if peer not in self.neighbours)
        if missing <= 0:
            return []
        chosen = self.random.sample(free, min(missing, len(free)))
        effects = [effect for p in chosen for effect in self._await_delay(p, Befriending())]
        return [*effects, SetTimer("distant", 8 * _FIRST_PAUSE_US)]

    def _beat(self, now_us: int) -> Effects:
        """Send heartbeats to the neighbours, and remove those that were silent for long."""
        period_us = self.settings.heartbeat_us
        patience_us = period_us * self.settings.missed_heartbeats
        lost = [p for p, n in self.neighbours.items() if now_us - n.heard_us > patience_us]
        effects: list[Effect] = [SetTimer("heartbeat", period_us)]
        for peer in lost:
            effects += self._drop(peer, "silent")
        beats = [Send(peer, Heartbeat(n.is_near)) for peer, n in self.neighbours.items()]
        return [*effects, *beats]

    def _on_heartbeat(self, sender: PeerId, is_near: bool) -> Effects:
        """Repair a link that both ends see differently, if they still do one heartbeat later."""
        neighbour = self.neighbours.get(sender)
        if neighbour is not None and neighbour.is_near == is_near:
            self._doubted.discard(sender)
            return []
        if sender not in self._doubted:  # the message that explains it may be in transit
            self._doubted.add(sender)
            return []
        self._doubted.discard(sender)
        if is_near or neighbour is None:
            return [Send(sender, Disconnect(is_leaving=neighbour is None))]
        return [*self._links.drop_near(sender, "one-sided"), self._look_for_a_place()]


def _last_mile_of_target_us(route: Route) -> int:
    """The last mile of a route's target: its delay minus that of the router before it."""
    trips_us = [min(hop.round_trips_us) for hop in route.hops[-2:] if hop.round_trips_us]
    return max(0, trips_us[1] - trips_us[0]) // 2 if len(trips_us) == 2 else 0
